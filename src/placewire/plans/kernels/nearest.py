"""Find the distance to the k-th nearest point of some lists over a Z-order curve."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel, subkernel
from placewire.kernels.space.circles import write_circle_rectangle
from placewire.kernels.space.regions import distance_m
from placewire.kernels.space.z_curve import (
    CURVE_LEVEL,
    FEW,
    STACK,
    curve_column,
    curve_row,
    cut_quarters,
    push_cell,
    rectangle_to_columns_rows,
)


@subkernel
def keep_nearest(nearest: np.ndarray, kept: int, distance: float) -> int:
    """Push a distance onto the heap of nearest f64[k], the farthest on top; return its size."""
    if kept < nearest.size:
        at = kept
        while at > 0 and nearest[(at - 1) >> 1] < distance:
            nearest[at] = nearest[(at - 1) >> 1]
            at = (at - 1) >> 1
        nearest[at] = distance
        return kept + 1
    if distance >= nearest[0]:
        return kept
    at = 0
    while 2 * at + 1 < nearest.size:
        child = 2 * at + 1
        if child + 1 < nearest.size and nearest[child + 1] > nearest[child]:
            child += 1
        if nearest[child] <= distance:
            break
        nearest[at] = nearest[child]
        at = child
    nearest[at] = distance
    return kept


@kernel
def places_to_kth_distances(
    codes: np.ndarray,
    lons: np.ndarray,
    lats: np.ndarray,
    list_offsets: np.ndarray,
    members: np.ndarray,
    place_lons: np.ndarray,
    place_lats: np.ndarray,
    ks: np.ndarray,
    offsets: np.ndarray,
    lists: np.ndarray,
) -> np.ndarray:
    """The distance in metres to the k-th nearest point of each place's lists, else inf: f64[n].

    Points are in curve order. `members` has the lists of their numbers, as a CSR column; `lists`
    those of each place, -1 for none. A point of several lists counts once. Of a cell's quarters the
    one nearest to the place is visited first; once k points are known, cells outside the circle of
    the k-th are skipped.
    """
    radii = np.full(place_lons.size, np.inf, np.float64)
    seen = np.full(lons.size, -1, np.int64)
    stack = np.empty((STACK, 5), np.int64)
    cuts = np.empty(5, np.int64)
    circle = np.empty(4, np.float64)
    for i in range(place_lons.size):
        lon, lat = place_lons[i], place_lats[i]
        place_column, place_row = curve_column(lon), curve_row(lat)
        nearest = np.empty(ks[i], np.float64)
        kept = 0
        write_circle_rectangle(lon, lat, np.inf, circle)
        west, south, east, north = rectangle_to_columns_rows(circle)
        for at in range(offsets[i], offsets[i + 1]):
            if lists[at] < 0:
                continue
            begin, end = list_offsets[lists[at]], list_offsets[lists[at] + 1]
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
                if end - begin <= FEW or level == CURVE_LEVEL:
                    farthest = nearest[0] if kept == nearest.size else np.inf
                    for member in range(begin, end):
                        point = members[member]
                        if seen[point] != i:
                            seen[point] = i
                            distance = distance_m(lon, lat, lons[point], lats[point])
                            kept = keep_nearest(nearest, kept, distance)
                    if kept == nearest.size and nearest[0] < farthest:
                        write_circle_rectangle(lon, lat, nearest[0], circle)
                        west, south, east, north = rectangle_to_columns_rows(circle)
                    continue
                # Push the farthest quarter first, so that the nearest is popped first.
                middle_column = low_column + (np.int64(1) << (shift - 1))
                middle_row = low_row + (np.int64(1) << (shift - 1))
                own = np.int64(place_column >= middle_column)
                own |= np.int64(place_row >= middle_row) << 1
                wide = abs(place_column - middle_column) > abs(place_row - middle_row)
                cut_quarters(codes, members, begin, end, column, row, level, cuts)
                for step in (3, 1 if wide else 2, 2 if wide else 1, 0):
                    q = own ^ step
                    right, up = 2 * column + (q & 1), 2 * row + (q >> 1)
                    top = push_cell(stack, top, cuts[q], cuts[q + 1], right, up, level + 1)
        if kept == nearest.size:
            radii[i] = nearest[0]
    return radii
