"""Cut a region into ranges of rows in cell order that may lie in it, or surely do.

A range ("stretch") is a begin, an end, and 1 if all of its rows lie in the region, else 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import array_subkernel, subkernel
from placewire.kernels.space.cells import MAX_LEVEL
from placewire.kernels.space.regions import distance_m, polygon_contains_point
from placewire.model.regions import BOX, CIRCLE, EARTH_RADIUS_M, EVERYWHERE
from placewire.objects.kernels.index import first_row_at

OUTSIDE, EDGE, INSIDE = 0, 1, 2
FEW = 24  # at most this many rows are tested one by one
MOST_STRETCHES = 512
STACK = 4 * MAX_LEVEL + 4
# Wider than any rounding error of a column or of a test at a region's edge.
PADDING_DEG = 1e-9
PADDING_M = 0.01


class SearchRegion(NamedTuple):
    """A region in the form that kernels take; `region_of` makes it."""

    kind: int
    box: np.ndarray  # f64[4]
    shape: np.ndarray  # f64


@subkernel
def box_over_cell(box: np.ndarray, west: float, south: float, east: float, north: float) -> int:
    """Compare a box, which may cross the antimeridian, with a cell."""
    if north < box[1] or south > box[3]:
        return OUTSIDE
    within = south >= box[1] and north <= box[3]
    if box[0] <= box[2]:
        if east < box[0] or west > box[2]:
            return OUTSIDE
        within = within and west >= box[0] and east <= box[2]
    else:
        if east < box[0] and west > box[2]:
            return OUTSIDE
        within = within and (west >= box[0] or east <= box[2])
    return INSIDE if within else EDGE


@subkernel
def circle_over_cell(
    shape: np.ndarray, west: float, south: float, east: float, north: float
) -> int:
    """Compare a circle with a cell, by the distance to the cell's centre and half its size."""
    middle = distance_m(shape[0], shape[1], (west + east) / 2.0, (south + north) / 2.0)
    least = 0.0 if south <= 0.0 <= north else min(abs(south), abs(north))
    # A path along the meridian and then the widest parallel is no shorter than the straight one.
    half = EARTH_RADIUS_M * (
        math.radians(north - south) + math.cos(math.radians(least)) * math.radians(east - west)
    )
    half = half / 2.0 + PADDING_M
    if middle + half <= shape[2]:
        return INSIDE
    return OUTSIDE if middle - half > shape[2] else EDGE


@subkernel
def polygon_over_cell(
    shape: np.ndarray, west: float, south: float, east: float, north: float
) -> int:
    """Compare a polygon with a cell; if no edge is near the cell, one point decides for all."""
    at = 0
    while at < shape.size:
        positions = int(shape[at])
        at += 1
        for k in range(positions - 1):
            ax, ay = shape[at + 2 * k], shape[at + 2 * k + 1]
            bx, by = shape[at + 2 * k + 2], shape[at + 2 * k + 3]
            if max(ax, bx) < west or min(ax, bx) > east or max(ay, by) < south:
                continue
            if min(ay, by) > north:
                continue
            one = (bx - ax) * (south - ay) - (by - ay) * (west - ax)
            two = (bx - ax) * (south - ay) - (by - ay) * (east - ax)
            three = (bx - ax) * (north - ay) - (by - ay) * (west - ax)
            four = (bx - ax) * (north - ay) - (by - ay) * (east - ax)
            least = min(one, two, three, four)
            most = max(one, two, three, four)
            if least <= 1e-12 and most >= -1e-12:
                return EDGE
        at += 2 * positions
    inside = polygon_contains_point(shape, (west + east) / 2.0, (south + north) / 2.0)
    return INSIDE if inside else OUTSIDE


