"""Plans that cut the world by space alone: `grid`, `kdtree`, `rtree` and `agrid`.

While nothing is known of the stream, `plan_stripes` gives each worker a stripe of the grid.
"""

from __future__ import annotations

import heapq
import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from placewire.kernels.space.cells import codes_to_columns_rows
from placewire.model.arrays import F64, I32, I64
from placewire.plans.allocation import share_heaviest_first
from placewire.plans.boolean.subset import (
    Box,
    Cut,
    SampleSubset,
    halve_box,
    loads_of_halves,
    run_along,
    take_box,
    whole_sample,
)
from placewire.plans.cost.model import LoadModel
from placewire.plans.cost.tornado import TORNADO, TornadoCost, sum_box, sum_prefixes, sum_sides
from placewire.plans.leaves import BY_WORKER, NO_SPLIT, NOTHING, Leaves, make_leaves
from placewire.plans.sample.sample import PLAN_LEVEL, SIDE, Sample

GRID_LEVEL = 6  # 64 x 64, the granularity at which PS2Stream found grid partitioning best
GRID_SIDE = 1 << GRID_LEVEL
GRID_CELLS = GRID_SIDE * GRID_SIDE


def plan_grid(sample: Sample, workers: int, cost: LoadModel) -> Leaves:
    """Heaviest cell first, each to the worker with the least load so far.

    Cells that have nothing stay in stripes: nearby ones are likely to become busy together.
    """
    columns, rows = grid_columns_rows()
    objects, subscriptions = count_grid(sample)
    loads = cost.of_counts(objects[columns, rows], subscriptions[columns, rows])
    cell_worker = stripe_cells(workers)
    busy = np.flatnonzero(loads > 0)
    cell_worker[busy] = share_heaviest_first(loads[busy], np.zeros(workers))
    return grid_leaves("grid", workers, cell_worker)


def plan_stripes(workers: int) -> Leaves:
    """Nothing is known yet: stripes of the grid along the Z-curve, neighbours together."""
    return grid_leaves("stripes", workers, stripe_cells(workers))


