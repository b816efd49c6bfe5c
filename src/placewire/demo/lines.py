"""Weighted random choice for arrays of rows, and parts of log lines: times, decimals, mistakes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import resources
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

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


class WeightedGroups(NamedTuple):
    """Groups of weighted items, stored one group after another; items are numbered throughout."""

    cumulative: Floats  # running sum of weights, one per item
    starts: Ints  # first item of each group, and the number of items
    lows: Floats  # running weight before each group, and the total

    @classmethod
    def of(cls, weights: Iterable[Sequence[float]]) -> WeightedGroups:
        """Build from the weights of each group's items."""
        groups = [list(group) for group in weights]
        cumulative = np.cumsum([weight for group in groups for weight in group], dtype=np.float64)
        starts = np.cumsum([0, *map(len, groups)])
        return cls(cumulative, starts, np.concatenate(([0.0], cumulative))[starts])

    def draw(self, groups: Ints, u: Floats) -> Ints:
        """Choose an item from each row's group by the row's uniform draw `u`."""
        lows = self.lows[groups]
        targets = lows + u * (self.lows[groups + 1] - lows)
        items = np.searchsorted(self.cumulative, targets, side="right")
        # A sum may round up to the group's upper end, which belongs to the next group.
        return np.minimum(items, self.starts[groups + 1] - 1)


def choose(weights: Floats, u: Floats) -> Ints:
    """Choose an index into `weights` for each uniform draw."""
    cumulative = np.cumsum(weights)
    chosen: Ints = np.searchsorted(cumulative, u * cumulative[-1], side="right")
    return np.minimum(chosen, len(cumulative) - 1)


def choose_rank(sizes: Ints, u: Floats) -> Ints:
    """Choose a rank below each size by the Zipf-Mandelbrot law, frequency 1 / (rank + shift).

    A log-uniform number, cut off, has this distribution, so no table is needed. Long lists have a
    larger shift: otherwise the first of 20,000 names would be one in sixteen of all.
    """
    shifts = np.maximum(sizes / 500.0, 1.0)
    ranks = (shifts * np.power(sizes / shifts + 1.0, u) - shifts).astype(np.int64)
    return np.minimum(ranks, sizes - 1)


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


def read_data(name: str) -> bytes:
    """The content of a file in `data/`."""
    return resources.files("placewire.demo").joinpath("data", name).read_bytes()
