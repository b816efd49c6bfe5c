"""Limits of rate: so many events a second for each caller, with some room for bursts."""

from __future__ import annotations

import math
import time

from placewire.serve.errors import Refused

BURST_S = 2.0


class Rates:
    """A bucket for each caller that fills with time."""

    def __init__(self, per_s: float) -> None:
        self.per_s = per_s  # 0: no limit
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, caller: str, events: int) -> None:
        """Let so many events pass, or raise Refused saying when to come again.

        More than the bucket holds pass when it is full, and are owed.
        """
        if not self.per_s:
            return
        room = self.per_s * BURST_S
        now = time.monotonic()
        left, then = self._buckets.get(caller, (room, now))
        left = min(room, left + (now - then) * self.per_s)
        if left < min(events, room):
            wait = math.ceil((min(events, room) - left) / self.per_s)
            raise Refused(
                429, f"rate: at most {self.per_s:g} events a second", {"retry-after": str(wait)}
            )
        self._buckets[caller] = left - events, now
