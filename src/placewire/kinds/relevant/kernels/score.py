"""Relevance: score an object for a `relevant` row, or every pair by testing each.

Scores are whole billionths ("nano", i32), as the specification rounds them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import inlined_subkernel, kernel, subkernel
from placewire.kernels.space.regions import distance_m
from placewire.kernels.text.term_sets import place_of_term
from placewire.objects.kernels.best_of_rows import ALPHA, LAT, LON, NORM, REACH, ScoredRows
from placewire.objects.kernels.score import score_nano

BOUND_PADDING = 1e-5  # more than the error of a bound in 32-bit floats
TOUCHED = 128  # rows prefetched before they are read


class RelevanceBlock(NamedTuple):
    """Objects in cell order, with the norms f64[m] of their terms."""

    codes: NDArray[np.uint32]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    now_us: NDArray[np.int64]
    term_offsets: NDArray[np.int64]
    terms: NDArray[np.uint64]
    norms: NDArray[np.float64]


class LiveRows(NamedTuple):
    """When rows expire, the score in billionths that each needs, and the bitmap of ended rows."""

    expires_us: NDArray[np.int64]
    theta: NDArray[np.int32]
    dead: NDArray[np.uint64]


class CandidateRoom(NamedTuple):
    """Room for (object, row) pairs: the number of the term that found each, and score bounds.

    `bound` f32 is at least the score; `nano` is the score itself, of pairs that reach `theta`.
    """

    object: NDArray[np.uint32]
    row: NDArray[np.uint32]
    number: NDArray[np.int32]
    bound: NDArray[np.float32]
    nano: NDArray[np.int32]


def make_candidate_room(size: int) -> CandidateRoom:
    """Return room for `size` candidates."""
    return CandidateRoom(
        np.empty(size, np.uint32),
        np.empty(size, np.uint32),
        np.empty(size, np.int32),
        np.empty(size, np.float32),
        np.empty(size, np.int32),
    )


@subkernel
def row_is_over(dead: np.ndarray, expires_us: np.ndarray, row: int, now_us: int) -> bool:
    """Return true if a row has ended or expired."""
    if dead.size and (dead[row >> 6] >> np.uint64(row & 63)) & np.uint64(1):
        return True
    return bool(expires_us[row] <= now_us)


@inlined_subkernel
def row_similarity(
    number: int,
    terms: np.ndarray,
    term_number: np.ndarray,
    first_term: int,
    last_term: int,
    norm: float,
    literal_term: np.ndarray,
    posted: np.ndarray,
    first: int,
    last: int,
    literal_idf: np.ndarray,
    row_norm: float,
) -> float:
    """Compute TSim (specification, section 7) in the order of the row's terms; -1 if none counts.

    None counts if none is shared, or if a posted term with a number below `number` finds the pair.
    """
    textual = -1.0
    for at in range(first, last):
        place = place_of_term(terms, first_term, last_term, literal_term[at])
        if place < 0:
            continue
        if term_number[place] < number and (posted.size == 0 or posted[at]):
            return -1.0
        textual = max(textual, 0.0)
        if row_norm != 0.0 and norm != 0.0:
            idf = literal_idf[at]
            textual += (idf / row_norm) * (idf / norm)
    return textual


@kernel
def objects_relevant_to_rows(block: RelevanceBlock, live: LiveRows, scored: ScoredRows) -> tuple:  # type: ignore[type-arg]
    """Find every (object u32, row u32, score i32) with a shared term and a score >= `theta`.

    Tests every pair, as a reference for tests of the index and as a baseline.
    """
    lons, lats, nows_us, norms = block.lon, block.lat, block.now_us, block.norms
    term_offsets, terms = block.term_offsets, block.terms
    expires_us, theta, dead = live.expires_us, live.theta, live.dead
    literal_offsets, literal_term = scored.literal_offsets, scored.literal_term
    literal_idf, weights = scored.literal_idf, scored.weights
    room = 1024
    objects = np.empty(room, np.uint32)
    rows = np.empty(room, np.uint32)
    nanos = np.empty(room, np.int32)
    found = 0
    no_numbers = np.zeros(terms.size, np.int32)
    all_posted = np.empty(0, np.bool_)
    for o in range(lons.size):
        for row in range(expires_us.size):
            if row_is_over(dead, expires_us, row, nows_us[o]):
                continue
            textual = row_similarity(
                0,
                terms,
                no_numbers,
                term_offsets[o],
                term_offsets[o + 1],
                norms[o],
                literal_term,
                all_posted,
                literal_offsets[row],
                literal_offsets[row + 1],
                literal_idf,
                weights[row, NORM],
            )
            if textual < 0.0:
                continue
            distance = distance_m(weights[row, LON], weights[row, LAT], lons[o], lats[o])
            nano = score_nano(distance, textual, weights[row, ALPHA], weights[row, REACH])
            if nano < theta[row]:
                continue
            if found == room:
                objects = np.append(objects, np.empty(room, np.uint32))
                rows = np.append(rows, np.empty(room, np.uint32))
                nanos = np.append(nanos, np.empty(room, np.int32))
                room *= 2
            objects[found] = o
            rows[found] = row
            nanos[found] = nano
            found += 1
    return objects[:found], rows[:found], nanos[:found]


@kernel
def candidates_reaching_rows(
    room: CandidateRoom,
    count: int,
    block: RelevanceBlock,
    term_number: np.ndarray,
    live: LiveRows,
    scored: ScoredRows,
    posted: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """Score the first `count` candidates, and move those that reach `theta` to the front.

    Skips candidates that an earlier posted term finds. Returns how many reach `theta` and how many
    were scored.
    """
    objects, rows, nanos = room.object, room.row, room.nano
    numbers, bounds = room.number, room.bound
    lons, lats, nows_us, norms = block.lon, block.lat, block.now_us, block.norms
    term_offsets, terms = block.term_offsets, block.terms
    expires_us, theta, dead = live.expires_us, live.theta, live.dead
    literal_offsets, literal_term = scored.literal_offsets, scored.literal_term
    literal_idf, weights = scored.literal_idf, scored.weights
    # The data of rows is scattered in memory: prefetch it.
    felt = np.int64(0)
    left = 0
    found = 0
    for begin in range(0, count, TOUCHED):
        end = min(count, begin + TOUCHED)
        for k in range(begin, end):
            felt += np.int64(theta[np.int64(rows[k])])
        to = begin
        for k in range(begin, end):
            objects[to], rows[to], numbers[to] = objects[k], rows[k], numbers[k]
            to += 1e9 * (bounds[k] + BOUND_PADDING) >= theta[np.int64(rows[k])]
        for k in range(begin, to):
            row = np.int64(rows[k])
            felt += literal_offsets[row] + expires_us[row]
            felt += np.int64(weights[row, LON] + weights[row, NORM] > 0.0)
        for k in range(begin, to):
            at = literal_offsets[np.int64(rows[k])]
            felt += np.int64(literal_term[at] & np.uint64(1)) + np.int64(literal_idf[at] > 0.0)
        left += to - begin
        for k in range(begin, to):
            o = np.int64(objects[k])
            row = np.int64(rows[k])
            if row_is_over(dead, expires_us, row, nows_us[o]):
                continue
            textual = row_similarity(
                numbers[k],
                terms,
                term_number,
                term_offsets[o],
                term_offsets[o + 1],
                norms[o],
                literal_term,
                posted,
                literal_offsets[row],
                literal_offsets[row + 1],
                literal_idf,
                weights[row, NORM],
            )
            if textual < 0.0:
                continue
            distance = distance_m(weights[row, LON], weights[row, LAT], lons[o], lats[o])
            nano = score_nano(distance, textual, weights[row, ALPHA], weights[row, REACH])
            if nano >= theta[row]:
                objects[found], rows[found], nanos[found] = o, row, nano
                found += 1
    if felt == 1 and found < 0:
        left += 1  # keeps the compiler from removing the prefetch
    return found, left
