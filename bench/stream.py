"""The papers' stream: five objects to one insert or delete, lives of N(mu, 0.2 mu) inserts."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from bench.queries import as_workload, draw, draw_words, query_set
from bench.settings import Choice
from bench.workload import Workload, object_lines, subscribe_events

OBJECTS_A_CHANGE = 5
TS = "2026-01-01T00:00:00Z"


class Stream(NamedTuple):
    """Lines of a log: the subscriptions that stand at the start, then objects and changes."""

    standing: list[bytes]
    tuples: list[bytes]


def draw_streams(
    choice: Choice, names: tuple[str, ...], objects: int, standing: int
) -> dict[str, Stream]:
    """A stream for each query set, all of the same objects."""
    count = standing + objects // (2 * OBJECTS_A_CHANGE) + 1
    drawn, words = draw(choice, objects, count), draw_words(choice, objects, count)
    return {
        name: make_stream(as_workload(query_set(name, drawn, count), words), standing)
        for name in names
    }


def make_stream(workload: Workload, standing: int, seed: int = 3) -> Stream:
    """The first subscriptions stand; the others come as the oldest go."""
    random = np.random.default_rng(seed)
    lines = [
        msgspec.json.encode(event)
        for batch in workload.subscriptions.to_batches(max_chunksize=50_000)
        for event in subscribe_events(batch, TS)
    ]
    objects = [line for block in object_lines(workload) for line in block.splitlines()]
    # How many inserts each one lives; those that stand at the start are anywhere in their lives.
    lives = np.maximum(random.normal(standing, 0.2 * standing, len(lines)), 1)
    ages = np.where(np.arange(len(lines)) < standing, random.random(len(lines)) * lives, 0)
    born = np.maximum(np.arange(len(lines)) - standing, 0)
    leaving = iter(np.argsort(born + lives - ages, kind="stable").tolist())
    coming = iter(lines[standing:])
    tuples = []
    for number, line in enumerate(objects):
        tuples.append(line)
        if number % (2 * OBJECTS_A_CHANGE) == OBJECTS_A_CHANGE:
            tuples.extend(line for line in [next(coming, None)] if line is not None)
        elif number % (2 * OBJECTS_A_CHANGE) == 0:
            gone = f"s{next(leaving)}".encode()
            tuples.append(b'{"type":"unsubscribe","id":"%b","ts":"%b"}' % (gone, TS.encode()))
    return Stream(lines[:standing], tuples)
