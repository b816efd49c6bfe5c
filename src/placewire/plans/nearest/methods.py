"""The methods that assign `nearest` subscriptions to workers, by name, and new rows under each.

They are those of Tsuruoka et al., *Distributed Spatial-Keyword kNN Monitoring for Location-aware
Pub/Sub*: `kop` partitions by keyword (section 3.1), `dkm` (DkM-SKS, section 4) by space or by cost
and then each subscription separately. `sop` and `ps2` are in `baselines`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import read_only
from placewire.kernels.space.circles import circles_to_rectangles, rectangles_overlapping_most
from placewire.model.arrays import F64, I32, I64, U64
from placewire.plans.allocation import share_costs, share_heaviest_first
from placewire.plans.nearest.assignment import Assignment, Rule, make_assignment, price_counts
from placewire.plans.nearest.baselines import find_parts, plan_ps2near, plan_sop
from placewire.plans.nearest.sample import (
    CircleSample,
    Rectangle,
    RowObjectCounter,
    Rows,
    SampleCircles,
    count_inside,
    count_objects_by_term,
    count_terms,
    enclose_circles,
    find_radii,
    find_terms,
    list_object_terms,
    place_circles,
    quarter_rows,
    rows_on_curve,
)

HYBRID_PARTS = 4  # as many as there are quarters, so that the two compare

# The paper prints gamma1 = 100,000 and gamma2 = 20. Taken so there would be 2,000,000 subsets for
# its 20 workers, which it calls few, and a hybrid partition of 20 subscriptions at most, which it
# avoids only where there are very many. Here they are taken the other way round.
GAMMA1 = 20
GAMMA2 = 100_000


class Subset(NamedTuple):
    """Rows in curve order, the rectangle R around their circles, and what each meets there.

    `met` i64[rows] is the sum of |O_R,lambda| over the terms of a row: |O_init| times its cost.
    """

    rows: Rows
    rectangle: Rectangle
    met: I64

    @property
    def total(self) -> int:
        """|O_init| C(S_r), equation 6; a whole number, so that equal costs compare equal."""
        return int(self.met.sum())


def plan_dkm(
    sample: CircleSample, workers: int, *, gamma1: int = GAMMA1, gamma2: int = GAMMA2
) -> Assignment:
    """Algorithms 2 and 3: at least `gamma1` subsets a worker, shared out one by one.

    C(s) is the sum of P(R, lambda) = |O_R,lambda| / |O_init| over the terms of s (equations 4 and
    5). Subsets of more than `gamma2` subscriptions are split by space only.
    """
    object_counts = count_objects_by_term(sample)
    lists = find_terms(object_counts, sample.terms)
    counter = RowObjectCounter(
        object_counts, sample.term_offsets, lists, list_object_terms(object_counts)
    )
    subsets = split_subscriptions(place_circles(sample), counter, gamma1 * workers, gamma2)
    met = np.zeros(sample.subscriptions, np.int64)
    rank = np.zeros(sample.subscriptions, np.int64)
    subsets.sort(key=lambda subset: -subset.total)
    for at, subset in enumerate(subsets):
        met[subset.rows] = subset.met
        rank[subset.rows] = at
    cost = price_counts(met, sample.objects)
    worker = np.empty(sample.subscriptions, np.int32)
    # Neighbours with the same terms are updated by the same objects: they go to different workers.
    order = np.lexsort((-met, rank))
    worker[order], _ = share_costs(cost[order], np.zeros(workers))
    rectangles = np.array([s.rectangle for s in subsets]).reshape(-1, 4)
    return make_assignment(Rule("dkm", object_counts, rectangles), workers, worker, cost)


def split_subscriptions(
    circles: SampleCircles, counter: RowObjectCounter, least: int, gamma2: int
) -> list[Subset]:
    """Algorithm 2: split the subset of the largest cost until there are `least` or all are single.

    By space, or by cost if that makes the whole no dearer. More than `gamma2` subscriptions at one
    place, of which the paper does not speak, are split by cost too.
    """
    heap: list[tuple[int, int, Subset]] = []
    single: list[Subset] = []
    pushed = 0
    rows = rows_on_curve(circles)
    if rows.size:
        rectangle = enclose_circles(circles, rows)
        whole = Subset(rows, rectangle, counter.count(rows, rectangle))
        heapq.heappush(heap, (-whole.total, pushed, whole))
        pushed += 1
    while heap and len(heap) + len(single) < least:
        _, _, subset = heapq.heappop(heap)
        if subset.rows.size == 1:
            single.append(subset)
            continue
        for part in split_subset(circles, counter, subset, gamma2):
            heapq.heappush(heap, (-part.total, pushed, part))
            pushed += 1
    return single + [subset for _, _, subset in heap]


def split_subset(
    circles: SampleCircles, counter: RowObjectCounter, subset: Subset, gamma2: int
) -> list[Subset]:
    """The better of the two ways to split a subset of two subscriptions or more."""
    quarters = quarter_rows(circles, subset.rows)
    by_space = [take_part(circles, counter, subset, quarter) for quarter in quarters]
    if len(quarters) > 1 and subset.rows.size > gamma2:
        return by_space
    by_cost = [take_part(circles, counter, subset, places) for places in split_by_cost(subset)]
    if len(quarters) > 1 and sum(s.total for s in by_space) < sum(s.total for s in by_cost):
        return by_space
    return by_cost


def split_by_cost(subset: Subset) -> list[Rows]:
    """The hybrid partition: costliest first, each to the part with the least cost so far.

    Gives the places of each part's rows among those of the subset.
    """
    part = share_heaviest_first(price_counts(subset.met, 1), np.zeros(HYBRID_PARTS))
    rows_of_parts = [np.flatnonzero(part == p) for p in range(HYBRID_PARTS)]
    return [places for places in rows_of_parts if places.size]


def take_part(
    circles: SampleCircles, counter: RowObjectCounter, subset: Subset, places: slice | Rows
) -> Subset:
    """A part of a subset with its own rectangle and what its rows meet there."""
    rows = subset.rows[places]
    rectangle = enclose_circles(circles, rows)
    if (rectangle == subset.rectangle).all():  # as for most that hold an endless circle
        return Subset(rows, rectangle, subset.met[places])
    return Subset(rows, rectangle, counter.count(rows, rectangle))


def plan_kop(sample: CircleSample, workers: int) -> Assignment:
    """Algorithm 1: the costliest subscription first, each to the worker with the least cost.

    C(s) is the sum of P(lambda) = |O_lambda| / |O_init| over its terms (equation 1).
    """
    object_counts = count_terms(sample)
    counter = RowObjectCounter(
        object_counts, sample.term_offsets, find_terms(object_counts, sample.terms)
    )
    cost = price_counts(counter.count_everywhere(), sample.objects)
    return make_assignment(
        Rule("kop", object_counts), workers, share_heaviest_first(cost, np.zeros(workers)), cost
    )


NEAREST_METHODS: dict[str, Callable[[CircleSample, int], Assignment]] = {
    "kop": plan_kop,
    "sop": plan_sop,
    "dkm": plan_dkm,
    "ps2": plan_ps2near,
}


class NewRows(NamedTuple):
    """n new subscriptions; columns are as in a `CircleSample`."""

    lon: F64
    lat: F64
    k: I32
    term_offsets: I64
    terms: U64


def assign_new(
    rule: Rule, loads: F64, lon: F64, lat: F64, k: I32, term_offsets: I64, terms: U64, workers: int
) -> tuple[I32, F64, F64]:
    """The worker i32[n] and cost f64[n] of n new subscriptions in order, and the loads after.

    Each goes to the worker that has least when its turn comes, whatever the method. (For `ps2` the
    paper observes that new ones go to others than the heaviest worker, not where their leaf is.)
    """
    if loads.size != workers:
        raise ValueError(f"loads: must be of {workers} workers, got {loads.size}")
    new = NewRows(lon, lat, k, term_offsets, terms)
    cost = price_counts(COUNTS[rule.name](rule, new), rule.object_counts.objects)
    worker, after = share_costs(cost, loads)
    return worker, cost, after


def count_kop(rule: Rule, new: NewRows) -> I64:
    """Equation 1, times |O_init|."""
    return _meet(rule, new).count_everywhere()


def count_sop(rule: Rule, new: NewRows) -> I64:
    """Equation 2, times |O_init|, with the rectangle around each circle."""
    return count_inside(rule.object_counts, bound_new_rows(rule, new))


def count_dkm(rule: Rule, new: NewRows) -> I64:
    """Equation 5, times |O_init|, with the subset's rectangle that overlaps most (equation 7).

    One that overlaps none, or where there are no subsets, is counted in its own rectangle. One
    rectangle is taken after the other; in each, every term is counted once.
    """
    own = bound_new_rows(rule, new)
    chosen = rectangles_overlapping_most(read_only(rule.rectangles), own)
    alone = np.flatnonzero(chosen < 0)
    chosen[alone] = rule.rectangles.shape[0] + np.arange(alone.size)
    rectangles = np.concatenate([rule.rectangles, own[alone]])
    counter = _meet(rule, new)
    order = np.argsort(chosen, kind="stable")
    counts = np.empty(chosen.size, np.int64)
    for rows in np.split(order, np.flatnonzero(np.diff(chosen[order])) + 1):
        if rows.size:
            counts[rows] = counter.count(rows, rectangles[chosen[rows[0]]])
    return counts


def count_ps2(rule: Rule, new: NewRows) -> I64:
    """The initial objects that the part of its place and term sees."""
    part = find_parts(rule.parts, rule.object_counts, new.lon, new.lat, new.term_offsets, new.terms)
    return rule.parts.objects[part]


COUNTS: dict[str, Callable[[Rule, NewRows], I64]] = {
    "kop": count_kop,
    "sop": count_sop,
    "dkm": count_dkm,
    "ps2": count_ps2,
}


def bound_new_rows(rule: Rule, new: NewRows) -> F64:
    """The rectangles f64[n, 4] around their circles, which the initial objects make."""
    lists = find_terms(rule.object_counts, new.terms)
    radii = find_radii(rule.object_counts, new.lon, new.lat, new.k, new.term_offsets, lists)
    return circles_to_rectangles(new.lon, new.lat, radii)


def _meet(rule: Rule, new: NewRows) -> RowObjectCounter:
    return RowObjectCounter(
        rule.object_counts, new.term_offsets, find_terms(rule.object_counts, new.terms)
    )
