"""Counting for plans: spans along an axis, weights over parts, rows shared between workers."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel

WORD_BITS = 64


@kernel
def spans_along_axis(cells: np.ndarray, picked: np.ndarray, box: np.ndarray, axis: int) -> tuple:  # type: ignore[type-arg]
    """How many of the picked cells begin and how many end at each place of a box: i64[w], i64[w].

    `cells` i32[m, 4] are as in a sample and all touch the box; `axis` 0 is columns, 1 is rows. Of
    a cell that crosses the antimeridian the outermost places inside the box count, so that a cut
    has it on both sides exactly when both sides touch it.
    """
    start = box[axis]
    width = box[axis + 2] - start
    begins = np.zeros(width, np.int64)
    ends = np.zeros(width, np.int64)
    for row in picked:
        first = np.int64(cells[row, axis]) - start
        last = np.int64(cells[row, axis + 2]) - start
        if first > last:
            first, last = (
                np.int64(0) if last >= 0 else first,
                np.int64(width - 1) if first < width else last,
            )
        begins[max(first, 0)] += 1
        ends[min(last, width - 1)] += 1
    return begins, ends


@kernel
def weights_to_parts(weights: np.ndarray, loads: np.ndarray) -> np.ndarray:
    """Give each of the weights f64[n], in their order, to the part with least load: i32[n].

    `loads` f64[parts] is what the parts have before; it is left as it was.
    """
    carried = loads.copy()
    part = np.empty(weights.size, np.int32)
    for at in range(weights.size):
        least = 0
        for other in range(1, carried.size):
            if carried[other] < carried[least]:
                least = other
        carried[least] += weights[at]
        part[at] = least
    return part


@kernel
def rows_counted_by_part(
    offsets: np.ndarray,
    terms: np.ndarray,
    picked: np.ndarray,
    part_of_term: np.ndarray,
    parts: int,
) -> np.ndarray:
    """How many of the picked rows of a CSR column have a term of each part: i64[parts].

    `part_of_term` i32[lexicon] is -1 for a term that does not count; a term -1 is of part 0.
    """
    seen = np.full(parts, -1, np.int64)
    counts = np.zeros(parts, np.int64)
    for row in picked:
        for at in range(offsets[row], offsets[row + 1]):
            part = part_of_term[terms[at]] if terms[at] >= 0 else 0
            if part >= 0 and seen[part] != row:
                seen[part] = row
                counts[part] += 1
    return counts


@kernel
def rows_held_by_workers(holders: np.ndarray, rows: np.ndarray, workers: int) -> np.ndarray:
    """How many of the rows each worker holds: i64[workers].

    `holders` u64[n, words] has a bit for each worker of a row.
    """
    counts = np.zeros(workers, np.int64)
    one = np.uint64(1)
    byte = np.uint64(255)
    for row in rows:
        for word in range(holders.shape[1]):
            bits = holders[row, word]
            worker = word * WORD_BITS
            while bits:
                if bits & byte == 0:  # most rows have one worker or two, far up in the word
                    bits >>= np.uint64(8)
                    worker += 8
                    continue
                if bits & one:
                    counts[worker] += 1
                bits >>= one
                worker += 1
    return counts


@kernel
def rows_given_to_worker(holders: np.ndarray, rows: np.ndarray, worker: int) -> int:
    """Mark in `holders` u64[n, words] that a worker holds these rows: how many it had not yet."""
    word = worker // WORD_BITS
    bit = np.uint64(1) << np.uint64(worker % WORD_BITS)
    given = 0
    for row in rows:
        if holders[row, word] & bit == 0:
            holders[row, word] |= bit
            given += 1
    return given
