"""Plan `kdtree`: the world cut in two by load, again and again, until every worker has one leaf."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.plan.cost import LoadModel
from placewire.plan.leaves import NO_SPLIT, NOTHING, Leaves, make_leaves
from placewire.plan.portion import Box, Portion, halve_box, take_box, whole_sample
from placewire.plan.sample import Sample


class Cut(NamedTuple):
    """A cut before cell `at` of an axis and the workers of its low side; the best compares least.

    `load` is the larger load of a worker on either side. Of equal loads the cut nearest to the
    middle of the longer axis has the least `rank`, so that empty land is shared out too.
    """

    load: float
    rank: float
    at: int
    axis: int
    low_workers: int


def plan_kdtree(sample: Sample, workers: int, cost: LoadModel) -> Leaves:
    """One leaf a worker: of all cuts of either axis each node takes the one of least load."""
    boxes: list[Box] = []
    nodes = [(whole_sample(sample), workers)]
    while nodes:
        portion, share = nodes.pop()
        if share == 1:
            boxes.append(portion.box)
            continue
        cut = min(best_cut(sample, portion, share, axis, cost) for axis in (0, 1))
        low, high = halve_box(portion.box, cut.axis, cut.at)
        nodes.append((take_box(sample, portion, high), share - cut.low_workers))
        nodes.append((take_box(sample, portion, low), cut.low_workers))
    return make_leaves(
        "kdtree", workers, NOTHING, boxes, [NO_SPLIT] * workers, list(range(workers))
    )


def best_cut(sample: Sample, portion: Portion, workers: int, axis: int, cost: LoadModel) -> Cut:
    """The cut of one axis that leaves the least load to a worker, both sides counted per worker.

    Each side gets half of the workers (the high side one more if they are odd), unless it has
    fewer cells than that.
    """
    first, end = portion.box[axis], portion.box[axis + 2]
    across = portion.box[3 - axis] - portion.box[1 - axis]
    length = end - first
    if length < 2:
        return Cut(np.inf, np.inf, end, axis, 0)
    low_cells = np.arange(1, length) * across
    fewest = np.maximum(workers - (length * across - low_cells), 1)
    low_workers = np.clip(workers // 2, fewest, np.minimum(low_cells, workers - 1))
    low, high = loads_beside_cuts(sample, portion, axis, cost)
    loads = np.maximum(low / low_workers, high / (workers - low_workers))
    least = loads.min()
    equal = np.flatnonzero(loads == least)
    off_centre = np.abs(2 * (equal + 1) - length)
    pick = int(off_centre.argmin())
    at = int(equal[pick])
    rank = float(off_centre[pick] - length)
    return Cut(float(least), rank, first + at + 1, axis, int(low_workers[at]))


def loads_beside_cuts(
    sample: Sample, portion: Portion, axis: int, cost: LoadModel
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The loads below and above every cut between two cells of an axis: f64[length - 1] both."""
    first, end = portion.box[axis], portion.box[axis + 2]
    places = (sample.object_column, sample.object_row)[axis][portion.objects]
    work = sample.object_work[portion.objects] if sample.object_work.size else None
    objects = _running(places - first, end - first, work)
    lowest, highest = extents_inside(sample, portion, axis)
    begun = _running(lowest - first, end - first)
    ended = _running(highest - first, end - first)
    return (
        cost.of_counts(objects[:-1], begun[:-1]),
        cost.of_counts(objects[-1] - objects[:-1], ended[-1] - ended[:-1]),
    )


def extents_inside(
    sample: Sample, portion: Portion, axis: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The lowest and the highest cell of an axis that each subscription has inside the box."""
    first, end = portion.box[axis], portion.box[axis + 2]
    low = sample.cell[portion.subscriptions, axis]
    high = sample.cell[portion.subscriptions, axis + 2]
    # One that crosses the antimeridian covers all from `low` on and all up to `high`.
    crosses = low > high
    lowest = np.where(crosses & (high >= first), first, np.maximum(low, first))
    highest = np.where(crosses & (low < end), end - 1, np.minimum(high, end - 1))
    return lowest, highest


def _running(
    places: NDArray[np.int32], length: int, weights: NDArray[np.float64] | None = None
) -> NDArray[Any]:
    """How many places lie in each cell or before it, or what they weigh."""
    return np.bincount(places, weights, length).cumsum()
