"""Samples at the limits: empty, one place, one term, the poles."""

from __future__ import annotations

import numpy as np

from placewire.plans.sample.sample import ANY, SIDE, Sample

Objects = list[tuple[int, int, list[int]]]
Subscriptions = list[tuple[tuple[int, int, int, int], list[int]]]

LAST = SIDE - 1


def sample_of(objects: Objects, subscriptions: Subscriptions, terms: int = 8) -> Sample:
    """A sample of (column, row, terms) and (cell range, posts)."""
    flat = [term for thing in objects for term in thing[2]]
    return Sample(
        object_column=np.array([thing[0] for thing in objects], np.int32),
        object_row=np.array([thing[1] for thing in objects], np.int32),
        term_offsets=np.cumsum([0, *(len(thing[2]) for thing in objects)], dtype=np.int64),
        terms=np.array(flat, np.int32),
        cell=np.array([wish[0] for wish in subscriptions], np.int32).reshape(-1, 4),
        post_offsets=np.cumsum([0, *(len(wish[1]) for wish in subscriptions)], dtype=np.int64),
        posts=np.array([post for wish in subscriptions for post in wish[1]], np.int32),
        lexicon=np.arange(terms, dtype=np.uint64) * np.uint64(977),
        frequency=np.bincount(np.array(flat, np.int64), minlength=terms),
    )


ODD_SAMPLES = {
    "nothing": sample_of([], []),
    "nothing, not even words": sample_of([], [], 0),
    "no objects": sample_of([], [((5, 5, 9, 9), [1, 2]), ((700, 5, 709, 9), [ANY])]),
    "no subscriptions": sample_of([(3, 3, [1]), (500, 90, [])], []),
    "one cell": sample_of([(77, 88, [1, 2])] * 50, [((77, 88, 77, 88), [1])] * 20),
    "last cell": sample_of([(LAST, LAST, [1])] * 50, [((LAST, LAST, LAST, LAST), [1])] * 20),
    "one column": sample_of([(77, k, [1]) for k in range(40)], [((0, 0, 99, 20), [1])] * 20),
    "corners": sample_of([(0, 0, [1]), (LAST, LAST, [1])], [((LAST, 0, 0, LAST), [1])]),
    "over the antimeridian": sample_of(
        [(k % 7, k, [k % 3]) for k in range(90)], [((8190, k, 3, k + 9), [1]) for k in range(80)]
    ),
    "world": sample_of([(k * 80, k * 9, [0]) for k in range(100)], [((0, 0, LAST, LAST), [0])] * 9),
    "no term": sample_of(
        [(k, k, []) for k in range(100)], [((k, k, k, k), [ANY]) for k in range(99)]
    ),
    "never met": sample_of([(k, k, [0]) for k in range(100)], [((0, 0, 200, 200), [1])]),
    "no posts": sample_of([(k, k, [0]) for k in range(100)], [((0, 0, 200, 200), [])]),
}


def graham(loads: list[float], workers: int) -> list[int]:
    """The rule as it is told, without a heap."""
    carried, group = [0.0] * workers, [0] * len(loads)
    for at in sorted(range(len(loads)), key=lambda at: (-loads[at], at)):
        group[at] = carried.index(min(carried))
        carried[group[at]] += loads[at]
    return group
