"""A fine Z-order curve: sort points along it, and find the points of a list in a rectangle.

Columns and rows have 31 bits, 2 cm at the equator, so that a code fits in a non-negative i64.
Lists of points are rows of arrays in ascending code order. A cell of any level is then a range of a
list, and a cell inside a rectangle is taken without testing its points.
"""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import array_subkernel, kernel, subkernel
from placewire.kernels.space.cells import fine_column_of_lon, fine_row_of_lat

CURVE_LEVEL = 31
FEW = 16  # at most this many points are tested one by one
STACK = 4 * CURVE_LEVEL  # each level leaves at most three cells on the stack


@subkernel
def curve_column(lon: float) -> int:
    """Return the column of a longitude; monotone."""
    return fine_column_of_lon(lon) >> 1


@subkernel
def curve_row(lat: float) -> int:
    """Return the row of a latitude; monotone."""
    return fine_row_of_lat(lat) >> 1


@subkernel
def bits_apart(value: int) -> int:
    """Spread the 31 bits of `value` to the even bits of a 62-bit word."""
    v = np.int64(value)
    v = (v | (v << 16)) & 0x0000FFFF0000FFFF
    v = (v | (v << 8)) & 0x00FF00FF00FF00FF
    v = (v | (v << 4)) & 0x0F0F0F0F0F0F0F0F
    v = (v | (v << 2)) & 0x3333333333333333
    return (v | (v << 1)) & 0x5555555555555555


@kernel
def points_to_curve(lons: np.ndarray, lats: np.ndarray) -> np.ndarray:
    """Return the codes i64[n] of points f64[n], f64[n]."""
    codes = np.empty(lons.size, np.int64)
    for i in range(lons.size):
        column, row = curve_column(lons[i]), curve_row(lats[i])
        codes[i] = bits_apart(column) | (bits_apart(row) << 1)
    return codes


@subkernel
def first_at_code(codes: np.ndarray, members: np.ndarray, begin: int, end: int, code: int) -> int:
    """Return the first position of members[begin:end] whose code is >= `code`, else `end`."""
    while begin < end:
        middle = (begin + end) >> 1
        if codes[members[middle]] < code:
            begin = middle + 1
        else:
            end = middle
    return begin


@array_subkernel
def rectangle_to_columns_rows(rectangle: np.ndarray) -> tuple:  # type: ignore[type-arg]
    """First column, first row, last column, last row; one further out at the world's edge."""
    side = np.int64(1) << CURVE_LEVEL
    return (
        curve_column(rectangle[0]) if rectangle[0] > -180.0 else np.int64(-1),
        curve_row(rectangle[1]) if rectangle[1] > -90.0 else np.int64(-1),
        curve_column(rectangle[2]) if rectangle[2] < 180.0 else side,
        curve_row(rectangle[3]) if rectangle[3] < 90.0 else side,
    )


@subkernel
def rectangle_holds_point(rectangle: np.ndarray, lon: float, lat: float) -> bool:
    """Return true if the closed rectangle has the point; west <= east."""
    return bool(rectangle[0] <= lon <= rectangle[2] and rectangle[1] <= lat <= rectangle[3])


@subkernel
def cut_quarters(
    codes: np.ndarray,
    members: np.ndarray,
    begin: int,
    end: int,
    column: int,
    row: int,
    level: int,
    cuts: np.ndarray,
) -> None:
    """Write where in members[begin:end] the quarters of their cell begin and end: i64[5]."""
    shift = 2 * (CURVE_LEVEL - level - 1)
    code = (bits_apart(column) | (bits_apart(row) << 1)) << (shift + 2)
    quarter = np.int64(1) << shift
    cuts[0] = begin
    cuts[2] = first_at_code(codes, members, begin, end, code + 2 * quarter)
    cuts[1] = first_at_code(codes, members, begin, cuts[2], code + quarter)
    cuts[3] = first_at_code(codes, members, cuts[2], end, code + 3 * quarter)
    cuts[4] = end


@subkernel
def push_cell(
    stack: np.ndarray, top: int, begin: int, end: int, column: int, row: int, level: int
) -> int:
    """Push a cell and its range of a list on the stack, unless it is empty; return the new top."""
    if begin == end:
        return top
    stack[top, 0] = begin
    stack[top, 1] = end
    stack[top, 2] = column
    stack[top, 3] = row
    stack[top, 4] = level
    return top + 1


@subkernel
def add_range(ranges: np.ndarray, count: int, begin: int, end: int) -> int:
    """Append a range, joined with the last one if they touch; return the number of ranges."""
    if count > 0 and ranges[count - 1, 1] == begin:
        ranges[count - 1, 1] = end
        return count
    ranges[count, 0] = begin
    ranges[count, 1] = end
    return count + 1


