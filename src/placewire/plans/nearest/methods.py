"""The methods that assign `nearest` subscriptions to workers, by name, and new rows under each.

They are those of Tsuruoka et al., *Distributed Spatial-Keyword kNN Monitoring for Location-aware
Pub/Sub*. `kop`, the keyword-oriented partition of section 3.1, is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kernels.space.circles import circles_to_rectangles, rectangles_overlapping_most
from placewire.plans.boolean.allocation import share_costs, share_heaviest_first
from placewire.plans.nearest.assignment import (
    Assignment,
    Rule,
    make_assignment,
    price_counts,
)
from placewire.plans.nearest.baselines.ps2 import find_parts, plan_ps2near
from placewire.plans.nearest.baselines.sop import plan_sop
from placewire.plans.nearest.counts import (
    RowObjectCounter,
    count_inside,
    count_terms,
    find_radii,
    find_terms,
)
from placewire.plans.nearest.dkm import plan_dkm
from placewire.plans.nearest.sample import CircleSample


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
        Rule("kop", object_counts), workers, share_heaviest_first(cost, workers), cost
    )


NEAREST_METHODS: dict[str, Callable[[CircleSample, int], Assignment]] = {
    "kop": plan_kop,
    "sop": plan_sop,
    "dkm": plan_dkm,
    "ps2": plan_ps2near,
}


class NewRows(NamedTuple):
    """n new subscriptions; columns are as in a `CircleSample`."""

    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    k: NDArray[np.int32]
    term_offsets: NDArray[np.int64]
    terms: NDArray[np.uint64]


def assign_new(
    rule: Rule,
    loads: NDArray[np.float64],
    lon: NDArray[np.float64],
    lat: NDArray[np.float64],
    k: NDArray[np.int32],
    term_offsets: NDArray[np.int64],
    terms: NDArray[np.uint64],
    workers: int,
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
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


def count_kop(rule: Rule, new: NewRows) -> NDArray[np.int64]:
    """Equation 1, times |O_init|."""
    return _meet(rule, new).count_everywhere()


def count_sop(rule: Rule, new: NewRows) -> NDArray[np.int64]:
    """Equation 2, times |O_init|, with the rectangle around each circle."""
    return count_inside(rule.object_counts, bound_new_rows(rule, new))


def count_dkm(rule: Rule, new: NewRows) -> NDArray[np.int64]:
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


def count_ps2(rule: Rule, new: NewRows) -> NDArray[np.int64]:
    """The initial objects that the part of its place and term sees."""
    part = find_parts(rule.parts, rule.object_counts, new.lon, new.lat, new.term_offsets, new.terms)
    return rule.parts.objects[part]


COUNTS: dict[str, Callable[[Rule, NewRows], NDArray[np.int64]]] = {
    "kop": count_kop,
    "sop": count_sop,
    "dkm": count_dkm,
    "ps2": count_ps2,
}


def bound_new_rows(rule: Rule, new: NewRows) -> NDArray[np.float64]:
    """The rectangles f64[n, 4] around their circles, which the initial objects make."""
    lists = find_terms(rule.object_counts, new.terms)
    radii = find_radii(rule.object_counts, new.lon, new.lat, new.k, new.term_offsets, lists)
    rectangles: NDArray[np.float64] = circles_to_rectangles(new.lon, new.lat, radii)
    return rectangles


def _meet(rule: Rule, new: NewRows) -> RowObjectCounter:
    return RowObjectCounter(
        rule.object_counts, new.term_offsets, find_terms(rule.object_counts, new.terms)
    )
