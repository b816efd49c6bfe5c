"""Run Placewire as a service: HTTP in, results out over streams and webhooks.

Two processes run under one supervisor (`processes`). The *gateway* (`gateway`) accepts requests,
writes events to the journal before it replies, and delivers results. The *pipeline* (`pipeline`)
follows the journal and commits batches. They share only the state directory: the gateway writes the
journal, the pipeline writes manifests. Both resume from the last commit after a crash.

Events enter through `intake` (validation) and `group_commit` (journal writes). The `ledger` package
records who owns each subscription and numbers every result. `http` has the routes and result
streams, `webhooks` the deliveries, `auth` keys, roles and rate limits, `metrics` the Prometheus
metrics.

`client` is the Python client. `offline` does the same work on a state directory without a server.
The errors here are what clients get.
"""

from __future__ import annotations

from typing import Any


class Unavailable(Exception):
    """A resource is temporarily unavailable, such as the ledger or a full disk."""


class Refused(Exception):
    """A rejected request: its HTTP status and the reason."""

    def __init__(
        self,
        status: int,
        why: str,
        headers: dict[str, str] | None = None,
        facts: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(why)
        self.status = status
        self.why = why
        self.headers = headers or {}
        self.facts = facts or {}  # further fields of the error body
