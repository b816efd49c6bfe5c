"""Plan `grid`: 64 x 64 equal cells, grouped over workers by load; and the blind plan of stripes."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.space.cells import codes_to_columns_rows
from placewire.plans.cost.model import LoadModel
from placewire.plans.leaves import NO_SPLIT, NOTHING, Leaves, make_leaves
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
    cell_worker[busy] = group_by_load(loads[busy], np.zeros(workers))
    return grid_leaves("grid", workers, cell_worker)


def plan_stripes(workers: int) -> Leaves:
    """Nothing is known yet: stripes of the grid along the Z-curve, neighbours together."""
    return grid_leaves("stripes", workers, stripe_cells(workers))


def stripe_cells(workers: int) -> NDArray[np.int32]:
    """The worker of each grid cell, in code order, when the curve is cut into equal stripes."""
    return ((np.arange(GRID_CELLS, dtype=np.int64) * workers) // GRID_CELLS).astype(np.int32)


def grid_columns_rows() -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Column and row of each grid cell, in code order."""
    columns, rows = codes_to_columns_rows(np.arange(GRID_CELLS, dtype=np.uint32))
    return columns, rows


def grid_leaves(name: str, workers: int, cell_worker: NDArray[np.int32]) -> Leaves:
    """A leaf for every grid cell, in code order."""
    columns, rows = grid_columns_rows()
    width = SIDE // GRID_SIDE
    edges = np.stack([columns, rows, columns + 1, rows + 1], 1) * width
    boxes = [(west, south, east, north) for west, south, east, north in edges.tolist()]
    return make_leaves(name, workers, NOTHING, boxes, [NO_SPLIT] * GRID_CELLS, cell_worker.tolist())


def count_grid(sample: Sample) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
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


def mark_ranges(
    corners: NDArray[np.int64],
    west: NDArray[np.int32],
    south: NDArray[np.int32],
    east: NDArray[np.int32],
    north: NDArray[np.int32],
) -> None:
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


def group_by_load(loads: NDArray[np.float64], taken: NDArray[np.float64]) -> NDArray[np.int32]:
    """Graham's rule: heaviest first, each to the group with the least load so far.

    `taken` f64[groups] is what the groups carry already; returns the group of each load.
    """
    group = np.empty(loads.size, np.int32)
    heap = [(load, at) for at, load in enumerate(taken.tolist())]
    heapq.heapify(heap)
    for item, load in zip(*_heaviest_first(loads), strict=True):
        least, at = heap[0]
        group[item] = at
        heapq.heapreplace(heap, (least + load, at))
    return group


def _heaviest_first(loads: NDArray[np.float64]) -> tuple[list[int], list[float]]:
    order = np.argsort(-loads, kind="stable")
    return order.tolist(), loads[order].tolist()
