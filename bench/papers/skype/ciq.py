"""CIQ, the index that the Skype paper compares with: covering cells, lists by row, row at a time.

A row is posted in a number of cells that together cover the space: along the path of a quadtree
down to its place, the three siblings at each level and the last cell itself. With every cell goes
the text that an object from there needs (MinT), for its proximity is at most that of the nearest
edge. An object goes through the cells of its own path; in each it walks the lists of its terms
together, row after row, adds up the similarity, and takes those that reach MinT as candidates.

As kind to it as can be: a posting that no text can reach is left out, lists are cut into blocks
with the largest weight and the least MinT of each, and stretches of rows are skipped if the blocks
that are met there together cannot reach it. Depth and block size are arguments.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import kernel, read_only, subkernel
from placewire.kernels.space.regions import distance_m
from placewire.kernels.text.hash_table import (
    EMPTY,
    entry_of_hash,
    hashes_to_numbers,
    numbers_to_groups,
)
from placewire.kinds.relevant.kernels.score import RelevanceBlock
from placewire.kinds.relevant.match import Relevance
from placewire.kinds.relevant.rows import relevant_columns, scored_rows
from placewire.model.subscriptions import SubscriptionRows
from placewire.objects.kernels.best_of_rows import ALPHA, LAT, LON, NORM, REACH, ScoredRows
from placewire.objects.kernels.score import score_nano

PADDING = 2e-6  # more than 32-bit floats may take
ROUNDING = 200  # billionths: objects that score as the threshold does must not be lost


@subkernel
def key_of(cell: int, term: np.uint64) -> np.uint64:
    """One number of a cell and a term."""
    mixed = (term ^ (np.uint64(cell) * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(
        0xBF58476D1CE4E5B9
    )
    return mixed ^ (mixed >> np.uint64(31))


@subkernel
def cell_at(level: int, x: int, y: int) -> int:
    return (1 << (2 * level)) | (y << level) | x


@subkernel
def column_at(at: float, low: float, span: float, level: int) -> int:
    cells = 1 << level
    return min(max(np.int64((at - low) / span * cells), 0), cells - 1)


@subkernel
def distance_to_cell(
    lon: float,
    lat: float,
    space: tuple,
    level: int,
    x: int,
    y: int,  # type: ignore[type-arg]
) -> float:
    """No point of the cell is nearer than this."""
    west, south, width, height = space
    cells = 1 << level
    left, right = west + width * x / cells, west + width * (x + 1) / cells
    low, high = south + height * y / cells, south + height * (y + 1) / cells
    # Objects beyond the space are in its outermost cells.
    if x == 0:
        left = -180.0
    if x == cells - 1:
        right = 180.0
    if y == 0:
        low = -90.0
    if y == cells - 1:
        high = 90.0
    north_south = max(low - lat, lat - high, 0.0)
    east_west = max(left - lon, lon - right, 0.0)
    if lon < left and right == 180.0:
        east_west = min(east_west, lon + 180.0)
    if lon > right and left == -180.0:
        east_west = min(east_west, 180.0 - lon)
    nearest = 6371008.8 * np.radians(north_south)
    if east_west > 0.0:
        # The great circle to a meridian is never longer than to any point on it.
        across = 6371008.8 * np.arcsin(
            min(1.0, np.sin(np.radians(min(east_west, 90.0))) * np.cos(np.radians(lat)))
        )
        nearest = max(nearest, across)
    return nearest * 0.999999


@kernel
def rows_to_cells(
    rows: ScoredRows,
    theta: np.ndarray,
    space: tuple,  # type: ignore[type-arg]
    depth: int,
    counting: bool,
    keys: np.ndarray,
    out_row: np.ndarray,
    out_weight: np.ndarray,
    out_need: np.ndarray,
) -> int:
    """The postings of rows in their covering cells; gives how many."""
    literal_offsets, literal_term = rows.literal_offsets, rows.literal_term
    literal_idf, weights = rows.literal_idf, rows.weights
    written = 0
    for row in range(theta.size):
        lon, lat = weights[row, LON], weights[row, LAT]
        alpha, norm = weights[row, ALPHA], weights[row, NORM]
        for level in range(1, depth + 1):
            own_x = column_at(lon, space[0], space[2], level)
            own_y = column_at(lat, space[1], space[3], level)
            for corner in range(4):
                x = (own_x & ~1) | (corner & 1)
                y = (own_y & ~1) | (corner >> 1)
                if x == own_x and y == own_y and level < depth:
                    continue
                near = distance_to_cell(lon, lat, space, level, x, y)
                proximity = max(0.0, 1.0 - near / weights[row, REACH])
                left = theta[row] / 1e9 - alpha * proximity
                need = left / (1.0 - alpha) if alpha < 1.0 else (0.0 if left <= 0.0 else 2.0)
                if need > 1.0 + PADDING:
                    continue
                for literal in range(literal_offsets[row], literal_offsets[row + 1]):
                    if not counting:
                        keys[written] = key_of(cell_at(level, x, y), literal_term[literal])
                        out_row[written] = row
                        idf = literal_idf[literal]
                        out_weight[written] = idf / norm if norm > 0.0 else 0.0
                        out_need[written] = need - PADDING
                    written += 1
    return written


@kernel
def lists_to_blocks(
    list_offsets: np.ndarray, weight: np.ndarray, need: np.ndarray, block: int
) -> tuple:  # type: ignore[type-arg]
    lists = list_offsets.size - 1
    offsets = np.zeros(lists + 1, np.int64)
    for n in range(lists):
        offsets[n + 1] = offsets[n] + (list_offsets[n + 1] - list_offsets[n] + block - 1) // block
    most = np.zeros(offsets[lists], np.float32)
    least = np.full(offsets[lists], np.inf, np.float32)
    for n in range(lists):
        for at in range(list_offsets[n], list_offsets[n + 1]):
            to = offsets[n] + (at - list_offsets[n]) // block
            most[to] = max(most[to], weight[at])
            least[to] = min(least[to], need[at])
    return offsets, most, least


@kernel
def objects_in_cells(
    lons: np.ndarray,
    lats: np.ndarray,
    term_offsets: np.ndarray,
    terms: np.ndarray,
    norms: np.ndarray,
    term_table: np.ndarray,
    term_idf: np.ndarray,
    space: tuple,  # type: ignore[type-arg]
    depth: int,
    block: int,
    key_table: np.ndarray,
    list_offsets: np.ndarray,
    block_offsets: np.ndarray,
    block_weight: np.ndarray,
    block_need: np.ndarray,
    rows: np.ndarray,
    weight: np.ndarray,
    need: np.ndarray,
    scored: ScoredRows,
    theta: np.ndarray,
    counters: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """Every (object u32, row u32, score i32) that reaches its threshold.

    Counts postings walked, rows scored and stretches skipped.
    """
    weights = scored.weights
    room = 1024
    out_object = np.empty(room, np.uint32)
    out_row = np.empty(room, np.uint32)
    out_nano = np.empty(room, np.int32)
    found = 0
    longest = 1
    for o in range(lons.size):
        longest = max(longest, term_offsets[o + 1] - term_offsets[o])
    number = np.empty(longest, np.int64)
    at = np.empty(longest, np.int64)
    end = np.empty(longest, np.int64)
    value = np.empty(longest, np.float64)
    for o in range(lons.size):
        for level in range(1, depth + 1):
            cell = cell_at(
                level,
                column_at(lons[o], space[0], space[2], level),
                column_at(lats[o], space[1], space[3], level),
            )
            lists = 0
            for t in range(term_offsets[o], term_offsets[o + 1]):
                entry = entry_of_hash(key_table, key_of(cell, terms[t]))
                if key_table[entry + np.uint64(1)] == EMPTY or norms[o] == 0.0:
                    continue
                known = entry_of_hash(term_table, terms[t])
                number[lists] = np.int64(key_table[entry + np.uint64(1)])
                at[lists] = list_offsets[number[lists]]
                end[lists] = list_offsets[number[lists] + 1]
                value[lists] = term_idf[np.int64(term_table[known + np.uint64(1)])] / norms[o]
                lists += 1
            while lists:
                row = np.int64(rows[at[0]])
                for n in range(1, lists):
                    row = min(row, np.int64(rows[at[n]]))
                # What all current blocks together can reach, before the first of them ends.
                most = 0.0
                least = np.inf
                until = np.int64(1) << 40
                for n in range(lists):
                    begin = list_offsets[number[n]]
                    b = (at[n] - begin) // block
                    most += value[n] * block_weight[block_offsets[number[n]] + b]
                    least = min(least, block_need[block_offsets[number[n]] + b])
                    last = min(begin + (b + 1) * block, end[n]) - 1
                    until = min(until, np.int64(rows[last]))
                if most + PADDING < least:
                    n = 0
                    while n < lists:
                        while at[n] < end[n] and rows[at[n]] <= until:
                            at[n] += 1
                        if at[n] == end[n]:
                            lists -= 1
                            number[n], at[n], end[n], value[n] = (
                                number[lists],
                                at[lists],
                                end[lists],
                                value[lists],
                            )
                        else:
                            n += 1
                    counters[2] += 1
                    continue
                # Row after row up to there.
                while lists and row <= until:
                    textual = 0.0
                    wanted = np.float32(0.0)
                    following = np.int64(1) << 40
                    n = 0
                    while n < lists:
                        if np.int64(rows[at[n]]) == row:
                            textual += value[n] * weight[at[n]]
                            wanted = need[at[n]]
                            at[n] += 1
                            counters[0] += 1
                            if at[n] == end[n]:
                                lists -= 1
                                number[n], at[n], end[n], value[n] = (
                                    number[lists],
                                    at[lists],
                                    end[lists],
                                    value[lists],
                                )
                                continue
                        following = min(following, np.int64(rows[at[n]]))
                        n += 1
                    if textual + PADDING >= wanted:
                        counters[1] += 1
                        own = weights[row]
                        distance = distance_m(own[LON], own[LAT], lons[o], lats[o])
                        nano = score_nano(distance, textual, own[ALPHA], own[REACH])
                        if nano + ROUNDING >= theta[row]:
                            if found == room:
                                out_object = np.append(out_object, np.empty(room, np.uint32))
                                out_row = np.append(out_row, np.empty(room, np.uint32))
                                out_nano = np.append(out_nano, np.empty(room, np.int32))
                                room *= 2
                            out_object[found], out_row[found], out_nano[found] = o, row, nano
                            found += 1
                    row = following
    return out_object[:found], out_row[:found], out_nano[:found]


DEPTH, BLOCK = 5, 64


class Space(NamedTuple):
    """The box that is quartered."""

    west: float
    south: float
    width: float
    height: float


class CiqIndex(NamedTuple):
    """Lists by cell and term, ascending by row, and their blocks."""

    space: Space
    depth: int
    block: int
    key_table: np.ndarray
    list_offsets: np.ndarray
    block_offsets: np.ndarray
    block_weight: np.ndarray
    block_need: np.ndarray
    rows: np.ndarray
    weight: np.ndarray
    need: np.ndarray

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self[3:])


def build_ciq(
    rows: SubscriptionRows, theta: np.ndarray, depth: int = DEPTH, block: int = BLOCK
) -> CiqIndex:
    """Post rows in their covering cells, for thresholds that are at least `theta`."""
    scored = scored_rows(rows)
    lon, lat = relevant_columns(rows).points.T
    (west, east), (south, north) = (np.percentile(axis, (0.5, 99.5)) for axis in (lon, lat))
    space = Space(float(west), float(south), float(east - west), float(north - south))
    total = 0
    for counting in (True, False):
        keys, out_row = np.empty(total, np.uint64), np.empty(total, np.uint32)
        weight, need = np.empty(total, np.float32), np.empty(total, np.float32)
        out = keys, out_row, weight, need
        total = rows_to_cells(scored, read_only(theta), tuple(space), depth, counting, *out)
    table, numbers, distinct = hashes_to_numbers(read_only(keys))
    list_offsets, order = numbers_to_groups(numbers, distinct.size)
    weight, need = weight[order], need[order]
    blocks = lists_to_blocks(list_offsets, weight, need, block)
    return CiqIndex(space, depth, block, table, list_offsets, *blocks, out_row[order], weight, need)


def find_ciq(
    block: RelevanceBlock,
    rows: SubscriptionRows,
    index: CiqIndex,
    theta: np.ndarray,
    term_table: np.ndarray,
    term_idf: np.ndarray,
) -> Relevance:
    """The same pairs as `find_relevant`; scores differ by the rounding of 32-bit weights."""
    counters = np.zeros(3, np.int64)
    found = objects_in_cells(
        *map(read_only, (block.lon, block.lat, block.term_offsets, block.terms, block.norms)),
        read_only(term_table),
        read_only(term_idf),
        tuple(index.space),
        *index[1:3],
        *map(read_only, index[3:]),
        scored_rows(rows),
        read_only(theta),
        counters,
    )
    return Relevance(*found, counters)
