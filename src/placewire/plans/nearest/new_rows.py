"""New `nearest` subscriptions: priced by a method's rule, each to the least loaded worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kernels.space.circles import circles_to_rectangles, rectangles_overlapping_most
from placewire.plans.boolean.allocation import share_costs
from placewire.plans.nearest.assignment import Rule, price_counts
from placewire.plans.nearest.baselines.ps2 import find_parts
from placewire.plans.nearest.counts import Meetings, count_inside, find_radii, find_terms


class Newcomers(NamedTuple):
    """n new subscriptions; columns are as in a `BallSample`."""

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
    new = Newcomers(lon, lat, k, term_offsets, terms)
    cost = price_counts(COUNTS[rule.name](rule, new), rule.census.objects)
    worker, after = share_costs(cost, loads)
    return worker, cost, after


def count_kop(rule: Rule, new: Newcomers) -> NDArray[np.int64]:
    """Equation 1, times |O_init|."""
    return _meet(rule, new).count_everywhere()


def count_sop(rule: Rule, new: Newcomers) -> NDArray[np.int64]:
    """Equation 2, times |O_init|, with the rectangle around each circle."""
    return count_inside(rule.census, bound_newcomers(rule, new))


def count_dkm(rule: Rule, new: Newcomers) -> NDArray[np.int64]:
    """Equation 5, times |O_init|, with the subset's rectangle that overlaps most (equation 7).

    One that overlaps none, or where there are no subsets, is counted in its own rectangle. One
    rectangle is taken after the other; in each, every term is counted once.
    """
    own = bound_newcomers(rule, new)
    chosen = rectangles_overlapping_most(read_only(rule.rectangles), own)
    alone = np.flatnonzero(chosen < 0)
    chosen[alone] = rule.rectangles.shape[0] + np.arange(alone.size)
    rectangles = np.concatenate([rule.rectangles, own[alone]])
    meetings = _meet(rule, new)
    order = np.argsort(chosen, kind="stable")
    counts = np.empty(chosen.size, np.int64)
    for rows in np.split(order, np.flatnonzero(np.diff(chosen[order])) + 1):
        if rows.size:
            counts[rows] = meetings.count(rows, rectangles[chosen[rows[0]]])
    return counts


def count_ps2(rule: Rule, new: Newcomers) -> NDArray[np.int64]:
    """The initial objects that the part of its place and term sees."""
    part = find_parts(rule.parts, rule.census, new.lon, new.lat, new.term_offsets, new.terms)
    return rule.parts.objects[part]


COUNTS: dict[str, Callable[[Rule, Newcomers], NDArray[np.int64]]] = {
    "kop": count_kop,
    "sop": count_sop,
    "dkm": count_dkm,
    "ps2": count_ps2,
}


def bound_newcomers(rule: Rule, new: Newcomers) -> NDArray[np.float64]:
    """The rectangles f64[n, 4] around their circles, which the initial objects make."""
    lists = find_terms(rule.census, new.terms)
    radii = find_radii(rule.census, new.lon, new.lat, new.k, new.term_offsets, lists)
    rectangles: NDArray[np.float64] = circles_to_rectangles(new.lon, new.lat, radii)
    return rectangles


def _meet(rule: Rule, new: Newcomers) -> Meetings:
    return Meetings(rule.census, new.term_offsets, find_terms(rule.census, new.terms))
