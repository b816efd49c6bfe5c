"""Leaves: which leaf of a plan a point is in, and what its parts see."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel, subkernel
from placewire.plans.kernels.owners import (
    NO_WORKER,
    owner_of_term,
    part_by_hash,
    part_listing_term,
    range_of_code,
)


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


@subkernel
def vote_for_part(votes: np.ndarray, poll: int, part: int) -> int:
    """Count a vote in i64[parts, 2] of (poll, votes): another poll's are void; gives its votes."""
    votes[part, 1] = votes[part, 1] + 1 if votes[part, 0] == poll else 1
    votes[part, 0] = poll
    return votes[part, 1]


@kernel
def objects_to_parts(
    codes: np.ndarray,
    term_offsets: np.ndarray,
    terms: np.ndarray,
    range_start: np.ndarray,
    range_leaf: np.ndarray,
    part_offsets: np.ndarray,
    term_table: np.ndarray,
) -> np.ndarray:
    """The part i32[n], counted over all leaves, that keeps each object.

    Codes are quickest in ascending order. An object without terms is kept by its leaf's first part.
    """
    part_of = np.empty(codes.size, np.int32)
    most_parts = np.int64(1)
    for leaf in range(part_offsets.size - 1):
        most_parts = max(most_parts, part_offsets[leaf + 1] - part_offsets[leaf])
    votes = np.full((most_parts, 2), -1, np.int64)
    r = 0
    last_range = range_start.size - 1
    for o in range(codes.size):
        code = codes[o]
        if code < range_start[r]:
            r = range_of_code(range_start, 0, code)
        elif r < last_range and range_start[r + 1] <= code:
            r = range_of_code(range_start, r, code)
        leaf = np.int64(range_leaf[r])
        first = part_offsets[leaf]
        parts = part_offsets[leaf + 1] - first
        best = np.int64(0)
        if parts > 1:
            most = np.int64(0)
            for at in range(term_offsets[o], term_offsets[o + 1]):
                part = part_listing_term(leaf, terms[at], term_table)
                if part != NO_WORKER:
                    got = vote_for_part(votes, 2 * o, part)
                    if got > most or (got == most and part < best):
                        best, most = part, got
            if most == 0:
                for at in range(term_offsets[o], term_offsets[o + 1]):
                    part = part_by_hash(terms[at], parts)
                    got = vote_for_part(votes, 2 * o + 1, part)
                    if got > most or (got == most and part < best):
                        best, most = part, got
        part_of[o] = first + best
    return part_of


@kernel
def rows_to_likely_parts(
    offsets: np.ndarray,
    terms: np.ndarray,
    picked: np.ndarray,
    part_of_term: np.ndarray,
    lexicon: np.ndarray,
    parts: int,
) -> np.ndarray:
    """The same for the picked rows of a sample, i32[picked], in one leaf that would be divided.

    `part_of_term` i32[lexicon] is NO_WORKER for a term that would not be listed.
    """
    part_of = np.empty(picked.size, np.int32)
    votes = np.full((parts, 2), -1, np.int64)
    for i in range(picked.size):
        begin, end = offsets[picked[i]], offsets[picked[i] + 1]
        best = np.int64(0)
        most = np.int64(0)
        for at in range(begin, end):
            part = np.int64(part_of_term[terms[at]])
            if part != NO_WORKER:
                got = vote_for_part(votes, 2 * i, part)
                if got > most or (got == most and part < best):
                    best, most = part, got
        if most == 0:
            for at in range(begin, end):
                part = part_by_hash(lexicon[terms[at]], parts)
                got = vote_for_part(votes, 2 * i + 1, part)
                if got > most or (got == most and part < best):
                    best, most = part, got
        part_of[i] = best
    return part_of
