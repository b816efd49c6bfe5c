"""Placement: the one part of a plan that keeps an object.

Terms vote for their parts. Those that a leaf lists decide; only where an object has none of them
do the others vote, each for the part of its hash. The part with most votes wins, the first of
equal ones.
"""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import inlined, kernel
from placewire.kernels.routing import NOBODY, part_by_hash, part_listing_term, range_of_code


@inlined
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
                if part != NOBODY:
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

    `part_of_term` i32[lexicon] is NOBODY for a term that would not be listed.
    """
    part_of = np.empty(picked.size, np.int32)
    votes = np.full((parts, 2), -1, np.int64)
    for i in range(picked.size):
        begin, end = offsets[picked[i]], offsets[picked[i] + 1]
        best = np.int64(0)
        most = np.int64(0)
        for at in range(begin, end):
            part = np.int64(part_of_term[terms[at]])
            if part != NOBODY:
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
