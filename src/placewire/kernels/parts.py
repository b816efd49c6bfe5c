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
