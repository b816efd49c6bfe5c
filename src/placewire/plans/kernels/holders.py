"""Holding: which workers must hold a subscription, and how many posts an object has near it."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel, subkernel
from placewire.kernels.text.hash_table import EMPTY, entry_of_hash
from placewire.kinds.boolean.kernels.postings import ANY_TERM
from placewire.plans.kernels.owners import NO_WORKER, ONE, WIDE, key_of_scope_term, owner_of_term


@kernel
def rows_to_holders(
    leaf_offsets: np.ndarray,
    leaves: np.ndarray,
    post_offsets: np.ndarray,
    post_term: np.ndarray,
    part_offsets: np.ndarray,
    part_worker: np.ndarray,
    term_table: np.ndarray,
    workers: int,
) -> tuple:  # type: ignore[type-arg]
    """The rows that each worker must hold, ascending: offsets i64[workers + 1] and rows i64.

    Row r touches leaves[leaf_offsets[r]:leaf_offsets[r + 1]] and is posted under
    post_term[post_offsets[r]:post_offsets[r + 1]].
    """
    rows = leaf_offsets.size - 1
    offsets = np.zeros(workers + 1, np.int64)
    cursor = np.zeros(workers, np.int64)
    held = np.empty(0, np.int64)
    seen = np.full(workers, -1, np.int64)
    for writing in (False, True):
        for row in range(rows):
            for k in range(leaf_offsets[row], leaf_offsets[row + 1]):
                leaf = np.int64(leaves[k])
                single = part_offsets[leaf + 1] - part_offsets[leaf] == 1
                for p in range(post_offsets[row], post_offsets[row + 1]):
                    worker = part_worker[part_offsets[leaf]]
                    if not single and post_term[p] != ANY_TERM:
                        worker = owner_of_term(
                            leaf, post_term[p], part_offsets, part_worker, term_table
                        )
                    if seen[worker] != row:
                        seen[worker] = row
                        if writing:
                            held[cursor[worker]] = row
                            cursor[worker] += 1
                        else:
                            offsets[worker + 1] += 1
                    if single:
                        break
        if not writing:
            for worker in range(workers):
                offsets[worker + 1] += offsets[worker]
            cursor[:] = offsets[:-1]
            held = np.empty(offsets[workers], np.int64)
            seen[:] = -1
    return offsets, held


@kernel
def posts_to_counts(
    post_row: np.ndarray,
    post_term: np.ndarray,
    cell_offsets: np.ndarray,
    cells: np.ndarray,
    room: int,
) -> np.ndarray:
    """A table u64[2 s] of how many posts there are under each (cell, term); `room` keys fit."""
    size = 16
    while size < 3 * room:
        size *= 2
    table = np.full(size, EMPTY, np.uint64)
    for p in range(post_row.size):
        row = post_row[p]
        for at in range(cell_offsets[row], cell_offsets[row + 1]):
            key = key_of_scope_term(np.int64(cells[at]), post_term[p])
            entry = entry_of_hash(table, key)
            if table[entry + ONE] == EMPTY:
                table[entry] = key
                table[entry + ONE] = np.uint64(0)
            table[entry + ONE] += ONE
    return table


@subkernel
def count_of_key(table: np.ndarray, key: np.uint64) -> float:
    """The count of a key in such a table."""
    number = table[entry_of_hash(table, key) + ONE]
    return 0.0 if number == EMPTY else np.float64(number)


@kernel
def pairs_near_posts(
    codes: np.ndarray,
    term_offsets: np.ndarray,
    terms: np.ndarray,
    table: np.ndarray,
    cell_shift: int,
) -> tuple:  # type: ignore[type-arg]
    """How many posts are near each (object, term) pair, f64[pairs], and each object alone, f64[n].

    Near is in the same cell, or everywhere.
    """
    of_pair = np.empty(terms.size, np.float64)
    alone = np.empty(codes.size, np.float64)
    for o in range(codes.size):
        cell = np.int64(codes[o] >> np.uint32(cell_shift))
        for at in range(term_offsets[o], term_offsets[o + 1]):
            here = count_of_key(table, key_of_scope_term(cell, terms[at]))
            of_pair[at] = here + count_of_key(table, key_of_scope_term(WIDE, terms[at]))
        here = count_of_key(table, key_of_scope_term(cell, ANY_TERM))
        alone[o] = here + count_of_key(table, key_of_scope_term(WIDE, ANY_TERM))
    return of_pair, alone


@kernel
def owners_to_work(
    pair_worker: np.ndarray,
    any_worker: np.ndarray,
    of_pair: np.ndarray,
    alone: np.ndarray,
    workers: int,
) -> np.ndarray:
    """The sum over each worker's probed pairs and objects: f64[workers]."""
    work = np.zeros(workers, np.float64)
    for at in range(pair_worker.size):
        if pair_worker[at] != NO_WORKER:
            work[pair_worker[at]] += of_pair[at]
    for o in range(any_worker.size):
        if any_worker[o] != NO_WORKER:
            work[any_worker[o]] += alone[o]
    return work
