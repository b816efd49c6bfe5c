"""Neighbour-based routing of ranges: Tornado's partition map over the grid of a plan's leaves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.dominance import neighbours_overlapping_ranges
from placewire.kernels.jit import read_only
from placewire.plan.finegrid import make_grid
from placewire.plan.leaves import Leaves


class DominantRoute(NamedTuple):
    """The leaf of every fine cell and the fine box of every leaf.

    The fine grid has a line wherever a leaf ends and no other: each of its cells lies in one leaf
    whatever the plan, and the map is as small as it can be. `column_of` and `row_of` i32[SIDE] give
    the fine cell of a plan cell; `leaf_at` is i32[columns, rows]; `box` i32[leaves, 4] is in fine
    cells: first column, first row, end column, end row.
    """

    column_of: NDArray[np.int32]
    row_of: NDArray[np.int32]
    leaf_at: NDArray[np.int32]
    box: NDArray[np.int32]

    def leaves_of_points(
        self, columns: NDArray[np.int32], rows: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """The leaf of each plan cell."""
        leaf: NDArray[np.int32] = self.leaf_at[self.column_of[columns], self.row_of[rows]]
        return leaf

    def workers_of_ranges(
        self, cells: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The leaves that each range of plan cells overlaps: offsets i64[m + 1] and leaves i32."""
        offsets, leaf, _ = self.search(cells)
        return offsets, leaf

    def search(self, cells: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32], int]:
        """The same, with the number of steps: at most 1 + 2 for each leaf and side of a range."""
        offsets, leaf, steps = neighbours_overlapping_ranges(
            read_only(self.column_of),
            read_only(self.row_of),
            read_only(self.leaf_at),
            read_only(self.box),
            read_only(np.ascontiguousarray(cells, np.int32)),
        )
        return offsets, leaf, int(steps)


def make_dominant_route(leaves: Leaves) -> DominantRoute:
    """The partition map of leaves that tile the world."""
    box = leaves.box
    grid = make_grid(np.unique(box[:, 0::2]), np.unique(box[:, 1::2]))
    fine = np.empty_like(box)
    fine[:, 0::2] = np.searchsorted(grid.column_line, box[:, 0::2])
    fine[:, 1::2] = np.searchsorted(grid.row_line, box[:, 1::2])
    leaf_at = np.empty((grid.columns, grid.rows), np.int32)
    for leaf, (west, south, east, north) in enumerate(fine.tolist()):
        leaf_at[west:east, south:north] = leaf
    return DominantRoute(grid.column_of, grid.row_of, leaf_at, fine)
