"""Generate a log from its description, as blocks of bytes or as a file.

The log consists of chunks with a fixed number of events. The log's seed and the chunk's number
seed the random generator of a chunk, so memory is bounded and the bytes depend on the description
alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import datetime
from os import PathLike
from typing import NamedTuple

import msgspec
import numpy as np

from placewire.demo.lines import Period, malformed_line
from placewire.demo.objects import object_lines
from placewire.demo.subscriptions import (
    query_lines,
    readable_queries,
    readable_subscriptions,
    subscribe_lines,
    unsubscribe_line,
)
from placewire.model.errors import Unusable

CHUNK_EVENTS = 8192
LATE_SHARE, LATE_MEAN_S = 0.01, 5.0
ARRIVE_SHARE, REPLACE_SHARE = 0.5, 0.3  # of the churn; the rest unsubscribe
BEFORE, DURING = 1, 2  # the two parts of a log; part of a chunk's seed


class CityLife(NamedTuple):
    """The description of a log; equal descriptions give equal bytes.

    `subscriptions` counts all of them. The first eighteen are the readable ones; of the others one
    in eight is a `nearest`, one in forty a `relevant` and one in forty a `trending`. `churn` is the
    share of the others that arrive, are replaced or unsubscribe during the period. `bad` is the
    number of malformed lines. The `queries` are of all four kinds, and four are readable.
    """

    seed: int = 7
    objects: int = 100_000
    subscriptions: int = 1_000
    start: str = "2026-03-01T12:00:00Z"
    seconds: float = 3600
    churn: float = 0.0
    bad: int = 0
    queries: int = 40


class _Counts(NamedTuple):
    """How many events of each sort the log has."""

    readable: int
    before: int  # generated ones at the start, with numbers below this
    arriving: int  # during the period, with the next numbers
    replaced: int
    leaving: int
    readable_queries: int


def _counts(life: CityLife) -> _Counts:
    readable = min(life.subscriptions, len(readable_subscriptions()))
    generated = life.subscriptions - readable
    churning = round(life.churn * generated)
    arriving = math.ceil(churning * ARRIVE_SHARE)
    replaced = min(round(churning * REPLACE_SHARE), churning - arriving)
    return _Counts(
        readable,
        generated - arriving,
        arriving,
        replaced,
        churning - arriving - replaced,
        min(life.queries, len(readable_queries())),
    )


def _checked(life: CityLife) -> Period:
    for name in ("seed", "objects", "subscriptions", "bad", "queries"):
        if getattr(life, name) < 0:
            raise Unusable(f"city life: {name} must not be negative, got {getattr(life, name)}")
    if not 0 <= life.churn <= 1:
        raise Unusable(f"city life: churn must be 0..1, got {life.churn}")
    if not 0 < life.seconds <= 366 * 86_400:
        raise Unusable(f"city life: seconds must be above 0, at most a year, got {life.seconds}")
    try:
        start = datetime.fromisoformat(life.start)
    except ValueError:
        raise Unusable(
            f"city life: start must be a time such as 2026-03-01T12:00:00Z, got {life.start!r}"
        ) from None
    if start.tzinfo is None:
        raise Unusable(f"city life: start must have an offset or Z, got {life.start!r}")
    return Period(round(start.timestamp() * 1e6), life.seconds)


def count_events(life: CityLife) -> int:
    """How many lines the log of `life` has."""
    counts = _counts(life)
    return counts.readable + counts.before + _count_during(life, counts)


def _count_during(life: CityLife, counts: _Counts) -> int:
    """How many lines come after the subscriptions at the start."""
    changes = counts.arriving + counts.replaced + counts.leaving
    return life.objects + changes + life.bad + life.queries


def blocks(life: CityLife, block_events: int = 50_000) -> Iterator[bytes]:
    """The log as blocks of whole lines, `block_events` each but the last."""
    period = _checked(life)
    if block_events < 1:
        raise Unusable(f"city life: block_events must be 1 or more, got {block_events}")
    lines: list[str] = []
    for chunk in _chunks(life, period):
        lines += chunk
        while len(lines) >= block_events:
            yield _joined(lines[:block_events])
            del lines[:block_events]
    if lines:
        yield _joined(lines)


def write_log(
    life: CityLife, path: str | PathLike[str], progress: Callable[[int, int], None] | None = None
) -> int:
    """Write the log to a file and return the number of events.

    `progress` is called with the events so far and the total.
    """
    total = count_events(life)
    block_events = 50_000
    with open(path, "wb") as file:
        for number, block in enumerate(blocks(life, block_events), 1):
            file.write(block)
            if progress is not None:
                progress(min(number * block_events, total), total)
    return total


def _joined(lines: list[str]) -> bytes:
    # A malformed line may hold a byte that is not UTF-8, carried as a lone surrogate.
    return "\n".join([*lines, ""]).encode("utf-8", "surrogateescape")


def _chunks(life: CityLife, period: Period) -> Iterator[list[str]]:
    counts = _counts(life)
    stamp = period.start_timestamp()
    readable = readable_subscriptions(stamp)[: counts.readable]
    yield [msgspec.json.encode(event).decode() for event in readable]
    for chunk in range(math.ceil(counts.before / CHUNK_EVENTS)):
        first = chunk * CHUNK_EVENTS
        numbers = list(range(first, min(first + CHUNK_EVENTS, counts.before)))
        size = len(numbers)
        random = _random(life, BEFORE, chunk)
        yield subscribe_lines(numbers, [stamp] * size, np.zeros(size), period, random)
    chunks = math.ceil(_count_during(life, counts) / CHUNK_EVENTS)
    for chunk in range(chunks):
        yield _chunk_of_the_period(life, counts, period, chunk, chunks)


def _chunk_of_the_period(
    life: CityLife, counts: _Counts, period: Period, chunk: int, chunks: int
) -> list[str]:
    """One chunk: its shares of everything that happens during the period, merged by time."""

    def share(total: int) -> range:
        return range(total * chunk // chunks, total * (chunk + 1) // chunks)

    random = _random(life, DURING, chunk)
    parts = [
        share(total)
        for total in (
            life.objects,
            counts.arriving,
            counts.replaced,
            counts.leaving,
            life.bad,
            life.queries - counts.readable_queries,
        )
    ]
    objects, arriving, replaced, leaving, bad, queries = parts
    readable = [
        query
        for query in readable_queries()[: counts.readable_queries]
        if int(query.at * chunks) == chunk
    ]
    seconds = [
        np.sort((chunk + random.random(len(part))) / chunks * period.seconds) for part in parts
    ]
    late = random.random(len(objects)) < LATE_SHARE
    lateness = np.where(late, random.exponential(LATE_MEAN_S, len(objects)), 0.0)
    lines = object_lines(objects.start, np.maximum(seconds[0] - lateness, 0.0), period, random)
    if not (any(parts[1:]) or readable):
        return lines
    initial = _Shuffled(counts.before)
    subscribing = [counts.before + number for number in arriving]
    subscribing += [initial[number] for number in replaced]
    begins = np.concatenate(seconds[1:3])
    lines += subscribe_lines(subscribing, period.timestamps(begins), begins, period, random)
    for number, stamp in zip(leaving, period.timestamps(seconds[3]), strict=True):
        lines.append(unsubscribe_line(initial[counts.replaced + number], stamp))
    for number, stamp in zip(bad, period.timestamps(seconds[4]), strict=True):
        lines.append(malformed_line(number, stamp))
    lines += query_lines(queries, period.timestamps(seconds[5]), random)
    seconds.append(np.array([query.at * period.seconds for query in readable], np.float64))
    for query, stamp in zip(readable, period.timestamps(seconds[6]), strict=True):
        event = {"type": "query", "id": query.event["id"], "ts": stamp, **query.event}
        lines.append(msgspec.json.encode(event).decode())
    order = np.argsort(np.concatenate(seconds), kind="stable")
    return [lines[row] for row in order.tolist()]


class _Shuffled:
    """A fixed shuffle of 0..size-1 without storage: steps of a length coprime to the size."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.step = max(1, round(size * 0.618))
        while math.gcd(self.step, size) > 1:
            self.step += 1

    def __getitem__(self, number: int) -> int:
        return number * self.step % self.size


def _random(life: CityLife, part: int, chunk: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64([life.seed, part, chunk]))
