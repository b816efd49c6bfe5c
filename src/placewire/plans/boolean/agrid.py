"""Plan `agrid`: Tornado's partitions, made by cutting the costliest until there are enough."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from placewire.plans.boolean.fine_grid import sum_box, sum_prefixes, sum_sides
from placewire.plans.boolean.space_parts import Cut
from placewire.plans.boolean.subset import Box, halve_box
from placewire.plans.cost.tornado import TORNADO, TornadoCost
from placewire.plans.leaves import BY_WORKER, NO_SPLIT, Leaves, make_leaves
from placewire.plans.sample.sample import Sample


def plan_agrid(sample: Sample, workers: int, cost: TornadoCost = TORNADO) -> Leaves:
    """A leaf for each worker, or fewer where the fine grid has fewer cells."""
    grid = cost.grid(sample)
    boxes = cut_partitions(sum_prefixes(cost.of_cells(sample, grid)), workers)
    return make_leaves(
        name="agrid",
        workers=workers,
        summary=BY_WORKER,
        boxes=[grid.in_plan_cells(box) for box in boxes],
        splits=[NO_SPLIT] * len(boxes),
        part_workers=list(range(len(boxes))),
    )


def cut_partitions(sums: NDArray[np.int64], partitions: int) -> list[Box]:
    """Boxes of fine cells: the costliest is cut, until there are `partitions` or only cells.

    A box whose cost is all in one cell is no lighter after a cut, so it waits until no other can be
    cut: the largest cost stays what it is and the workers go where they help.
    """
    whole = (0, 0, sums.shape[0] - 1, sums.shape[1] - 1)
    single: list[Box] = []
    queue: list[tuple[bool, int, int, Box, Cut]] = []

    def admit(box: Box) -> None:
        cut = find_cut(sums, box)
        if cut is None:
            single.append(box)
            return
        cost = sum_box(sums, box)
        area = (box[2] - box[0]) * (box[3] - box[1])
        heapq.heappush(queue, (cut.worst == cost, -cost, -area, box, cut))

    admit(whole)
    while queue and len(queue) + len(single) < partitions:
        _, _, _, box, cut = heapq.heappop(queue)
        for half in halve_box(box, cut.axis, cut.at):
            admit(half)
    return sorted(single + [box for _, _, _, box, _ in queue])


def find_cut(sums: NDArray[np.int64], box: Box) -> Cut | None:
    """The cut whose costlier side is cheapest, of equals the one nearest the middle.

    None for a single cell. Each of the candidates is one difference of prefix sums.
    """
    west, south, east, north = box
    width, height = east - west, north - south
    if width * height == 1:
        return None
    low = np.concatenate([sum_sides(sums, box, 0), sum_sides(sums, box, 1)])
    larger = np.maximum(low, sum_box(sums, box) - low)
    column, row = np.arange(1, width), np.arange(1, height)
    area = np.concatenate(
        [np.maximum(column, width - column) * height, np.maximum(row, height - row) * width]
    )
    best = int(np.lexsort((area, larger))[0])
    if best < width - 1:
        return Cut(0, west + 1 + best, int(larger[best]))
    return Cut(1, south + 1 + best - (width - 1), int(larger[best]))
