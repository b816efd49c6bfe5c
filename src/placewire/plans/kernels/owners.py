"""Route by leaves: find the worker that owns each (place, term) of an object or of a row.

Objects are in code order, so their ranges are found by advancing, not by binary search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import kernel, subkernel
from placewire.kernels.text.hash_table import EMPTY, entry_of_hash
from placewire.kinds.boolean.kernels.postings import ANY_TERM
from placewire.plans.kernels.term_maps import (
    GOLDEN,
    HALF,
    ONE,
    WIDE,
    key_is_set,
    key_of_scope_term,
)

# Manners of routing by scope: no term map, or a map by cell, leaf or worker.
ALL_LIVE, CELLS, LEAVES, WORKERS = 0, 1, 2, 3

NO_WORKER = -1

SEVERAL = -2


class RouteTables(NamedTuple):
    """A plan in the form that routing reads; every array can be mapped from disk."""

    range_start: NDArray[np.uint32]
    range_leaf: NDArray[np.int32]
    part_offsets: NDArray[np.int64]
    part_worker: NDArray[np.int32]
    term_table: NDArray[np.uint64]


@subkernel
def key_of_leaf_term(leaf: int, term: np.uint64) -> np.uint64:
    """Return the lookup key of a term that a leaf lists."""
    return term ^ (np.uint64(leaf + 1) * GOLDEN)


@subkernel
def part_listing_term(leaf: int, term: np.uint64, term_table: np.ndarray) -> int:
    """Return the part, counted from the leaf's first, that lists a term; NO_WORKER if none does."""
    number = term_table[entry_of_hash(term_table, key_of_leaf_term(leaf, term)) + ONE]
    return np.int64(number) if number != EMPTY else np.int64(NO_WORKER)


@subkernel
def part_by_hash(term: np.uint64, parts: int) -> int:
    """Return the part of an unlisted term."""
    return np.int64((term >> HALF) % np.uint64(parts))


@subkernel
def owner_of_term(
    leaf: int,
    term: np.uint64,
    part_offsets: np.ndarray,
    part_worker: np.ndarray,
    term_table: np.ndarray,
) -> int:
    """Return the worker of a term in a leaf; unlisted terms go by hash."""
    first = part_offsets[leaf]
    parts = part_offsets[leaf + 1] - first
    part = np.int64(0)
    if parts > 1:
        part = part_listing_term(leaf, term, term_table)
        if part == NO_WORKER:
            part = part_by_hash(term, parts)
    return part_worker[first + part]


@kernel
def leaf_terms_to_table(
    term_offsets: np.ndarray, terms: np.ndarray, term_part: np.ndarray
) -> np.ndarray:
    """Build the table u64[2 s] of (leaf and term, part) of all listed terms, at most half full."""
    size = 16
    while size < 4 * terms.size:
        size *= 2
    table = np.full(size, EMPTY, np.uint64)
    for leaf in range(term_offsets.size - 1):
        for at in range(term_offsets[leaf], term_offsets[leaf + 1]):
            key = key_of_leaf_term(leaf, terms[at])
            entry = entry_of_hash(table, key)
            table[entry] = key
            table[entry + ONE] = np.uint64(term_part[at])
    return table


@subkernel
def range_of_code(range_start: np.ndarray, r: int, code: np.uint32) -> int:
    """Return by galloping search, from range `r` on, the last range that begins by `code`."""
    last = range_start.size - 1
    step = 1
    while r + step <= last and range_start[r + step] <= code:
        r += step
        step *= 2
    low, high = r, min(r + step, last + 1)
    while high - low > 1:
        middle = (low + high) >> 1
        if range_start[middle] <= code:
            low = middle
        else:
            high = middle
    return low