def stripe_cells(workers: int) -> I32:
    """The worker of each grid cell, in code order, when the curve is cut into equal stripes."""
    return ((np.arange(GRID_CELLS, dtype=np.int64) * workers) // GRID_CELLS).astype(np.int32)


def grid_columns_rows() -> tuple[I32, I32]:
    """Column and row of each grid cell, in code order."""
    columns, rows = codes_to_columns_rows(np.arange(GRID_CELLS, dtype=np.uint32))
    return columns, rows


def grid_leaves(name: str, workers: int, cell_worker: I32) -> Leaves:
    """A leaf for every grid cell, in code order."""
    columns, rows = grid_columns_rows()
    width = SIDE // GRID_SIDE
    edges = np.stack([columns, rows, columns + 1, rows + 1], 1) * width
    boxes = [(west, south, east, north) for west, south, east, north in edges.tolist()]
    return make_leaves(name, workers, NOTHING, boxes, [NO_SPLIT] * GRID_CELLS, cell_worker.tolist())


def count_grid(sample: Sample) -> tuple[F64, I64]:
    """What the objects inside each grid cell cost and the subscriptions that touch it.

    f64[columns, rows] and i64[columns, rows].
    """
    shift = PLAN_LEVEL - GRID_LEVEL
    places = (sample.object_column >> shift) * GRID_SIDE + (sample.object_row >> shift)
    work = sample.object_work if sample.object_work.size else None
    objects = np.bincount(places, work, GRID_CELLS).reshape(GRID_SIDE, GRID_SIDE)

    west, south, east, north = (sample.cell >> shift).T
    crosses = sample.cell[:, 0] > sample.cell[:, 2]
    # One that crosses the antimeridian is two ranges, or a whole turn if they meet in a grid cell.
    turn, split = crosses & (west <= east), crosses & (west > east)
    corners = np.zeros((GRID_SIDE + 1, GRID_SIDE + 1), np.int64)
    mark_ranges(
        corners, np.where(turn, 0, west), south, np.where(crosses, GRID_SIDE - 1, east), north
    )
    mark_ranges(corners, np.zeros_like(west)[split], south[split], east[split], north[split])
    subscriptions = corners.cumsum(0).cumsum(1)[:-1, :-1]
    return objects.astype(np.float64), subscriptions


def mark_ranges(corners: I64, west: I32, south: I32, east: I32, north: I32) -> None:
    """Add ranges (all ends inside) to the corners whose running sums count ranges in each cell."""
    side = corners.shape[0]
    for columns, rows, sign in (
        (west, south, 1),
        (east + 1, south, -1),
        (west, north + 1, -1),
        (east + 1, north + 1, 1),
    ):
        counts = np.bincount(columns.astype(np.int64) * side + rows, minlength=side * side)
        corners += sign * counts.reshape(side, side)


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


# Few, since every further tile copies subscriptions to the workers of its neighbours: of 2, 4, 8
# and 16 tiles a worker, 2 left the busiest worker the least load on posts in the United States.
TILES_PER_WORKER = 2


def plan_rtree(sample: Sample, workers: int, cost: LoadModel) -> Leaves:
    """Sort-tile-recursive packing: slices of equally many objects, each cut into tiles likewise.

    A tile reaches to where the next one begins and the outermost to the edges of the world, so
    that they tile it. Heaviest tile first, each to the worker with the least load so far.
    """
    tiles = TILES_PER_WORKER * workers
    slices = math.isqrt(tiles)
    everything = whole_sample(sample)
    boxes: list[Box] = []
    loads: list[F64] = []
    before = np.arange(slices + 1) * tiles // slices  # tiles west of each slice; not always equal
    edges, last = edges_of_shares(sample.object_column, before)
    for (west, east), quota in zip(pairwise(edges), np.diff(before[last]).tolist(), strict=True):
        subset = take_box(sample, everything, (west, 0, east, SIDE))
        ends, _ = edges_of_shares(sample.object_row[subset.objects], np.arange(quota + 1))
        boxes += [(west, south, east, north) for south, north in pairwise(ends)]
        loads.append(loads_of_tiles(sample, subset, ends, cost))
    tile_worker = share_heaviest_first(np.concatenate(loads), np.zeros(workers))
    return make_leaves(
        "rtree", workers, NOTHING, boxes, [NO_SPLIT] * len(boxes), tile_worker.tolist()
    )


def edges_of_shares(places: I32, shares: I64) -> tuple[list[int], I64]:
    """Rising edges from 0 to SIDE, with places below them as `shares` (rising from 0) say.

    Where one cell has several shares their edges are one. Each edge has the number of the last of
    its shares. Without places the shares are of the length.
    """
    wanted = shares / shares[-1]
    if places.size == 0:
        edges = (SIDE * wanted).astype(np.int64)
    else:
        running = np.bincount(places, minlength=SIDE).cumsum()
        edges = 1 + np.searchsorted(running, places.size * wanted)
        edges[0], edges[-1] = 0, SIDE
    distinct = np.unique(edges)
    return distinct.tolist(), np.searchsorted(edges, distinct, side="right") - 1


def loads_of_tiles(sample: Sample, subset: SampleSubset, edges: list[int], cost: LoadModel) -> F64:
    """The load of each tile of a slice, between two neighbouring rows of `edges`."""
    objects, begun, ended = (running[edges] for running in run_along(sample, subset, 1))
    # Touches a tile: begins before its end and does not end before its beginning.
    return cost.of_counts(np.diff(objects), begun[1:] - ended[:-1])


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


def cut_partitions(sums: I64, partitions: int) -> list[Box]:
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


def find_cut(sums: I64, box: Box) -> Cut | None:
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
