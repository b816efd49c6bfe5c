"""Ways to route ranges to compare with: scanning a uniform grid, and a tree of leaf boxes."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.dominance import cells_overlapping_ranges, nodes_overlapping_ranges
from placewire.kernels.jit import read_only
from placewire.plan.finegrid import FineGrid
from placewire.plan.leaves import Leaves

FANOUT = 8


class RangeRoute(Protocol):
    """Names the leaves that ranges of plan cells overlap."""

    def workers_of_ranges(
        self, cells: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The leaves that each range of plan cells overlaps: offsets i64[m + 1] and leaves i32."""

    def search(self, cells: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32], int]:
        """The same, with the number of steps."""


class ScanRoute(NamedTuple):
    """The leaves listed in each cell of a grid; all cells that a range overlaps are scanned.

    `column_of` and `row_of` i32[SIDE] give the grid's cell of a plan cell; the leaves of column c
    and row r are at c * rows + r of the CSR column. `box` i32[leaves, 4] is in plan cells.
    """

    column_of: NDArray[np.int32]
    row_of: NDArray[np.int32]
    cell_offsets: NDArray[np.int64]
    cell_leaf: NDArray[np.int32]
    box: NDArray[np.int32]

    def workers_of_ranges(
        self, cells: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        offsets, leaf, _ = self.search(cells)
        return offsets, leaf

    def search(self, cells: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32], int]:
        offsets, leaf, steps = cells_overlapping_ranges(
            read_only(self.column_of),
            read_only(self.row_of),
            read_only(self.cell_offsets),
            read_only(self.cell_leaf),
            read_only(self.box),
            read_only(np.ascontiguousarray(cells, np.int32)),
        )
        return offsets, leaf, int(steps)


def make_scan_route(leaves: Leaves, grid: FineGrid) -> ScanRoute:
    """List every leaf in all cells of the grid that it touches."""
    spans = [
        (
            slice(grid.column_of[west], grid.column_of[east - 1] + 1),
            slice(grid.row_of[south], grid.row_of[north - 1] + 1),
        )
        for west, south, east, north in leaves.box.tolist()
    ]
    counts = np.zeros((grid.columns, grid.rows), np.int64)
    for span in spans:
        counts[span] += 1
    offsets = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    cursor = offsets[:-1].reshape(counts.shape).copy()
    cell_leaf = np.empty(offsets[-1], np.int32)
    for leaf, span in enumerate(spans):
        cell_leaf[cursor[span]] = leaf
        cursor[span] += 1
    return ScanRoute(grid.column_of, grid.row_of, offsets, cell_leaf, leaves.box)


class TreeRoute(NamedTuple):
    """A packed R-tree: boxes of nodes in plan cells, level by level from the leaves to the root.

    The children of a node are child_first up to child_end; a plan's leaf has child_end -1 and its
    number in child_first.
    """

    box: NDArray[np.int32]
    child_first: NDArray[np.int32]
    child_end: NDArray[np.int32]

    def workers_of_ranges(
        self, cells: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        offsets, leaf, _ = self.search(cells)
        return offsets, leaf

    def search(self, cells: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32], int]:
        offsets, leaf, steps = nodes_overlapping_ranges(
            read_only(self.box),
            read_only(self.child_first),
            read_only(self.child_end),
            read_only(np.ascontiguousarray(cells, np.int32)),
        )
        return offsets, leaf, int(steps)


def make_tree_route(leaves: Leaves, fanout: int = FANOUT) -> TreeRoute:
    """Pack the leaves sort-tile-recursively, `fanout` to a node."""
    order = tile_boxes(leaves.box, fanout)
    boxes, firsts = [leaves.box[order]], [order]
    ends = [np.full(order.size, -1)]
    behind = 0
    while boxes[-1].shape[0] > 1:
        below = boxes[-1]
        if len(boxes) > 1:
            # A level is put in tile order before it is packed; its children stay where they are.
            order = tile_boxes(below, fanout)
            below, firsts[-1], ends[-1] = below[order], firsts[-1][order], ends[-1][order]
            boxes[-1] = below
        first = np.arange(0, below.shape[0], fanout)
        boxes.append(
            np.concatenate(
                [
                    np.minimum.reduceat(below[:, :2], first),
                    np.maximum.reduceat(below[:, 2:], first),
                ],
                axis=1,
            )
        )
        firsts.append(behind + first)
        ends.append(behind + np.minimum(first + fanout, below.shape[0]))
        behind += below.shape[0]
    return TreeRoute(
        np.concatenate(boxes),
        np.concatenate(firsts).astype(np.int32),
        np.concatenate(ends).astype(np.int32),
    )


def tile_boxes(box: NDArray[np.int32], fanout: int) -> NDArray[np.int64]:
    """An order of boxes for packing: slices of equal count by column, by row within each."""
    nodes = -(-box.shape[0] // fanout)
    slices = int(np.ceil(np.sqrt(nodes)))
    by_column = np.argsort(box[:, 0] + box[:, 2], kind="stable")
    which = np.arange(box.shape[0]) // (slices * fanout)
    middle = (box[:, 1] + box[:, 3])[by_column]
    order: NDArray[np.int64] = by_column[np.lexsort((middle, which))]
    return order
