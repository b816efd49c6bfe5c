"""Plan `kdtree`: the world cut in two by load, again and again, until every worker has one leaf."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.plans.boolean.space_parts import loads_of_halves
from placewire.plans.boolean.subset import Box, SampleSubset, halve_box, take_box, whole_sample
from placewire.plans.cost.model import LoadModel
from placewire.plans.leaves import NO_SPLIT, NOTHING, Leaves, make_leaves
from placewire.plans.sample.sample import Sample


class WorkerCut(NamedTuple):
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
        subset, share = nodes.pop()
        if share == 1:
            boxes.append(subset.box)
            continue
        cut = min(best_cut(sample, subset, share, axis, cost) for axis in (0, 1))
        low, high = halve_box(subset.box, cut.axis, cut.at)
        nodes.append((take_box(sample, subset, high), share - cut.low_workers))
        nodes.append((take_box(sample, subset, low), cut.low_workers))
    return make_leaves(
        "kdtree", workers, NOTHING, boxes, [NO_SPLIT] * workers, list(range(workers))
    )


def best_cut(
    sample: Sample, subset: SampleSubset, workers: int, axis: int, cost: LoadModel
) -> WorkerCut:
    """The cut of one axis that leaves the least load to a worker, both sides counted per worker.

    Each side gets half of the workers (the high side one more if they are odd), unless it has
    fewer cells than that.
    """
    first, end = subset.box[axis], subset.box[axis + 2]
    across = subset.box[3 - axis] - subset.box[1 - axis]
    length = end - first
    if length < 2:
        return WorkerCut(np.inf, np.inf, end, axis, 0)
    low_cells = np.arange(1, length) * across
    fewest = np.maximum(workers - (length * across - low_cells), 1)
    low_workers = np.clip(workers // 2, fewest, np.minimum(low_cells, workers - 1))
    low, high, _ = loads_of_halves(sample, subset, axis, cost)
    loads = np.maximum(low / low_workers, high / (workers - low_workers))
    least = loads.min()
    equal = np.flatnonzero(loads == least)
    off_centre = np.abs(2 * (equal + 1) - length)
    pick = int(off_centre.argmin())
    at = int(equal[pick])
    rank = float(off_centre[pick] - length)
    return WorkerCut(float(least), rank, first + at + 1, axis, int(low_workers[at]))
