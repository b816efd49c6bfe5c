"""Errors of the service, with the HTTP status that clients get."""

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
