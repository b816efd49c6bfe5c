"""The hour's clock and the printing of its numbers: RFC 3339 times, shortest decimals."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from placewire.city.urns import Floats


class Hour(NamedTuple):
    """When the log begins, and how long it lasts. Times in it are seconds since the beginning."""

    start_us: int
    seconds: float

    def stamps(self, seconds: Floats) -> list[str]:
        """Times in UTC with microseconds."""
        times = (self.start_us + (seconds * 1e6).astype(np.int64)).astype("datetime64[us]")
        stamps: list[str] = np.datetime_as_string(times, unit="us", timezone="UTC").tolist()
        return stamps

    def start_stamp(self) -> str:
        """The beginning, without a fraction when it has none."""
        return self.stamps(np.zeros(1))[0].replace(".000000Z", "Z")

    def utc_hour(self, second: float) -> float:
        """The hour of the day, 0 to 24, at a second of the log."""
        return (self.start_us / 3.6e9 + second / 3600) % 24


def printed(numbers: Floats, decimals: int) -> list[str]:
    """Each number, rounded, in the shortest decimal that reads back the same.

    One encoding of the whole array is several times as fast as formatting number by number.
    """
    if not len(numbers):
        return []
    return msgspec.json.encode(numbers.round(decimals).tolist())[1:-1].decode().split(",")
