"""Write logs that drift as in PS2Stream, Tornado and SSTD, drawn from one workload.

All begin with the standing subscriptions and a calm stream, followed by intervals that differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.harness import SEED, Setup
from bench.workload import Workload

START_US = 1_767_225_600_000_000
DRIFTS = ("ps2", "tornado", "sstd objects", "sstd subscriptions")
REGIONS = 20  # a side, of PS2Stream's drift
SWITCHED = 0.1  # of the regions, each interval


class Size(NamedTuple):
    """How long a log is, in batches: calm ones, of which a plan is made, then those that drift.

    An interval is longer than a decision takes.
    """

    batch: int
    intervals: int
    interval: int
    subscriptions: int
    calm: int = 10
    renewed: int = 0  # subscriptions that are replaced by ones like them before each batch of drift

    @property
    def batches(self) -> int:
        return self.calm + self.intervals * self.interval

    @property
    def sample(self) -> int:
        """Events of which the plan is made."""
        return self.subscriptions + self.batch * (self.calm // 2)


def write_drift(setup: Setup, drift: str, path: Path, size: Size) -> Path:
    """Write the log of one drift."""
    workload = setup.workload(size.batch * size.batches, size.subscriptions)
    return write_events(drifting(workload, drift, size), path)


def write_events(events: Iterable[dict[str, Any]], path: Path) -> Path:
    """Write events as a log."""
    with open(path, "w") as file:
        for event in events:
            file.write(json.dumps(event) + "\n")
    return path


def drifting(workload: Workload, drift: str, size: Size) -> Iterator[dict[str, Any]]:
    """The events of one drift."""
    rng = np.random.default_rng([SEED, 29])
    objects, subscriptions = workload
    lon, lat = objects["lon"].to_numpy().copy(), objects["lat"].to_numpy().copy()
    texts = objects["text"].to_pylist()
    standing = [subscribe(row) for row in subscriptions.to_pylist()]
    at = np.array([[e["region"]["box"][0], e["region"]["box"][1]] for e in standing])
    yield from (stamp(event, 0) for event in standing)
    switched: set[int] = set()
    for batch in range(size.batches):
        some = slice(batch * size.batch, (batch + 1) * size.batch)
        interval = (batch - size.calm) // size.interval
        begins = batch >= size.calm and (batch - size.calm) % size.interval == 0
        if begins and drift == "ps2":
            yield from switch_regions(rng, standing, at, switched, some.start)
        if begins and drift == "sstd subscriptions":
            yield from crowd(rng, standing, at, interval, some.start)
        if batch >= size.calm and size.renewed:
            first = (batch - size.calm) * size.renewed
            for row in range(first, first + size.renewed):
                yield stamp(standing[row % len(standing)], some.start)
        if batch >= size.calm and drift == "tornado":
            # The stream draws together, each interval towards another place.
            target = busy_place(interval, lon, lat)
            scale = (0.7, 0.6, 0.5, 0.4)[interval % 4]
            lon[some] = target[0] + (lon[some] - target[0]) * scale
            lat[some] = target[1] + (lat[some] - target[1]) * scale
        if batch >= size.calm and drift == "sstd objects":
            burst = np.flatnonzero(rng.random(size.batch) < 0.5) + batch * size.batch
            target = busy_place(interval, lon, lat)
            lon[burst] = target[0] + rng.normal(0, 0.3, burst.size)
            lat[burst] = target[1] + rng.normal(0, 0.3, burst.size)
        for number in range(some.start, some.stop):
            yield object_event(number, lon[number], lat[number], texts[number])


def object_event(number: int, lon: float, lat: float, text: str) -> dict[str, Any]:
    """An object with a time by its number."""
    event = {
        "type": "object",
        "id": f"o{number}",
        "lon": round(float(np.clip(lon, -180, 180)), 6),
        "lat": round(float(np.clip(lat, -90, 90)), 6),
        "text": text,
    }
    return stamp(event, number)


def busy_place(interval: int, lon: np.ndarray, lat: np.ndarray) -> tuple[float, float]:
    """A busy place for an interval, always the same."""
    at = int(np.random.default_rng([SEED, 31, interval]).integers(lon.size // 10))
    return float(lon[at]), float(lat[at])


def subscribe(row: dict[str, Any]) -> dict[str, Any]:
    """A subscription of the workload as an event."""
    terms: Any = row["keywords"]
    joined = {"all" if row["operator"] == "AND" else "any": list(terms)}
    return {
        "type": "subscribe",
        "id": row["id"],
        "kind": "boolean",
        "region": {"box": [row["west"], row["south"], row["east"], row["north"]]},
        "where": joined,
    }


def switch_regions(
    rng: np.random.Generator,
    standing: list[dict[str, Any]],
    at: np.ndarray,
    switched: set[int],
    first: int,
) -> Iterator[dict[str, Any]]:
    """A tenth of the regions switch the type of their subscriptions: frequent words, or rare."""
    low, high = np.quantile(at, 0.02, axis=0), np.quantile(at, 0.98, axis=0)
    cell = np.clip(((at - low) / (high - low) * REGIONS).astype(int), 0, REGIONS - 1)
    region = cell[:, 0] * REGIONS + cell[:, 1]
    busy = np.unique(region)
    words = [word for event in standing[:2_000] for word in next(iter(event["where"].values()))]
    frequent = sorted(set(words), key=words.count)[-20:]
    for number in rng.permutation(busy)[: max(1, int(SWITCHED * busy.size))].tolist():
        switched ^= {number}
        for row in np.flatnonzero(region == number).tolist():
            event = dict(standing[row])
            if number in switched:  # PS2Stream's Q1: frequent words and larger boxes
                event["where"] = {"any": [str(rng.choice(frequent)) for _ in range(2)]}
            yield stamp(event, first)


def crowd(
    rng: np.random.Generator,
    standing: list[dict[str, Any]],
    at: np.ndarray,
    interval: int,
    first: int,
) -> Iterator[dict[str, Any]]:
    """A burst of subscriptions in one region."""
    middle = busy_place(interval, at[:, 0], at[:, 1])
    for number in range(len(standing) // 5):
        event = dict(standing[int(rng.integers(len(standing)))])
        west, south = rng.normal(middle, 0.3)
        event["id"] = f"c{interval}-{number}"
        event["region"] = {"box": [west, south, west + 0.4, south + 0.4]}
        yield stamp(event, first)


def stamp(event: dict[str, Any], number: int) -> dict[str, Any]:
    """The event with a time: a hundred objects a second."""
    seconds, hundredths = divmod(number, 100)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    day, hour = divmod(hour, 24)
    ts = f"2026-01-{1 + day:02d}T{hour:02d}:{minute:02d}:{second:02d}.{10 * hundredths:03d}Z"
    return {**event, "ts": ts}