@kernel
def objects_to_owners(
    codes: np.ndarray,
    term_offsets: np.ndarray,
    terms: np.ndarray,
    range_start: np.ndarray,
    range_leaf: np.ndarray,
    part_offsets: np.ndarray,
    part_worker: np.ndarray,
    term_table: np.ndarray,
    manner: int,
    cell_shift: int,
    live: np.ndarray,
    wide: np.ndarray,
    needless: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """The worker to probe each (object, term) pair, i32[pairs], and each object alone, i32[n].

    NO_WORKER means that nothing live can match. Codes ascend; `manner` says what scopes are. The
    object alone is probed for subscriptions that need no term, by the worker of its leaf's first
    part. The third array, i32[n], is the one worker of each object whose leaf has one part:
    NO_WORKER if no worker needs it, SEVERAL where the pairs decide.

    The arrays are the members of `Objects`, `RouteTables` and `LiveTables`. Scalars precede the
    maps: placed last, they made plans that split by text 1.3x slower to route.
    """
    pair_worker = np.empty(terms.size, np.int32)
    any_worker = np.empty(codes.size, np.int32)
    one_worker = np.empty(codes.size, np.int32)
    r = 0
    last_range = range_start.size - 1
    wide_any = needless[-1] != 0
    has_wide = wide.size > 1
    for o in range(codes.size):
        code = codes[o]
        if r < last_range and range_start[r + 1] <= code:
            r = range_of_code(range_start, r, code)
        leaf = np.int64(range_leaf[r])
        first = part_offsets[leaf]
        alone = np.int64(part_worker[first])
        scope = leaf
        if manner == CELLS:
            scope = np.int64(code >> np.uint32(cell_shift))
        elif manner == WORKERS:
            scope = alone
        asked = manner == ALL_LIVE or wide_any or needless[scope] != 0
        any_worker[o] = alone if asked else NO_WORKER
        if part_offsets[leaf + 1] - first > 1:
            one_worker[o] = SEVERAL
            for at in range(term_offsets[o], term_offsets[o + 1]):
                term = terms[at]
                worker = np.int64(NO_WORKER)
                if manner == WORKERS:
                    worker = owner_of_term(leaf, term, part_offsets, part_worker, term_table)
                    scope = worker
                live_here = manner == ALL_LIVE or key_is_set(live, key_of_scope_term(scope, term))
                if not live_here and has_wide:
                    live_here = key_is_set(wide, key_of_scope_term(WIDE, term))
                if live_here and manner != WORKERS:
                    # The table of listed terms is large: look up only terms that are live.
                    worker = owner_of_term(leaf, term, part_offsets, part_worker, term_table)
                pair_worker[at] = worker if live_here else NO_WORKER
            continue
        # One owner for all: branch on no term, since half of them are live, at random.
        some = np.int64(asked)
        for at in range(term_offsets[o], term_offsets[o + 1]):
            here = np.int64(1)
            if manner != ALL_LIVE:
                here = np.int64(key_is_set(live, key_of_scope_term(scope, terms[at])))
                if has_wide:
                    here |= np.int64(key_is_set(wide, key_of_scope_term(WIDE, terms[at])))
            some |= here
            pair_worker[at] = here * (alone + 1) - 1
        one_worker[o] = some * (alone + 1) - 1
    return pair_worker, any_worker, one_worker


@kernel
def owners_to_workers(
    term_offsets: np.ndarray,
    pair_worker: np.ndarray,
    any_worker: np.ndarray,
    one_worker: np.ndarray,
    workers: int,
) -> tuple:  # type: ignore[type-arg]
    """Return for each worker the objects it needs, ascending: offsets i64[workers + 1], i64."""
    seen = np.full(workers, -1, np.int64)
    offsets = np.zeros(workers + 1, np.int64)
    for o in range(any_worker.size):
        if one_worker[o] != SEVERAL:
            offsets[one_worker[o] + 1] += one_worker[o] != NO_WORKER
            continue
        for at in range(term_offsets[o], term_offsets[o + 1] + 1):
            worker = pair_worker[at] if at < term_offsets[o + 1] else any_worker[o]
            if worker != NO_WORKER and seen[worker] != o:
                seen[worker] = o
                offsets[worker + 1] += 1
    for worker in range(workers):
        offsets[worker + 1] += offsets[worker]
    cursor = offsets.copy()
    objects = np.empty(offsets[workers] + 1, np.int64)
    seen[:] = -1
    for o in range(any_worker.size):
        if one_worker[o] != SEVERAL:
            if one_worker[o] != NO_WORKER:
                objects[cursor[one_worker[o]]] = o
                cursor[one_worker[o]] += 1
            continue
        for at in range(term_offsets[o], term_offsets[o + 1] + 1):
            worker = pair_worker[at] if at < term_offsets[o + 1] else any_worker[o]
            if worker != NO_WORKER and seen[worker] != o:
                seen[worker] = o
                objects[cursor[worker]] = o
                cursor[worker] += 1
    return offsets, objects[: offsets[workers]]


@kernel
def objects_to_share(
    term_offsets: np.ndarray,
    terms: np.ndarray,
    pair_worker: np.ndarray,
    any_worker: np.ndarray,
    picked: np.ndarray,
    worker: int,
) -> tuple:  # type: ignore[type-arg]
    """A worker's share of the picked objects.

    Returns all terms of each (offsets i64[k + 1], terms u64), which of them the worker probes (u8)
    and whether it probes the object alone (u8[k]).
    """
    offsets = np.empty(picked.size + 1, np.int64)
    offsets[0] = 0
    for k in range(picked.size):
        o = picked[k]
        offsets[k + 1] = offsets[k] + term_offsets[o + 1] - term_offsets[o]
    kept = np.empty(offsets[-1], np.uint64)
    probed = np.empty(offsets[-1], np.uint8)
    alone = np.empty(picked.size, np.uint8)
    to = 0
    for k in range(picked.size):
        o = picked[k]
        alone[k] = any_worker[o] == worker
        for at in range(term_offsets[o], term_offsets[o + 1]):
            kept[to] = terms[at]
            probed[to] = pair_worker[at] == worker
            to += 1
    return offsets, kept, probed, alone


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
    """Return the rows that each worker must hold, ascending: offsets i64[workers + 1], rows i64.

    Row r overlaps leaves[leaf_offsets[r]:leaf_offsets[r + 1]] and is posted under
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
def owners_to_work(
    pair_worker: np.ndarray,
    any_worker: np.ndarray,
    of_pair: np.ndarray,
    alone: np.ndarray,
    workers: int,
) -> np.ndarray:
    """Sum the work of the pairs and objects that each worker probes: f64[workers]."""
    work = np.zeros(workers, np.float64)
    for at in range(pair_worker.size):
        if pair_worker[at] != NO_WORKER:
            work[pair_worker[at]] += of_pair[at]
    for o in range(any_worker.size):
        if any_worker[o] != NO_WORKER:
            work[any_worker[o]] += alone[o]
    return work
