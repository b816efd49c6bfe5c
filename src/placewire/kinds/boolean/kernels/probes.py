"""Probe postings with a block of objects: find the cells, and so the lists, of each object.

The block's objects are in cell order and its (object, term) pairs are grouped by term, so each
term is looked up once per block and its cells are visited in memory order. The kinds `boolean` and
`nearest` process the lists differently.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import freeze, inlined_subkernel, kernel
from placewire.kernels.space.cells import (
    MAX_LEVEL,
    fine_column_of_lon,
    fine_row_of_lat,
    place_in_cell,
)
from placewire.kinds.boolean.kernels.postings import WORDS, BooleanIndex

AHEAD = 256  # lists prefetched before they are read
OBJECT, CELL, AT = 0, 1, 2  # columns of hits: object, cell, position in the group
PAGE_WORDS = 1024  # of four bytes


class Probe(NamedTuple):
    """A block of objects ready for matching: in cell order, pairs grouped by term."""

    group_term: NDArray[np.uint64]
    group_offsets: NDArray[np.int64]
    group_object: NDArray[np.uint32]
    codes: NDArray[np.uint32]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    now_us: NDArray[np.int64]
    term_offsets: NDArray[np.int64]
    terms: NDArray[np.uint64]
    signatures: NDArray[np.uint64]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return freeze, (Probe, tuple(self))


class Cursor(NamedTuple):
    """Where a kernel stopped: the group, run and position to resume at, and its counts so far.

    `found` pairs are in the buffers, of `candidates` postings that were tested. No match found so
    far expires before `next_expiry_us`.
    """

    group: int
    run: int
    at: int
    found: int
    next_expiry_us: int
    candidates: int


class ObjectInCell(NamedTuple):
    """The values to compare with a posting: the object's position in the cell and its signature."""

    object: np.uint32
    x: np.uint32
    y: np.uint32
    signature: np.uint64


@inlined_subkernel
def first_cell_not_below(codes: np.ndarray, first: int, last: int, code: int) -> int:
    """By galloping search the first position in codes[first:last] whose code is >= `code`."""
    step = 1
    low = first
    while low + step < last and codes[low + step] < code:
        low += step
        step *= 2
    high = min(low + step, last)
    while low < high:
        middle = (low + high) >> 1
        if codes[middle] < code:
            low = middle + 1
        else:
            high = middle
    return low


@inlined_subkernel
def objects_meeting_cells(
    group_object: np.ndarray,
    at: int,
    end: int,
    codes: np.ndarray,
    shift: int,
    cell_code: np.ndarray,
    cell_offsets: np.ndarray,
    words: np.ndarray,
    cell: int,
    last_cell: int,
    hits: np.ndarray,
    touched: np.uint32,
) -> tuple[int, int, int, np.uint32]:
    """Find the cells of up to AHEAD of the objects group_object[at:end], from `cell` on.

    Writes them to `hits` i64[AHEAD, 3]. Returns their number, and the position and cell to resume
    at. Reads a word of each list into `touched` to prefetch all of them before the first is
    searched. (A `break` would make the compiler count references.)
    """
    found = 0
    while at < end and found < AHEAD and cell < last_cell:
        o = group_object[at]
        code = np.int64(codes[o]) >> shift
        if cell_code[cell] < code:
            cell = first_cell_not_below(cell_code, cell, last_cell, code)
        if cell < last_cell and cell_code[cell] == code:
            hits[found, OBJECT] = o
            hits[found, CELL] = cell
            hits[found, AT] = at
            touched ^= words[cell_offsets[cell] * WORDS]
            found += 1
        at += 1
    return found, at, cell, touched


@inlined_subkernel
def object_in_cell(
    o: np.uint32, lons: np.ndarray, lats: np.ndarray, signatures: np.ndarray, level: int
) -> ObjectInCell:
    """Return the object's values to compare with postings of this level."""
    x = np.uint32(place_in_cell(np.int64(fine_column_of_lon(lons[o])), level))
    y = np.uint32(place_in_cell(np.int64(fine_row_of_lat(lats[o])), level))
    return ObjectInCell(o, x, y, signatures[o])


@kernel
def ranges_touching_postings(
    start: np.ndarray, end: np.ndarray, index: BooleanIndex, sums: np.ndarray
) -> int:
    """Prefetch the postings in ranges of codes start[i] to end[i] (exclusive), a word of each page.

    Returns the number of postings there. Words are added to `sums` u32[1], so that they are read.
    """
    run_level, run_cells = index.run_level, index.run_cells
    cell_code, cell_offsets = index.cell_code, index.cell_offsets
    words = index.postings.reshape(-1)
    total = np.int64(0)
    read = np.uint32(0)
    for r in range(run_level.size):
        shift = 2 * (MAX_LEVEL - np.int64(run_level[r]))
        cell = np.int64(run_cells[r])
        last = np.int64(run_cells[r + 1])
        done = cell  # already read for an earlier range
        for i in range(start.size):
            if cell >= last:
                break
            low = np.int64(start[i]) >> shift
            high = (np.int64(end[i]) - 1) >> shift
            if cell_code[cell] < low:
                cell = first_cell_not_below(cell_code, cell, last, low)
            begin = cell
            while cell < last and cell_code[cell] <= high:
                cell += 1
            if cell > max(begin, done):
                first, stop = cell_offsets[max(begin, done)], cell_offsets[cell]
                total += stop - first
                for at in range(first * WORDS, stop * WORDS, PAGE_WORDS):
                    read ^= words[at]
                done = cell
            if cell > begin:
                # The next range may lie in the same cell of this coarse level.
                cell -= 1
    sums[0] ^= read
    return total
