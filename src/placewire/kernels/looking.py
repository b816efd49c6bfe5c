"""Looking: how one object meets the postings of a segment, counted as matching sifts them."""

from __future__ import annotations

import numpy as np

from placewire.kernels.cells import MAX_LEVEL, fine_column_of_lon, fine_row_of_lat, place_in_cell
from placewire.kernels.interning import EMPTY, entry_of_hash
from placewire.kernels.jit import kernel
from placewire.kernels.matching import first_cell_not_below, postings_sifted


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
