"""What a client is told when something cannot be done."""

from __future__ import annotations

from typing import Any


class Unavailable(Exception):
    """Something that the service needs cannot be used for now, such as a full disk."""


class Refused(Exception):
    """A request that is not carried out: a status of HTTP, and what, where, got."""

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
        self.facts = facts or {}  # told beside the error
