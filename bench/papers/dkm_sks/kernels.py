"""Kernels of the `nearest` experiments: first results, and an inverted file for each subset."""

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
def keep_first(
    distances: np.ndarray,
    points: np.ndarray,
    first: int,
    kept: int,
    most: int,
    distance: float,
    point: int,
) -> int:
    """Put a point among the first `most` by (distance, point), in order; gives how many are in."""
    to = first + kept
    if kept == most:
        to -= 1
        if distance > distances[to] or (distance == distances[to] and point > points[to]):
            return kept
    while to > first and (
        distances[to - 1] > distance or (distances[to - 1] == distance and points[to - 1] > point)
    ):
        distances[to] = distances[to - 1]
        points[to] = points[to - 1]
        to -= 1
    distances[to] = distance
    points[to] = point
    return min(kept + 1, most)


@kernel
def places_to_nearest(
    codes: np.ndarray,
    lons: np.ndarray,
    lats: np.ndarray,
    seqs: np.ndarray,
    list_offsets: np.ndarray,
    members: np.ndarray,
    rows: np.ndarray,
    place_lons: np.ndarray,
    place_lats: np.ndarray,
    within_m: np.ndarray,
    offsets: np.ndarray,
    lists: np.ndarray,
    slot_offsets: np.ndarray,
    counts: np.ndarray,
    slot_distance: np.ndarray,
    slot_seq: np.ndarray,
) -> None:
    """Write the results of some rows: the k nearest points of their lists by (distance, seq).

    As `kernels.neighbours.places_to_kth_distances`, which gives the last distance alone; the
    longest list comes first here, since it makes the ball small soonest.
    """
    seen = np.full(lons.size, -1, np.int64)
    stack = np.empty((STACK, 5), np.int64)
    cuts = np.empty(5, np.int64)
    ball = np.empty(4, np.float64)
    for i in rows:
        lon, lat = place_lons[i], place_lats[i]
        place_column, place_row = curve_column(lon), curve_row(lat)
        first = slot_offsets[i]
        k = slot_offsets[i + 1] - first
        kept = 0
        write_circle_rectangle(lon, lat, within_m[i], ball)
        west, south, east, north = rectangle_to_columns_rows(ball)
        longest = offsets[i]
        for at in range(offsets[i], offsets[i + 1]):
            here, best = lists[at], lists[longest]
            if here >= 0 and (
                best < 0
                or list_offsets[here + 1] - list_offsets[here]
                > list_offsets[best + 1] - list_offsets[best]
            ):
                longest = at
        for turn in range(offsets[i], offsets[i + 1]):
            at = turn
            if turn == offsets[i]:
                at = longest
            elif turn == longest:
                at = offsets[i]
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
                    farthest = slot_distance[first + k - 1] if kept == k else np.inf
                    for member in range(begin, end):
                        point = members[member]
                        if seen[point] != i:
                            seen[point] = i
                            distance = distance_m(lon, lat, lons[point], lats[point])
                            if distance <= within_m[i]:
                                kept = keep_first(
                                    slot_distance, slot_seq, first, kept, k, distance, seqs[point]
                                )
                    if kept == k and slot_distance[first + k - 1] < farthest:
                        write_circle_rectangle(lon, lat, slot_distance[first + k - 1], ball)
                        west, south, east, north = rectangle_to_columns_rows(ball)
                    continue
                # The stack gives back last what is put there first: the farthest quarter.
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
        counts[i] = kept


@subkernel
def term_in_subset(term: int, subset: int) -> int:
    """The hash of a term in the inverted file of one subset."""
    mixed = (term ^ (np.uint64(subset + 1) * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(
        0xBF58476D1CE4E5B9
    )
    return mixed ^ (mixed >> np.uint64(31))


@kernel
def rows_into_subsets(
    literal_offsets: np.ndarray, literal_term: np.ndarray, subset: np.ndarray
) -> np.ndarray:
    """The literals u64 of rows, each in the inverted file of its row's subset i32[n]."""
    mixed = np.empty_like(literal_term)
    for row in range(subset.size):
        for at in range(literal_offsets[row], literal_offsets[row + 1]):
            mixed[at] = term_in_subset(literal_term[at], np.int64(subset[row]))
    return mixed


@kernel
def objects_into_subsets(
    lons: np.ndarray,
    lats: np.ndarray,
    term_offsets: np.ndarray,
    terms: np.ndarray,
    subsets: np.ndarray,
    rectangles: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """The terms of objects in the files of those subsets whose rectangle they are in.

    `subsets` i64[r] are the numbers, `rectangles` f64[r, 4] where each looks; gives a CSR column.
    """
    offsets = np.zeros(lons.size + 1, np.int64)
    mixed = np.empty(terms.size * max(subsets.size, 1), np.uint64)
    to = 0
    for o in range(lons.size):
        for r in range(subsets.size):
            if (
                rectangles[r, 0] <= lons[o] <= rectangles[r, 2]
                and rectangles[r, 1] <= lats[o] <= rectangles[r, 3]
            ):
                for at in range(term_offsets[o], term_offsets[o + 1]):
                    mixed[to] = term_in_subset(terms[at], subsets[r])
                    to += 1
        offsets[o + 1] = to
    return offsets, mixed[:to]


@kernel
def terms_drawn(
    starts: np.ndarray, lengths: np.ndarray, offsets: np.ndarray, chances: np.ndarray
) -> np.ndarray:
    """So many of each row's terms as there is room for in `offsets`, at random: places i64.

    Row r's terms are at starts[r] and the lengths[r] - 1 places after it; `chances` f64 in [0, 1)
    has one number a draw.
    """
    drawn = np.empty(offsets[-1], np.int64)
    left = np.empty(lengths.max() if lengths.size else 0, np.int64)
    for row in range(starts.size):
        for t in range(lengths[row]):
            left[t] = starts[row] + t
        for at in range(offsets[row], offsets[row + 1]):
            step = at - offsets[row]
            other = step + np.int64(chances[at] * (lengths[row] - step))
            drawn[at] = left[other]
            left[other] = left[step]
    return drawn
