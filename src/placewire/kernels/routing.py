"""Routing: the one worker that owns each (place, term) of an object, and what is live there.

Objects come in code order, so their ranges are found by walking, not by searching. What is live is
a bitmap of hashed (scope, term) keys: a clear bit is a proof that no subscription is posted there,
a set bit may be by chance, which costs a little work and never a result.
"""

from __future__ import annotations

import numpy as np

from placewire.kernels.cells import spread_bits
from placewire.kernels.interning import EMPTY, entry_of_hash
from placewire.kernels.jit import inlined, kernel
from placewire.kernels.postings import ANY_TERM

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX = np.uint64(0xD6E8FEB86659FD93)
ONE = np.uint64(1)
WORD = np.uint64(6)
IN_WORD = np.uint64(63)
HALF = np.uint64(32)

# What the bitmap's scopes are.
ALL_LIVE, CELLS, LEAVES, WORKERS = 0, 1, 2, 3
WIDE = -1  # the scope of a region that spans too many others
NOBODY = -1


@inlined
def bit_of_key(scope: int, term: np.uint64, shift: np.uint64) -> np.uint64:
    """The number of the bit of a term in a scope; `shift` leaves as many bits as the map has."""
    return ((term ^ (np.uint64(scope + 1) * GOLDEN)) * MIX) >> shift


@inlined
def bit_is_set(bits: np.ndarray, bit: np.uint64) -> bool:
    return bool((bits[bit >> WORD] >> (bit & IN_WORD)) & ONE)


@inlined
def key_of_leaf_term(leaf: int, term: np.uint64) -> np.uint64:
    """The key under which a leaf's listed term is looked up."""
    return term ^ (np.uint64(leaf + 1) * GOLDEN)


@inlined
def owner_of_term(
    leaf: int,
    term: np.uint64,
    part_offsets: np.ndarray,
    part_worker: np.ndarray,
    term_table: np.ndarray,
) -> int:
    """The worker of a term in a leaf; one that is not listed goes by its hash."""
    first = part_offsets[leaf]
    parts = part_offsets[leaf + 1] - first
    part = np.int64(0)
    if parts > 1:
        entry = entry_of_hash(term_table, key_of_leaf_term(leaf, term))
        number = term_table[entry + ONE]
        by_hash = (term >> HALF) % np.uint64(parts)
        part = np.int64(number if number != EMPTY else by_hash)
    return part_worker[first + part]


@kernel
def leaf_terms_to_table(
    term_offsets: np.ndarray, terms: np.ndarray, term_part: np.ndarray
) -> np.ndarray:
    """The table u64[2 s] of (leaf and term, part) pairs of all listed terms, at most half full."""
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


@kernel
def posts_into_bits(
    post_row: np.ndarray,
    post_term: np.ndarray,
    scope_offsets: np.ndarray,
    scopes: np.ndarray,
    bits: np.ndarray,
    shift: np.uint64,
    wide_bits: np.ndarray,
    wide_shift: np.uint64,
    needless: np.ndarray,
) -> int:
    """Set the bits of every post in every scope of its row; gives how many keys were set.

    The scopes of row r are scopes[scope_offsets[r]:scope_offsets[r + 1]], WIDE for everywhere.
    `needless` u8[scopes + 1] marks the scopes where a post needs no term, the last one everywhere.
    """
    keys = 0
    for p in range(post_row.size):
        row = post_row[p]
        term = post_term[p]
        for at in range(scope_offsets[row], scope_offsets[row + 1]):
            scope = np.int64(scopes[at])
            if term == ANY_TERM:
                needless[scope] = 1  # WIDE is the last
            elif scope == WIDE:
                bit = bit_of_key(WIDE, term, wide_shift)
                wide_bits[bit >> WORD] |= ONE << (bit & IN_WORD)
            else:
                bit = bit_of_key(scope, term, shift)
                bits[bit >> WORD] |= ONE << (bit & IN_WORD)
            keys += 1
    return keys


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
    bits: np.ndarray,
    shift: np.uint64,
    wide_bits: np.ndarray,
    wide_shift: np.uint64,
    needless: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """The worker to probe each (object, term) pair, i32[pairs], and each object alone, i32[n].

    NOBODY where nothing live can match. Codes ascend. `range_start` u32 ascends from 0; `manner`
    says what scopes are. The object alone is probed for subscriptions that need no term, by the
    worker of its leaf's first part.
    """
    objects = codes.size
    pair_worker = np.empty(terms.size, np.int32)
    any_worker = np.empty(objects, np.int32)
    r = 0
    last_range = range_start.size - 1
    wide_any = needless[-1] != 0
    has_wide = wide_bits.size > 1
    for o in range(objects):
        code = codes[o]
        if r < last_range and range_start[r + 1] <= code:
            step = 1
            while r + step <= last_range and range_start[r + step] <= code:
                r += step
                step *= 2
            high = min(r + step, last_range + 1)
            low = r
            while high - low > 1:
                middle = (low + high) >> 1
                if range_start[middle] <= code:
                    low = middle
                else:
                    high = middle
            r = low
        leaf = np.int64(range_leaf[r])
        first = part_offsets[leaf]
        alone = np.int64(part_worker[first])
        scope = leaf
        if manner == CELLS:
            scope = np.int64(code >> np.uint32(cell_shift))
        elif manner == WORKERS:
            scope = alone
        single = part_offsets[leaf + 1] - first == 1
        for at in range(term_offsets[o], term_offsets[o + 1]):
            term = terms[at]
            worker = alone
            if manner == WORKERS and not single:
                worker = np.int64(owner_of_term(leaf, term, part_offsets, part_worker, term_table))
                scope = worker
            if manner != ALL_LIVE:
                live = bit_is_set(bits, bit_of_key(scope, term, shift))
                if not live and has_wide:
                    live = bit_is_set(wide_bits, bit_of_key(WIDE, term, wide_shift))
                if not live:
                    pair_worker[at] = NOBODY
                    continue
            if manner != WORKERS and not single:
                worker = np.int64(owner_of_term(leaf, term, part_offsets, part_worker, term_table))
            pair_worker[at] = worker
        if manner == WORKERS:
            scope = alone
        asked = manner == ALL_LIVE or wide_any or needless[scope] != 0
        any_worker[o] = alone if asked else NOBODY
    return pair_worker, any_worker


