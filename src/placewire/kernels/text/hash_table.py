"""Hash tables of 64-bit hashes to dense numbers, as plain arrays that can be mapped from disk."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel, subkernel

EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)


@subkernel
def entry_of_hash(table: np.ndarray, key: np.uint64) -> np.uint64:
    """Return the position of the (key, number) pair of `key`, or of the empty pair to fill."""
    mask = np.uint64(table.size - 1) & ~np.uint64(1)
    # The hash is keyed and well mixed; some of its middle bits choose the pair.
    at = (key >> np.uint64(17)) & mask
    while table[at + np.uint64(1)] != EMPTY and table[at] != key:
        at = (at + np.uint64(2)) & mask
    return at


@kernel
def hashes_to_numbers(hashes: np.ndarray) -> tuple:  # type: ignore[type-arg]
    """Number the distinct hashes in order of first appearance.

    Returns the table u64[2 s] of (key, number) pairs, at most half full, numbers u32[n] and the
    distinct hashes u64[d]. The table grows as needed, so a table of few hashes stays in cache.
    """
    table = np.full(8_192, EMPTY, np.uint64)
    numbers = np.empty(hashes.size, np.uint32)
    distinct = np.empty(table.size // 4, np.uint64)
    known = 0
    for i in range(hashes.size):
        at = entry_of_hash(table, hashes[i])
        if table[at + np.uint64(1)] == EMPTY:
            if known == distinct.size:
                wider = np.empty(4 * known, np.uint64)
                for k in range(known):  # slice assignment compiles slowly
                    wider[k] = distinct[k]
                distinct = wider
                table = np.full(16 * known, EMPTY, np.uint64)
                for k in range(known):
                    at = entry_of_hash(table, distinct[k])
                    table[at] = distinct[k]
                    table[at + np.uint64(1)] = np.uint64(k)
                at = entry_of_hash(table, hashes[i])
            table[at] = hashes[i]
            table[at + np.uint64(1)] = np.uint64(known)
            distinct[known] = hashes[i]
            known += 1
        numbers[i] = np.uint32(table[at + np.uint64(1)])
    return table, numbers, distinct[:known].copy()


@kernel
def numbers_to_groups(numbers: np.ndarray, count: int) -> tuple:  # type: ignore[type-arg]
    """Stable counting sort: offsets i64[count + 1] and the positions of each number, in order."""
    offsets = np.zeros(count + 1, np.int64)
    for n in numbers:
        offsets[n + 1] += 1
    for g in range(count):
        offsets[g + 1] += offsets[g]
    cursor = offsets[:-1].copy()
    positions = np.empty(numbers.size, np.int64)
    for i in range(numbers.size):
        g = numbers[i]
        positions[cursor[g]] = i
        cursor[g] += 1
    return offsets, positions


@kernel
def terms_to_groups(
    numbers: np.ndarray,
    distinct: np.ndarray,
    term_offsets: np.ndarray,
    probed: np.ndarray,
    alone: np.ndarray,
    every: np.uint64,
) -> tuple:  # type: ignore[type-arg]
    """Group (object, term) pairs by term, objects ascending; the last group holds objects alone.

    Takes the number of each pair's term, the distinct terms, the objects' CSR offsets and the
    pseudo-term that every object has. Only pairs marked in `probed` u8 and objects marked in
    `alone` u8 count; an empty array marks all. Returns group_term u64[d + 1], group_offsets i64[d +
    2] and group_object u32[..].
    """
    count = distinct.size
    objects = term_offsets.size - 1
    group_term = np.empty(count + 1, np.uint64)
    group_term[:count] = distinct
    group_term[count] = every
    offsets = np.zeros(count + 2, np.int64)
    for at in range(numbers.size):
        if probed.size == 0 or probed[at]:
            offsets[numbers[at] + 1] += 1
    for o in range(objects):
        if alone.size == 0 or alone[o]:
            offsets[count + 1] += 1
    for g in range(count + 1):
        offsets[g + 1] += offsets[g]
    cursor = offsets[:-1].copy()
    group_object = np.empty(offsets[count + 1], np.uint32)
    for o in range(objects):
        for at in range(term_offsets[o], term_offsets[o + 1]):
            if probed.size == 0 or probed[at]:
                g = numbers[at]
                group_object[cursor[g]] = o
                cursor[g] += 1
        if alone.size == 0 or alone[o]:
            group_object[cursor[count]] = o
            cursor[count] += 1
    return group_term, offsets, group_object
