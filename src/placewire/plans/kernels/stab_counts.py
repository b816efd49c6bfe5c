"""Count, term by term, the posted ranges of cells that contain each point.

Sweeps over columns with a Fenwick tree over rows. The time grows with the points and the ranges,
not with the cells that they cover, so one as large as the world costs no more than another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import kernel, subkernel
from placewire.kernels.text.hash_table import numbers_to_groups


@subkernel
def tree_adds_from(tree: np.ndarray, row: int, amount: int) -> None:
    """Add `amount` to every row from `row` on."""
    at = row + 1
    while at < tree.size:
        tree[at] += amount
        at += at & -at


@subkernel
def tree_at_row(tree: np.ndarray, row: int) -> int:
    """Return the sum of the amounts added to `row`."""
    total = 0
    at = row + 1
    while at > 0:
        total += tree[at]
        at -= at & -at
    return total


@kernel
def items_to_terms(
    order: np.ndarray, rows: np.ndarray, offsets: np.ndarray, terms: np.ndarray, size: int
) -> tuple:  # type: ignore[type-arg]
    """Group items by the terms of their rows: offsets i64[size + 2], items i64, in `order`.

    Item i has the terms of row rows[i] of a CSR column; a term -1 counts as term `size`.
    """
    group_offsets = np.zeros(size + 2, np.int64)
    for row in rows:
        for at in range(offsets[row], offsets[row + 1]):
            group_offsets[(terms[at] if terms[at] >= 0 else size) + 1] += 1
    for g in range(size + 1):
        group_offsets[g + 1] += group_offsets[g]
    cursor = group_offsets[:-1].copy()
    items = np.empty(group_offsets[size + 1], np.int64)
    for i in order:
        row = rows[i]
        for at in range(offsets[row], offsets[row + 1]):
            g = terms[at] if terms[at] >= 0 else size
            items[cursor[g]] = i
            cursor[g] += 1
    return group_offsets, items


@kernel
def ranges_unwrapped(ranges: np.ndarray, picked: np.ndarray, columns: int) -> tuple:  # type: ignore[type-arg]
    """Split picked ranges i32[m, 4] that cross the antimeridian; return pieces and their rows.

    A range crosses when its first column is greater than its last.
    """
    pieces = np.empty((2 * picked.size, 4), np.int32)
    rows = np.empty(2 * picked.size, np.int64)
    count = 0
    for row in picked:
        pieces[count] = ranges[row]
        rows[count] = row
        count += 1
        if ranges[row, 0] > ranges[row, 2]:
            pieces[count - 1, 2] = columns - 1
            pieces[count] = ranges[row]
            pieces[count, 0] = 0
            rows[count] = row
            count += 1
    return pieces[:count].copy(), rows[:count].copy()


@kernel
def ranges_stabbed_by_points(
    tree: np.ndarray,
    points: np.ndarray,
    columns: np.ndarray,
    rows: np.ndarray,
    pieces: np.ndarray,
    by_first: np.ndarray,
    by_last: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Add to the counts of `points`, columns ascending, the pieces that cover them.

    `by_first` and `by_last` are the same pieces ordered by first and by last column. The tree is
    all zeros before and after.
    """
    begun = 0
    ended = 0
    column = -1
    for point in points:
        column = columns[point]
        while begun < by_first.size and pieces[by_first[begun], 0] <= column:
            piece = by_first[begun]
            tree_adds_from(tree, pieces[piece, 1], 1)
            tree_adds_from(tree, pieces[piece, 3] + 1, -1)
            begun += 1
        while ended < by_last.size and pieces[by_last[ended], 2] < column:
            piece = by_last[ended]
            tree_adds_from(tree, pieces[piece, 1], -1)
            tree_adds_from(tree, pieces[piece, 3] + 1, 1)
            ended += 1
        counts[point] += tree_at_row(tree, rows[point])
    for piece in by_last[ended:]:
        if pieces[piece, 0] <= column:
            tree_adds_from(tree, pieces[piece, 1], -1)
            tree_adds_from(tree, pieces[piece, 3] + 1, 1)


class GridPoints(NamedTuple):
    """Points at `columns` and `rows` of a grid; point i has the terms of row at[i] (CSR)."""

    columns: NDArray[np.int32]
    rows: NDArray[np.int32]
    at: NDArray[np.int64]
    term_offsets: NDArray[np.int64]
    terms: NDArray[np.int32]


class PostedRanges(NamedTuple):
    """Ranges i32[m, 4] of cells of a grid; range i has the posts of row at[i] (CSR)."""

    ranges: NDArray[np.int32]
    at: NDArray[np.int64]
    post_offsets: NDArray[np.int64]
    posts: NDArray[np.int32]


@kernel
def postings_met_by_points(
    points_met: GridPoints, posted: PostedRanges, size: int, side: np.ndarray
) -> np.ndarray:
    """Count for each point the postings of its terms whose range covers it: i64[points].

    The grid has side[0] x side[1] cells. Terms are below `size`; a post -1 counts for every point
    that its range covers.
    """
    columns, rows, point_rows, term_offsets, terms = points_met
    pieces, piece_rows, post_offsets, posts = posted
    counts = np.zeros(columns.size, np.int64)
    _, point_order = numbers_to_groups(columns, side[0])
    point_offsets, points = items_to_terms(point_order, point_rows, term_offsets, terms, size)
    _, first_order = numbers_to_groups(pieces[:, 0].copy(), side[0])
    piece_offsets, by_first = items_to_terms(first_order, piece_rows, post_offsets, posts, size)
    _, last_order = numbers_to_groups(pieces[:, 2].copy(), side[0])
    _, by_last = items_to_terms(last_order, piece_rows, post_offsets, posts, size)
    tree = np.zeros(side[1] + 1, np.int64)
    for term in range(size + 1):
        low, high = piece_offsets[term], piece_offsets[term + 1]
        of_term = points[point_offsets[term] : point_offsets[term + 1]]
        if term == size:
            of_term = point_order
        if low < high and of_term.size > 0:
            ranges_stabbed_by_points(
                tree, of_term, columns, rows, pieces, by_first[low:high], by_last[low:high], counts
            )
    return counts