@array_subkernel
def list_in_rectangle(
    codes: np.ndarray,
    lons: np.ndarray,
    lats: np.ndarray,
    members: np.ndarray,
    begin: int,
    end: int,
    rectangle: np.ndarray,
    stack: np.ndarray,
    ranges: np.ndarray,
) -> int:
    """Write the ranges of members[begin:end] that lie in a rectangle f64[4]; return their number.

    `stack` i64[STACK, 5] is scratch; `ranges` i64[m, 2] has one entry per two members. Points of
    cells strictly between the columns and rows of the rectangle's edges are not tested, since
    columns and rows are monotone.
    """
    west, south, east, north = rectangle_to_columns_rows(rectangle)
    cuts = np.empty(5, np.int64)
    count = 0
    top = push_cell(stack, 0, begin, end, 0, 0, 0)
    while top > 0:
        top -= 1
        begin, end = stack[top, 0], stack[top, 1]
        column, row, level = stack[top, 2], stack[top, 3], stack[top, 4]
        shift = CURVE_LEVEL - level
        low_column, low_row = column << shift, row << shift
        high_column = low_column + (np.int64(1) << shift) - 1
        high_row = low_row + (np.int64(1) << shift) - 1
        if high_column < west or low_column > east or high_row < south or low_row > north:
            continue
        if low_column > west and high_column < east and low_row > south and high_row < north:
            count = add_range(ranges, count, begin, end)
        elif end - begin <= FEW or level == CURVE_LEVEL:
            for at in range(begin, end):
                point = members[at]
                if rectangle_holds_point(rectangle, lons[point], lats[point]):
                    count = add_range(ranges, count, at, at + 1)
        else:
            cut_quarters(codes, members, begin, end, column, row, level, cuts)
            for q in (3, 2, 1, 0):  # the last cell pushed is visited first
                right, up = 2 * column + (q & 1), 2 * row + (q >> 1)
                top = push_cell(stack, top, cuts[q], cuts[q + 1], right, up, level + 1)
    return count


@kernel
def points_counted_in_rectangles(
    codes: np.ndarray,
    lons: np.ndarray,
    lats: np.ndarray,
    members: np.ndarray,
    rectangles: np.ndarray,
) -> np.ndarray:
    """Count the points `members` i32 in each rectangle of f64[r, 4]: i64[r]."""
    stack = np.empty((STACK, 5), np.int64)
    ranges = np.empty((members.size // 2 + 1, 2), np.int64)
    counts = np.zeros(rectangles.shape[0], np.int64)
    for r in range(rectangles.shape[0]):
        found = list_in_rectangle(
            codes, lons, lats, members, 0, members.size, rectangles[r], stack, ranges
        )
        for s in range(found):
            counts[r] += ranges[s, 1] - ranges[s, 0]
    return counts


@kernel
def terms_counted_in_rectangle(
    codes: np.ndarray,
    lons: np.ndarray,
    lats: np.ndarray,
    members: np.ndarray,
    offsets: np.ndarray,
    terms: np.ndarray,
    size: int,
    rectangle: np.ndarray,
) -> np.ndarray:
    """Count the points in a rectangle f64[4] that have each of `size` terms: i64[size].

    `members` i32 are all points in order; their terms i32 are a CSR column.
    """
    stack = np.empty((STACK, 5), np.int64)
    ranges = np.empty((members.size // 2 + 1, 2), np.int64)
    found = list_in_rectangle(codes, lons, lats, members, 0, members.size, rectangle, stack, ranges)
    counts = np.zeros(size, np.int64)
    for s in range(found):
        for at in range(offsets[ranges[s, 0]], offsets[ranges[s, 1]]):
            counts[terms[at]] += 1
    return counts


@kernel
def rows_met_in_rectangle(
    codes: np.ndarray,
    lons: np.ndarray,
    lats: np.ndarray,
    list_offsets: np.ndarray,
    members: np.ndarray,
    rows: np.ndarray,
    offsets: np.ndarray,
    lists: np.ndarray,
    rectangle: np.ndarray,
    memo: np.ndarray,
) -> np.ndarray:
    """Sum over the lists of each row the number of their points in a rectangle: i64[rows].

    List l is members[list_offsets[l]:list_offsets[l + 1]]; the lists of a row are a CSR column,
    -1 for none. `memo` i64[lists] is -1 before and after; it makes each list be counted once.
    """
    stack = np.empty((STACK, 5), np.int64)
    ranges = np.empty((lons.size // 2 + 1, 2), np.int64)
    met = np.zeros(rows.size, np.int64)
    for i in range(rows.size):
        for at in range(offsets[rows[i]], offsets[rows[i] + 1]):
            number = lists[at]
            if number < 0:
                continue
            if memo[number] < 0:
                begin, end = list_offsets[number], list_offsets[number + 1]
                found = list_in_rectangle(
                    codes, lons, lats, members, begin, end, rectangle, stack, ranges
                )
                memo[number] = 0
                for s in range(found):
                    memo[number] += ranges[s, 1] - ranges[s, 0]
            met[i] += memo[number]
    for row in rows:
        for at in range(offsets[row], offsets[row + 1]):
            if lists[at] >= 0:
                memo[lists[at]] = -1
    return met


@kernel
def rows_summed(
    rows: np.ndarray, offsets: np.ndarray, lists: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """Sum the counts i64[lists] of the lists of each row: i64[rows]; -1 is no list."""
    sums = np.zeros(rows.size, np.int64)
    for i in range(rows.size):
        for at in range(offsets[rows[i]], offsets[rows[i] + 1]):
            if lists[at] >= 0:
                sums[i] += counts[lists[at]]
    return sums