@subkernel
def region_over_cell(
    kind: int, box: np.ndarray, shape: np.ndarray, level: int, column: int, row: int
) -> int:
    """Compare a region with a cell: it contains none of it, all of it, or it is not known."""
    if kind == EVERYWHERE:
        return INSIDE
    side = 360.0 / (np.int64(1) << level)
    west = max(column * side - 180.0 - PADDING_DEG, -180.0)
    east = min((column + 1) * side - 180.0 + PADDING_DEG, 180.0)
    south = max(row * (side / 2.0) - 90.0 - PADDING_DEG, -90.0)
    north = min((row + 1) * (side / 2.0) - 90.0 + PADDING_DEG, 90.0)
    over = box_over_cell(box, west, south, east, north)
    if over == OUTSIDE or kind == BOX:
        return over
    if kind == CIRCLE:
        return circle_over_cell(shape, west, south, east, north)
    return polygon_over_cell(shape, west, south, east, north)


@array_subkernel
def wider_stretches(found: np.ndarray, count: int) -> np.ndarray:
    """Copy the stretches to an array with room for those of another part."""
    if count + MOST_STRETCHES + STACK <= found.shape[0]:
        return found
    wider = np.empty((2 * found.shape[0] + MOST_STRETCHES + STACK, 3), np.int64)
    wider[:count] = found[:count]
    return wider


@array_subkernel
def part_to_stretches(
    region: SearchRegion,
    codes: np.ndarray,
    first: int,
    last: int,
    few: int,
    found: np.ndarray,
    count: int,
) -> int:
    """Add the stretches of rows first:last, which are in code order; return their number."""
    kind, box, shape = region
    most = count + MOST_STRETCHES - STACK
    stack = np.empty((STACK, 5), np.int64)  # begin, end, column, row, level
    stack[0, 0], stack[0, 1] = first, last
    stack[0, 2], stack[0, 3], stack[0, 4] = 0, 0, 0
    top = 1 if last > first else 0
    while top > 0:
        top -= 1
        begin, end, column, row, level = stack[top]
        over = region_over_cell(kind, box, shape, level, column, row)
        if over == OUTSIDE:
            continue
        if over == INSIDE or end - begin <= few or level == MAX_LEVEL or count >= most:
            sure = 1 if over == INSIDE else 0
            if count > 0 and found[count - 1, 1] == begin and found[count - 1, 2] == sure:
                found[count - 1, 1] = end
            else:
                found[count, 0], found[count, 1], found[count, 2] = begin, end, sure
                count += 1
            continue
        # The code of the cell's first quarter, from any row in the cell.
        shift = 2 * (MAX_LEVEL - level - 1)
        quarter = np.int64(1) << shift
        code = (np.int64(codes[begin]) >> (shift + 2)) << (shift + 2)
        at_end = end
        for q in (3, 2, 1, 0):  # the last cell pushed is visited first
            at = begin if q == 0 else first_row_at(codes, begin, at_end, code + q * quarter)
            if at < at_end:
                stack[top, 0], stack[top, 1] = at, at_end
                stack[top, 2], stack[top, 3] = 2 * column + (q & 1), 2 * row + (q >> 1)
                stack[top, 4] = level + 1
                top += 1
            at_end = at
    return count


@array_subkernel
def region_to_stretches(
    region: SearchRegion, codes: np.ndarray, parts: np.ndarray, few: int
) -> np.ndarray:
    """Stretches i64[m, 3] of the rows of parts i64[p, 2] that may lie in a region, ascending.

    Cells of at most `few` rows are not divided further, nor are the cells of a part with too many
    stretches.
    """
    found = np.empty((MOST_STRETCHES + STACK, 3), np.int64)
    count = 0
    for part in range(parts.shape[0]):
        found = wider_stretches(found, count)
        first, last = parts[part, 0], parts[part, 1]
        count = part_to_stretches(region, codes, first, last, few, found, count)
    return found[:count].copy()


@array_subkernel
def parts_to_stretches(parts: np.ndarray) -> np.ndarray:
    """Return all rows of parts i64[p, 2] as stretches i64[p, 3] that may lie in a region."""
    found = np.zeros((parts.shape[0], 3), np.int64)
    found[:, :2] = parts
    return found