@kernel
def owners_to_workers(
    term_offsets: np.ndarray, pair_worker: np.ndarray, any_worker: np.ndarray, workers: int
) -> tuple:  # type: ignore[type-arg]
    """For each worker the objects that it must see, ascending: offsets i64[workers + 1], i64."""
    seen = np.full(workers, -1, np.int64)
    offsets = np.zeros(workers + 1, np.int64)
    for o in range(any_worker.size):
        worker = any_worker[o]
        if worker != NOBODY:
            seen[worker] = o
            offsets[worker + 1] += 1
        for at in range(term_offsets[o], term_offsets[o + 1]):
            worker = pair_worker[at]
            if worker != NOBODY and seen[worker] != o:
                seen[worker] = o
                offsets[worker + 1] += 1
    for worker in range(workers):
        offsets[worker + 1] += offsets[worker]
    cursor = offsets.copy()
    objects = np.empty(offsets[workers], np.int64)
    seen[:] = -1
    for o in range(any_worker.size):
        worker = any_worker[o]
        if worker != NOBODY:
            seen[worker] = o
            objects[cursor[worker]] = o
            cursor[worker] += 1
        for at in range(term_offsets[o], term_offsets[o + 1]):
            worker = pair_worker[at]
            if worker != NOBODY and seen[worker] != o:
                seen[worker] = o
                objects[cursor[worker]] = o
                cursor[worker] += 1
    return offsets, objects


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

    Gives all terms of each (offsets i64[k + 1], terms u64), which of them the worker probes (u8)
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
def cells_of_ranges(ranges: np.ndarray, shift: int, most: int) -> tuple:  # type: ignore[type-arg]
    """The cells that ranges i32[m, 4] touch, coarser by `shift` bits, as Z-codes.

    Offsets i64[m + 1] and codes i32; a range that touches more than `most` has the one WIDE.
    """
    side = np.int64(1) << (16 - shift)
    offsets = np.zeros(ranges.shape[0] + 1, np.int64)
    for i in range(ranges.shape[0]):
        rows = (ranges[i, 3] >> shift) - (ranges[i, 1] >> shift) + 1
        columns = (ranges[i, 2] >> shift) - (ranges[i, 0] >> shift) + 1
        if ranges[i, 0] > ranges[i, 2]:
            columns += side
        columns = min(columns, side)
        offsets[i + 1] = offsets[i] + (rows * columns if rows * columns <= most else 1)
    codes = np.empty(offsets[-1], np.int32)
    for i in range(ranges.shape[0]):
        to = offsets[i]
        first_row, last_row = ranges[i, 1] >> shift, ranges[i, 3] >> shift
        first = ranges[i, 0] >> shift
        rows = last_row - first_row + 1
        columns = (ranges[i, 2] >> shift) - first + 1
        if ranges[i, 0] > ranges[i, 2]:
            columns += side
        columns = min(columns, side)
        if rows * columns > most:
            codes[to] = WIDE
            continue
        for row in range(first_row, last_row + 1):
            for k in range(columns):
                column = (first + k) % side
                codes[to] = spread_bits(column) | (spread_bits(row) << 1)
                to += 1
    return offsets, codes
