"""Method `sop`, space-oriented partition: quarters of the world, by what falls into their circles.

The space baseline of Tsuruoka et al. (section 3.2; see `plans/nearest/methods.py`). A quarter
without subscriptions is no subset.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.plans.boolean.allocation import share_heaviest_first
from placewire.plans.nearest.assignment import Assignment, Rule, make_assignment, price_counts
from placewire.plans.nearest.counts import ObjectCounts, count_inside, count_objects_by_term
from placewire.plans.nearest.sample import (
    Circles,
    CircleSample,
    Rows,
    enclose_circles,
    place_circles,
    quarter_rows,
    rows_on_curve,
)


class Quarter(NamedTuple):
    """The rows of a cell, in curve order, and how many initial objects are around them: |O_R|."""

    rows: Rows
    objects: int


def plan_sop(sample: CircleSample, workers: int, *, theta: int = 20) -> Assignment:
    """Split until there are `theta` subsets a worker, and share these out whole.

    C(S_r) = P(R) |S_r| (equation 3), with R around the circles of S_r; so that each subscription of
    a subset costs P(R) = |O_R| / |O_init| (equation 2).
    """
    object_counts = count_objects_by_term(sample)
    quarters = split_space(object_counts, place_circles(sample), theta * workers)
    prices = price_counts(np.array([q.objects for q in quarters], np.int64), sample.objects)
    sizes = np.array([q.rows.size for q in quarters], np.int64)
    chosen = share_heaviest_first(prices * sizes, workers)
    worker = np.empty(sample.subscriptions, np.int32)
    cost: NDArray[np.float64] = np.empty(sample.subscriptions)
    for quarter, price, one in zip(quarters, prices, chosen, strict=True):
        worker[quarter.rows] = one
        cost[quarter.rows] = price
    return make_assignment(Rule("sop", object_counts), workers, worker, cost)


def split_space(object_counts: ObjectCounts, circles: Circles, least: int) -> list[Quarter]:
    """Quarter the subset of the largest cost until there are `least`, or none can be quartered."""
    heap: list[tuple[int, int, Quarter]] = []
    solid: list[Quarter] = []  # at one place
    pushed = 0
    rows = rows_on_curve(circles)
    if rows.size:
        whole = measure_quarter(object_counts, circles, rows)
        heapq.heappush(heap, (-whole.objects * rows.size, pushed, whole))
        pushed += 1
    while heap and len(heap) + len(solid) < least:
        _, _, heaviest = heapq.heappop(heap)
        parts = quarter_rows(circles, heaviest.rows)
        if len(parts) == 1:
            solid.append(heaviest)
            continue
        for part in parts:
            quarter = measure_quarter(object_counts, circles, heaviest.rows[part])
            heapq.heappush(heap, (-quarter.objects * quarter.rows.size, pushed, quarter))
            pushed += 1
    return solid + [quarter for _, _, quarter in heap]


def measure_quarter(object_counts: ObjectCounts, circles: Circles, rows: Rows) -> Quarter:
    """A quarter with the objects around it."""
    return Quarter(rows, int(count_inside(object_counts, enclose_circles(circles, rows)[None])[0]))
