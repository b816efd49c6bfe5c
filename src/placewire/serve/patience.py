"""Patience: how long, and for how much, the gateway waits for those who are at the other end."""

from __future__ import annotations

from typing import NamedTuple


class Patience(NamedTuple):
    """Limits of one connection."""

    head_s: float = 10.0  # a request's head must be whole within it
    head_bytes: int = 1 << 16  # and no longer than this
    body_s: float = 30.0  # then its body
    idle_s: int = 5  # between two requests
    stalled_s: float = 60.0  # a client that takes nothing for so long is given up
    most_piped: int = 32  # requests sent before earlier ones were answered


PATIENT = Patience()
