"""Parts of a sample: which objects and subscriptions a rectangle or a set of terms takes."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel


@kernel
def cells_overlapping_box(cells: np.ndarray, picked: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Of the `picked` i64 rows of `cells` i32[m, 4] (all inside), those that touch the box.

    The box is first column, first row, end column, end row (ends outside).
    """
    found = np.empty(picked.size, np.int64)
    count = 0
    for row in picked:
        if cells[row, 1] >= box[3] or cells[row, 3] < box[1]:
            continue
        if cells[row, 0] <= cells[row, 2]:
            touches = cells[row, 0] < box[2] and cells[row, 2] >= box[0]
        else:
            touches = cells[row, 0] < box[2] or cells[row, 2] >= box[0]
        if touches:
            found[count] = row
            count += 1
    return found[:count].copy()


@kernel
def points_inside_box(
    columns: np.ndarray, rows: np.ndarray, picked: np.ndarray, box: np.ndarray
) -> np.ndarray:
    """Of the `picked` i64 points, those inside the box (ends outside)."""
    found = np.empty(picked.size, np.int64)
    count = 0
    for at in picked:
        if box[0] <= columns[at] < box[2] and box[1] <= rows[at] < box[3]:
            found[count] = at
            count += 1
    return found[:count].copy()


@kernel
def terms_present(
    offsets: np.ndarray, terms: np.ndarray, picked: np.ndarray, size: int
) -> np.ndarray:
    """Which of `size` terms the picked rows of a CSR column have: bool[size]; -1 is no term."""
    present = np.zeros(size, np.bool_)
    for row in picked:
        for at in range(offsets[row], offsets[row + 1]):
            if terms[at] >= 0:
                present[terms[at]] = True
    return present


@kernel
def terms_counted(
    offsets: np.ndarray, terms: np.ndarray, picked: np.ndarray, size: int
) -> np.ndarray:
    """How many of the picked rows of a CSR column have each of `size` terms: i64[size]."""
    counts = np.zeros(size, np.int64)
    for row in picked:
        for at in range(offsets[row], offsets[row + 1]):
            if terms[at] >= 0:
                counts[terms[at]] += 1
    return counts


@kernel
def rows_to_parts(
    offsets: np.ndarray,
    terms: np.ndarray,
    picked: np.ndarray,
    part_of_term: np.ndarray,
    parts: int,
    part_of_none: int,
) -> tuple:  # type: ignore[type-arg]
    """For each part, the picked rows that have a term of it: offsets i64[parts + 1], rows i64.

    `part_of_term` i32[lexicon] is -1 for a term that does not count. A row is in each of its parts
    once; a term -1 belongs to `part_of_none`.
    """
    seen = np.full(parts, -1, np.int64)
    counts = np.zeros(parts + 1, np.int64)
    for row in picked:
        for at in range(offsets[row], offsets[row + 1]):
            part = part_of_term[terms[at]] if terms[at] >= 0 else part_of_none
            if part >= 0 and seen[part] != row:
                seen[part] = row
                counts[part + 1] += 1
    for part in range(parts):
        counts[part + 1] += counts[part]
    rows = np.empty(counts[parts], np.int64)
    cursor = counts.copy()
    seen[:] = -1
    for row in picked:
        for at in range(offsets[row], offsets[row + 1]):
            part = part_of_term[terms[at]] if terms[at] >= 0 else part_of_none
            if part >= 0 and seen[part] != row:
                seen[part] = row
                rows[cursor[part]] = row
                cursor[part] += 1
    return counts, rows


@kernel
def rows_worked_by_part(
    offsets: np.ndarray,
    terms: np.ndarray,
    work: np.ndarray,
    picked: np.ndarray,
    part_of_term: np.ndarray,
    parts: int,
) -> np.ndarray:
    """What the picked rows of a CSR column cost in each part: f64[parts].

    A row costs 1 in every part that it has a term of, and the `work` f64 of those terms.
    """
    seen = np.full(parts, -1, np.int64)
    total = np.zeros(parts, np.float64)
    for row in picked:
        for at in range(offsets[row], offsets[row + 1]):
            part = part_of_term[terms[at]]
            if part >= 0:
                total[part] += work[at]
                if seen[part] != row:
                    seen[part] = row
                    total[part] += 1.0
    return total


@kernel
def terms_worked(
    offsets: np.ndarray, terms: np.ndarray, work: np.ndarray, picked: np.ndarray, size: int
) -> np.ndarray:
    """What the picked rows cost under each of `size` terms, 1 a row and its work: f64[size]."""
    total = np.zeros(size, np.float64)
    for row in picked:
        for at in range(offsets[row], offsets[row + 1]):
            total[terms[at]] += 1.0 + work[at]
    return total


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
