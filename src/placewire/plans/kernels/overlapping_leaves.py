"""Leaves that ranges of plan cells overlap, found from neighbour to neighbour.

Returns offsets i64[m + 1], the leaves i32 of each range (each once) and the number of steps: looks
at a leaf. Ranges i32[m, 4] are first column, first row, last column, last row (all inside);
first > last column crosses the antimeridian.
"""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel, subkernel


@subkernel
def found_with_room(found: np.ndarray, count: int) -> np.ndarray:
    """The array itself, or a copy of twice its size when it is full."""
    if count < found.size:
        return found
    wider = np.empty(2 * found.size, found.dtype)
    wider[:count] = found
    return wider


@kernel
def neighbours_overlapping_ranges(
    column_of: np.ndarray,
    row_of: np.ndarray,
    leaf_at: np.ndarray,
    boxes: np.ndarray,
    ranges: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """Tornado's neighbour-based search from dominant cell to dominant cell.

    `leaf_at` i32[columns, rows] is the leaf of each fine cell, `boxes` i32[leaves, 4] the leaves in
    fine cells. A leaf's dominant cell is the first of its cells inside the range, in both columns
    and rows. From there one step leads across the leaf's far column edge along the dominant row,
    one across its far row edge along the dominant column.

    That finds every leaf of any tiling. Take a leaf P with dominant cell (x, y) other than the
    corner of the range. If the neighbour Q at (x - 1, y) is in the range and begins in row y of it,
    P is across from Q. If Q begins before, Q also holds (x - 1, y - 1), so the leaf T at (x, y - 1)
    begins in column x, and P is across from T; likewise if there is no Q in the range. Q or T has
    an earlier dominant cell and was found in the same way.
    """
    leaves = boxes.shape[0]
    last_column = leaf_at.shape[0] - 1
    offsets = np.zeros(ranges.shape[0] + 1, np.int64)
    found = np.empty(ranges.shape[0] + 16, np.int32)
    # Each leaf that is taken off puts at most two on, and is taken up once: never more than this.
    stack = np.empty(leaves + 2, np.int32)
    # Twice the range in which a leaf was last seen, one more on the far side of the antimeridian.
    seen = np.full(leaves, -1, np.int64)
    count = 0
    steps = 0
    for i in range(ranges.shape[0]):
        south = row_of[ranges[i, 1]]
        north = row_of[ranges[i, 3]]
        crosses = ranges[i, 0] > ranges[i, 2]
        for side in range(2 if crosses else 1):
            west = column_of[ranges[i, 0]] if side == 0 else 0
            east = last_column if crosses and side == 0 else column_of[ranges[i, 2]]
            now = 2 * i + side
            stack[0] = leaf_at[west, south]
            top = 1
            while top > 0:
                top -= 1
                steps += 1
                leaf = stack[top]
                if seen[leaf] == now:
                    continue
                if seen[leaf] < 2 * i:
                    found = found_with_room(found, count)
                    found[count] = leaf
                    count += 1
                seen[leaf] = now
                if boxes[leaf, 3] <= north:
                    stack[top] = leaf_at[max(west, boxes[leaf, 0]), boxes[leaf, 3]]
                    top += 1
                if boxes[leaf, 2] <= east:
                    stack[top] = leaf_at[boxes[leaf, 2], max(south, boxes[leaf, 1])]
                    top += 1
        offsets[i + 1] = count
    return offsets, found[:count].copy(), steps
