"""Plans `shared` and `grid`: match where read, or uniform cells grouped over workers by load."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

GRID_LEVEL = 6  # 64 x 64, the granularity at which PS2Stream found grid partitioning best


class GridPlan(NamedTuple):
    """A worker for every cell of the grid, in code order: i32[4096]."""

    version: int
    workers: int
    cell_worker: NDArray[np.int32]


def plan_blindly(workers: int) -> GridPlan:
    """Nothing is known yet: stripes along the curve, neighbours together."""
    cells = 1 << (2 * GRID_LEVEL)
    stripes = (np.arange(cells, dtype=np.int64) * workers) // cells
    return GridPlan(0, workers, stripes.astype(np.int32))


def plan_by_load(loads: NDArray[np.int64], workers: int, version: int) -> GridPlan:
    """Heaviest cell first, each to the worker with the least load so far (Graham's rule).

    Cells that have seen nothing stay in stripes: nearby ones are likely to become busy together.
    """
    cell_worker = plan_blindly(workers).cell_worker.copy()
    heap = [(0, worker) for worker in range(workers)]
    for cell in np.argsort(-loads, kind="stable"):
        if loads[cell] == 0:
            break
        load, worker = heapq.heappop(heap)
        cell_worker[cell] = worker
        heapq.heappush(heap, (load + int(loads[cell]), worker))
    return GridPlan(version, workers, cell_worker)
