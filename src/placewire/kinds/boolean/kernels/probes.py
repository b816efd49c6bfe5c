"""Looking: how one object meets the postings of a segment, counted as matching sifts them."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel
from placewire.kernels.space.cells import (
    MAX_LEVEL,
    fine_column_of_lon,
    fine_row_of_lat,
    place_in_cell,
)
from placewire.kernels.text.hash_table import EMPTY, entry_of_hash
from placewire.kinds.boolean.kernels.match import first_cell_not_below, postings_sifted
from placewire.kinds.boolean.kernels.postings import WORDS


@kernel
def object_meeting_postings(
    probed: np.ndarray,
    code: int,
    lon: float,
    lat: float,
    signature: np.uint64,
    term_table: np.ndarray,
    run_offsets: np.ndarray,
    run_level: np.ndarray,
    run_cells: np.ndarray,
    cell_code: np.ndarray,
    cell_offsets: np.ndarray,
    postings: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """How many of the terms `probed` u64 have postings, cells searched, cells met, postings looked
    at, and of these: sure matches and postings in doubt, which exact tests decide."""
    words = postings.reshape(-1)
    longest = 1
    for cell in range(cell_code.size):
        longest = max(longest, cell_offsets[cell + 1] - cell_offsets[cell])
    out = np.empty(longest, np.uint32)
    rows = np.empty(longest, np.uint32)
    doubt = np.empty(longest, np.uint32)
    doubt_posting = np.empty(longest, np.int64)
    known = searched = met = looked = sure = doubtful = 0
    for term in probed:
        entry = entry_of_hash(term_table, term)
        if term_table[entry + np.uint64(1)] == EMPTY:
            continue
        known += 1
        t = np.int64(term_table[entry + np.uint64(1)])
        for r in range(np.int64(run_offsets[t]), np.int64(run_offsets[t + 1])):
            searched += 1
            level = np.int64(run_level[r])
            own = np.int64(code) >> (2 * (MAX_LEVEL - level))
            end = np.int64(run_cells[r + 1])
            cell = np.int64(run_cells[r])
            if cell < end and cell_code[cell] < own:
                cell = first_cell_not_below(cell_code, cell, end, own)
            if cell == end or cell_code[cell] != own:
                continue
            met += 1
            looked += cell_offsets[cell + 1] - cell_offsets[cell]
            found, aside = postings_sifted(
                words,
                cell_offsets[cell],
                cell_offsets[cell + 1],
                np.uint32(place_in_cell(np.int64(fine_column_of_lon(lon)), level)),
                np.uint32(place_in_cell(np.int64(fine_row_of_lat(lat)), level)),
                signature,
                np.uint32(0),
                out,
                rows,
                0,
                doubt,
                doubt_posting,
                0,
            )
            sure += found
            doubtful += aside
    return known, searched, met, looked, sure, doubtful


PAGE_WORDS = 1024  # of four bytes


@kernel
def ranges_touching_postings(
    start: np.ndarray,
    end: np.ndarray,
    run_level: np.ndarray,
    run_cells: np.ndarray,
    cell_code: np.ndarray,
    cell_offsets: np.ndarray,
    postings: np.ndarray,
    sums: np.ndarray,
) -> int:
    """Read a word of each page of the postings in ranges of codes start[i] to end[i] (outside).

    Gives how many postings lie there; what was read is added to `sums` u32[1], so that it is.
    """
    words = postings.reshape(-1)
    total = np.int64(0)
    read = np.uint32(0)
    for r in range(run_level.size):
        shift = 2 * (MAX_LEVEL - np.int64(run_level[r]))
        cell = np.int64(run_cells[r])
        last = np.int64(run_cells[r + 1])
        done = cell  # what was read for an earlier range
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
                # The next range may lie in the same cell of so coarse a level.
                cell -= 1
    sums[0] ^= read
    return total
