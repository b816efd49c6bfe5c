"""Find the leaf of a point, the leaves that a range overlaps, and the objects of their parts."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import array_subkernel, kernel, subkernel
from placewire.plans.kernels.owners import (
    NO_WORKER,
    owner_of_term,
    part_by_hash,
    part_listing_term,
    range_of_code,
)


@kernel
def points_to_leaves(columns: np.ndarray, rows: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """The leaf i32[n] of each point; boxes i32[leaves, 4] tile the world (ends exclusive)."""
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
    """Return the part i32[n], counted over all leaves, of a term u64[n] in a leaf i32[n]."""
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
    """Count the objects that each part receives: i64[parts].

    The only part of a leaf receives all of its objects; one of several, those with a term of it.
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


@subkernel
def vote_for_part(votes: np.ndarray, poll: int, part: int) -> int:
    """Count a vote in i64[parts, 2] of (poll, votes), reset for each poll; return the votes."""
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
    part_worker: np.ndarray,
    term_table: np.ndarray,
) -> np.ndarray:
    """Return the part i32[n], counted over all leaves, that stores each object.

    Ascending codes are fastest. An object without terms is stored by its leaf's first part.
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
    """The part i32[picked] that would store each of the picked rows of a sample, in one leaf.

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


@array_subkernel
def found_with_room(found: np.ndarray, count: int) -> np.ndarray:
    """Return the array, or a copy of twice its size if it is full."""
    if count < found.size:
        return found
    wider = np.empty(2 * found.size, found.dtype)
    wider[:count] = found
    return wider


@kernel
def neighbours_overlapping_ranges(
    column_of: np.ndarray,
    row_of: np.ndarray,
    leaf_at: np.ndarray,
    boxes: np.ndarray,
    ranges: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """Apply Tornado's neighbour-based search, from dominant cell to dominant cell.

    `leaf_at` i32[columns, rows] is the leaf of each fine cell, `boxes` i32[leaves, 4] the leaves in
    fine cells. A leaf's dominant cell is the first of its cells inside the range, in both columns
    and rows. One step from it crosses the leaf's far column edge along the dominant row, another
    crosses its far row edge along the dominant column.

    This finds every leaf of any tiling. Take a leaf P with dominant cell (x, y) other than the
    corner of the range. If the neighbour Q at (x - 1, y) is in the range and begins in row y of it,
    a step from Q reaches P. If Q begins earlier, Q also has (x - 1, y - 1), so the leaf T at
    (x, y - 1) begins in column x, and a step from T reaches P; likewise if no Q is in the range. Q
    or T has an earlier dominant cell and was found in the same way.
    """
    leaves = boxes.shape[0]
    last_column = leaf_at.shape[0] - 1
    offsets = np.zeros(ranges.shape[0] + 1, np.int64)
    found = np.empty(ranges.shape[0] + 16, np.int32)
    # A visited leaf pushes at most two leaves and is visited once, which bounds the stack.
    stack = np.empty(leaves + 2, np.int32)
    # Twice the number of the last range that saw a leaf, plus one beyond the antimeridian.
    seen = np.full(leaves, -1, np.int64)
    count = 0
    steps = 0
    for i in range(ranges.shape[0]):
        south = row_of[ranges[i, 1]]
        north = row_of[ranges[i, 3]]
        crosses = ranges[i, 0] > ranges[i, 2]
        for side in range(2 if crosses else 1):
            west = column_of[ranges[i, 0]] if side == 0 else 0
            east = last_column if crosses and side == 0 else column_of[ranges[i, 2]]
            now = 2 * i + side
            stack[0] = leaf_at[west, south]
            top = 1
            while top > 0:
                top -= 1
                steps += 1
                leaf = stack[top]
                if seen[leaf] == now:
                    continue
                if seen[leaf] < 2 * i:
                    found = found_with_room(found, count)
                    found[count] = leaf
                    count += 1
                seen[leaf] = now
                if boxes[leaf, 3] <= north:
                    stack[top] = leaf_at[max(west, boxes[leaf, 0]), boxes[leaf, 3]]
                    top += 1
                if boxes[leaf, 2] <= east:
                    stack[top] = leaf_at[boxes[leaf, 2], max(south, boxes[leaf, 1])]
                    top += 1
        offsets[i + 1] = count
    return offsets, found[:count].copy(), steps
