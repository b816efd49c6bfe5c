"""Routes of ranges that Tornado compares with: a uniform grid that is scanned, and an R-tree.

Kernels return offsets i64[m + 1], the leaves i32 of each range (each once) and the number of steps:
looks at a grid cell or a tree node. Ranges i32[m, 4] are first column, first row, last column, last
row (all inside); first > last column crosses the antimeridian.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import kernel, read_only, subkernel
from placewire.plans.cost.tornado import FineGrid
from placewire.plans.kernels.leaves import found_with_room
from placewire.plans.leaves import Leaves

FANOUT = 8


class RangeRoute(Protocol):
    """Names the leaves that ranges of plan cells overlap."""

    def leaves_of_ranges(
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

    def leaves_of_ranges(
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

    def leaves_of_ranges(
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


@subkernel
def range_overlaps_box(ranges: np.ndarray, i: int, box: np.ndarray) -> bool:
    """Whether range `i` touches a box of first column, first row, end column, end row."""
    if ranges[i, 1] >= box[3] or ranges[i, 3] < box[1]:
        return False
    before = ranges[i, 0] < box[2]
    behind = ranges[i, 2] >= box[0]
    if ranges[i, 0] <= ranges[i, 2]:
        return before and behind
    return before or behind


@kernel
def cells_overlapping_ranges(
    column_of: np.ndarray,
    row_of: np.ndarray,
    cell_offsets: np.ndarray,
    cell_leaf: np.ndarray,
    boxes: np.ndarray,
    ranges: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """Scan every cell of a grid that a range overlaps and take each leaf listed there once.

    The grid need not have a line wherever leaves end: a cell lists all leaves that touch it, row by
    row in a column, and `boxes` i32[leaves, 4] (plan cells, ends outside) decide.
    """
    columns = column_of[-1] + 1
    rows = row_of[-1] + 1
    offsets = np.zeros(ranges.shape[0] + 1, np.int64)
    found = np.empty(ranges.shape[0] + 16, np.int32)
    seen = np.full(boxes.shape[0], -1, np.int64)
    count = 0
    steps = 0
    for i in range(ranges.shape[0]):
        west = column_of[ranges[i, 0]]
        across = column_of[ranges[i, 2]] - west + 1
        if ranges[i, 0] > ranges[i, 2]:
            # Both ends may be in one column of the grid: it is scanned once.
            across = min(across + columns, columns)
        for at in range(west, west + across):
            column = at if at < columns else at - columns
            for row in range(row_of[ranges[i, 1]], row_of[ranges[i, 3]] + 1):
                steps += 1
                cell = column * rows + row
                for k in range(cell_offsets[cell], cell_offsets[cell + 1]):
                    leaf = cell_leaf[k]
                    if seen[leaf] != i and range_overlaps_box(ranges, i, boxes[leaf]):
                        found = found_with_room(found, count)
                        found[count] = leaf
                        count += 1
                        seen[leaf] = i
        offsets[i + 1] = count
    return offsets, found[:count].copy(), steps


@kernel
def nodes_overlapping_ranges(
    boxes: np.ndarray, child_first: np.ndarray, child_end: np.ndarray, ranges: np.ndarray
) -> tuple:  # type: ignore[type-arg]
    """Descend a packed tree of boxes i32[nodes, 4] (ends outside) from its last node, the root.

    The children of a node are nodes child_first up to child_end; a node without any, whose
    child_end is -1, stands for leaf child_first.
    """
    offsets = np.zeros(ranges.shape[0] + 1, np.int64)
    found = np.empty(ranges.shape[0] + 16, np.int32)
    stack = np.empty(boxes.shape[0], np.int32)
    count = 0
    steps = 0
    for i in range(ranges.shape[0]):
        stack[0] = boxes.shape[0] - 1
        top = 1
        while top > 0:
            top -= 1
            steps += 1
            node = stack[top]
            if not range_overlaps_box(ranges, i, boxes[node]):
                continue
            if child_end[node] < 0:
                found = found_with_room(found, count)
                found[count] = child_first[node]
                count += 1
                continue
            for child in range(child_first[node], child_end[node]):
                stack[top] = child
                top += 1
        offsets[i + 1] = count
    return offsets, found[:count].copy(), steps
