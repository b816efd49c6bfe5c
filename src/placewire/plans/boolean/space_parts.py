"""Cutting a subset by space: boxes as a kd-tree cuts them, each cut where it levels load."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.plans.boolean.subset import SampleSubset, halve_box, take_box, weigh_subset
from placewire.plans.cost.model import LoadModel
from placewire.plans.kernels.parts import spans_along_axis
from placewire.plans.sample.sample import Sample


def find_cut(
    sample: Sample, subset: SampleSubset, cost: LoadModel, axis: int, low_share: float = 0.5
) -> Cut | None:
    """The cut across an axis that best gives the low side its share of the load.

    None if no cut leaves both sides lighter than the whole. Of equal places, as in an empty
    stretch, the middle one is taken.
    """
    low, high, whole = loads_of_halves(sample, subset, axis, cost)
    worst = np.maximum(low / low_share, high / (1.0 - low_share))
    worst[np.maximum(low, high) >= whole] = np.inf
    if not np.isfinite(worst).any():
        return None
    best = np.flatnonzero(worst == worst.min())
    at = best[best.size // 2]
    return Cut(axis, int(subset.box[axis] + at + 1), float(worst[at]))


def find_best_cut(
    sample: Sample, subset: SampleSubset, cost: LoadModel, low_share: float = 0.5
) -> Cut | None:
    """The cut of either axis whose heavier side comes out lighter.

    That is the one that levels better, repeats fewer subscriptions, or both.
    """
    cuts = [find_cut(sample, subset, cost, axis, low_share) for axis in (0, 1)]
    return min((cut for cut in cuts if cut is not None), key=lambda cut: cut.worst, default=None)


def make_cut(sample: Sample, subset: SampleSubset, cut: Cut) -> tuple[SampleSubset, SampleSubset]:
    """The two sides of a cut."""
    low, high = halve_box(subset.box, cut.axis, cut.at)
    return take_box(sample, subset, low), take_box(sample, subset, high)


def cut_space(
    sample: Sample, subset: SampleSubset, parts: int, cost: LoadModel
) -> list[SampleSubset]:
    """A subset in `parts` boxes, or in fewer where no further cut would lighten anything."""
    if parts == 1:
        return [subset]
    low_parts = parts // 2
    cut = find_best_cut(sample, subset, cost, low_parts / parts)
    if cut is None:
        return [subset]
    low, high = make_cut(sample, subset, cut)
    lows = cut_space(sample, low, low_parts, cost)
    # What the low side could not be cut into is left to the high one.
    return lows + cut_space(sample, high, parts - len(lows), cost)


def price_space(
    sample: Sample, subset: SampleSubset, most: int, cost: LoadModel
) -> NDArray[np.float64]:
    """About the loads in all of a subset cut by space in 1 .. `most` parts: f64[most].

    Infinite where there are not so many parts. Found in one go, by halving the heaviest box again
    and again; `cut_space` gives every part the same share instead, for nearly the same sum.
    """
    prices = np.full(most, np.inf)
    boxes = [subset]
    loads = [weigh_subset(sample, subset, cost)]
    solid = 0.0  # the load of the boxes that turned out to have no cut
    for parts in range(1, most + 1):
        prices[parts - 1] = solid + sum(loads)
        cut = None
        while parts < most and boxes and cut is None:
            at = int(np.argmax(loads))
            heaviest, load = boxes.pop(at), loads.pop(at)
            cut = find_best_cut(sample, heaviest, cost)
            solid += load if cut is None else 0.0
        if cut is None:
            break
        sides = make_cut(sample, heaviest, cut)
        boxes += sides
        loads += [weigh_subset(sample, side, cost) for side in sides]
    return prices


class Cut(NamedTuple):
    """A cut before column (axis 0) or row (axis 1) `at`; `worst` is its heavier side's load.

    Where the sides are to be cut again into several parts, it is the load of one such part.
    """

    axis: int
    at: int
    worst: float


class Running(NamedTuple):
    """What of a subset lies before each of the lines between the cells of an axis: [length + 1].

    `objects` is what they cost; `begun` and `ended` count the subscriptions whose first and whose
    last cell inside the box is before the line.
    """

    objects: NDArray[Any]
    begun: NDArray[np.int64]
    ended: NDArray[np.int64]


class Sides(NamedTuple):
    """The loads below and above every cut of an axis, f64[length - 1] both, and of the whole.

    All are of the same running sums: a side that has everything weighs what the whole does.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    whole: float


def run_along(sample: Sample, subset: SampleSubset, axis: int) -> Running:
    """Run along an axis of a subset's box."""
    first, end = subset.box[axis], subset.box[axis + 2]
    places = (sample.object_column, sample.object_row)[axis][subset.objects] - first
    work = sample.object_work[subset.objects] if sample.object_work.size else None
    begins, ends = spans_along_axis(
        sample.cell, subset.subscriptions, np.array(subset.box, np.int32), axis
    )
    return Running(*map(_running, (np.bincount(places, work, end - first), begins, ends)))


def loads_of_halves(sample: Sample, subset: SampleSubset, axis: int, cost: LoadModel) -> Sides:
    """What every cut between two cells of an axis would leave on its sides."""
    objects, begun, ended = run_along(sample, subset, axis)
    return Sides(
        cost.of_counts(objects[1:-1], begun[1:-1]),
        cost.of_counts(objects[-1] - objects[1:-1], ended[-1] - ended[1:-1]),
        cost.of_counts(float(objects[-1]), float(begun[-1])),
    )


def _running(counts: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([[0], np.cumsum(counts)])
