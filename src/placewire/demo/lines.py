"""Parts of log lines: timestamps, decimals, and malformed lines that become dead letters."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from placewire.demo.sampling import Floats

# One line for each common mistake.
MALFORMED = (
    '{{"type":"object","id":"bad-{n}","ts":"{ts}","lon":-73.98,"lat":40.7',
    '{{"type":"object","id":"bad-{n}","ts":"{ts}","lon":412.5,"lat":40.75,"text":"off the map"}}',
    '{{"type":"object","id":"bad-{n}","ts":"yesterday","lon":2.35,"lat":48.85,"text":"when?"}}',
    '{{"type":"object","id":"bad-{n}","ts":"{ts}","lon":2.35,"lat":48.85}}',
    '{{"type":"object","id":"bad-{n}","ts":"{ts}","lon":"2.35","lat":48.85,"text":"a string"}}',
    '{{"type":"object","id":"bad-{n}","ts":"{ts}","lon":2.35,"lat":48.85,"text":"x","colour":1}}',
    '{{"type":"subscribe","id":"bad-{n}","ts":"{ts}","kind":"boolean","where":"(coffee AND"}}',
    '{{"type":"subscribe","id":"bad-{n}","ts":"{ts}","kind":"boolean",'
    '"region":{{"box":[13.1,52.7,13.8,52.3]}},"where":"south above north"}}',
    '{{"type":"publish","id":"bad-{n}","ts":"{ts}"}}',
    "bad-{n}: not JSON at all",
    '{{"type":"object","id":"bad-{n}","ts":"{ts}","lon":2.35,"lat":48.85,"text":"caf\udce9"}}',
    "",
)


class Period(NamedTuple):
    """The time that a log covers. Times within it are seconds since its start."""

    start_us: int
    seconds: float

    def timestamps(self, seconds: Floats) -> list[str]:
        """Format times as UTC with microseconds."""
        times = (self.start_us + (seconds * 1e6).astype(np.int64)).astype("datetime64[us]")
        stamps: list[str] = np.datetime_as_string(times, unit="us", timezone="UTC").tolist()
        return stamps

    def start_timestamp(self) -> str:
        """Format the start, without a fraction when it has none."""
        return self.timestamps(np.zeros(1))[0].replace(".000000Z", "Z")

    def utc_hour(self, second: float) -> float:
        """The hour of the day, 0 to 24, at a second of the log."""
        return (self.start_us / 3.6e9 + second / 3600) % 24


def format_decimals(numbers: Floats, decimals: int) -> list[str]:
    """Round each number and format it as the shortest decimal that parses to the same value.

    Encoding the whole array at once is several times faster than formatting each number.
    """
    if not len(numbers):
        return []
    return msgspec.json.encode(numbers.round(decimals).tolist())[1:-1].decode().split(",")


def malformed_line(number: int, timestamp: str) -> str:
    """The `number`-th malformed line; the mistakes take turns."""
    return MALFORMED[number % len(MALFORMED)].format(n=number, ts=timestamp)
