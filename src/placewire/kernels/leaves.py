"""Leaves: which leaf of a plan a point is in, and what its parts see."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel
from placewire.kernels.routing import owner_of_term


@kernel
def points_to_leaves(columns: np.ndarray, rows: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """The leaf i32[n] of each point, of boxes i32[leaves, 4] that tile the world (ends outside)."""
    leaf = np.zeros(columns.size, np.int32)
    for i in range(columns.size):
        for at in range(boxes.shape[0]):
            if boxes[at, 0] <= columns[i] < boxes[at, 2] and boxes[at, 1] <= rows[i] < boxes[at, 3]:
                leaf[i] = at
                break
    return leaf


@kernel
def terms_to_leaf_parts(
    leaves: np.ndarray, terms: np.ndarray, part_offsets: np.ndarray, term_table: np.ndarray
) -> np.ndarray:
    """The part i32[n], counted over all leaves, of a term u64[n] in a leaf i32[n]."""
    numbers = np.arange(part_offsets[-1]).astype(np.int32)
    part = np.empty(leaves.size, np.int32)
    for i in range(leaves.size):
        part[i] = owner_of_term(leaves[i], terms[i], part_offsets, numbers, term_table)
    return part


@kernel
def objects_counted_by_part(
    leaves: np.ndarray,
    term_offsets: np.ndarray,
    terms: np.ndarray,
    part_offsets: np.ndarray,
    term_table: np.ndarray,
) -> np.ndarray:
    """How many objects each part sees: i64[parts].

    The only part of a leaf sees all of the leaf's; one of several those that have a term of it.
    """
    numbers = np.arange(part_offsets[-1]).astype(np.int32)
    seen = np.full(part_offsets[-1], -1, np.int64)
    counts = np.zeros(part_offsets[-1], np.int64)
    for i in range(leaves.size):
        first = part_offsets[leaves[i]]
        if part_offsets[leaves[i] + 1] - first == 1:
            counts[first] += 1
            continue
        for at in range(term_offsets[i], term_offsets[i + 1]):
            part = owner_of_term(leaves[i], terms[at], part_offsets, numbers, term_table)
            if seen[part] != i:
                seen[part] = i
                counts[part] += 1
    return counts


@kernel
def rows_least_frequent(
    offsets: np.ndarray, lists: np.ndarray, terms: np.ndarray, frequency: np.ndarray
) -> np.ndarray:
    """Where in a CSR column the least frequent term of each row is, -1 for none: i64[n].

    `lists` i64 has each term's place in `frequency` i64, -1 for one of frequency 0. Of equally
    frequent ones the least hash is taken.
    """
    least = np.full(offsets.size - 1, -1, np.int64)
    for row in range(offsets.size - 1):
        fewest = np.int64(0)
        for at in range(offsets[row], offsets[row + 1]):
            count = frequency[lists[at]] if lists[at] >= 0 else np.int64(0)
            if (
                least[row] < 0
                or count < fewest
                or (count == fewest and terms[at] < terms[least[row]])
            ):
                least[row] = at
                fewest = count
    return least
