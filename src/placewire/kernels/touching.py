"""Touching postings: pages of what lies in ranges of codes are read once, ahead of need."""

from __future__ import annotations

import numpy as np

from placewire.kernels.cells import MAX_LEVEL
from placewire.kernels.jit import kernel
from placewire.kernels.matching import first_cell_not_below
from placewire.kernels.postings import WORDS

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
