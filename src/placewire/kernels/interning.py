"""Hash tables of 64-bit hashes to dense numbers, as plain arrays that can be mapped from disk."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import inlined, kernel

EMPTY = np.uint32(0xFFFFFFFF)


@inlined
def slot_of_hash(keys: np.ndarray, values: np.ndarray, key: np.uint64) -> int:
    """The slot that holds `key`, or the empty slot where it would go."""
    mask = np.uint64(keys.size - 1)
    # The hash is keyed and well mixed already; its high bits choose the slot.
    slot = (key >> np.uint64(17)) & mask
    while values[slot] != EMPTY and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)


@kernel
def hashes_to_numbers(hashes: np.ndarray) -> tuple:  # type: ignore[type-arg]
    """Number the distinct hashes in order of first appearance.

    Returns the table (keys u64[s], values u32[s], at most half full), numbers u32[n] and the
    distinct hashes u64[d]. The table grows as needed, so that few distinct hashes stay in cache.
    """
    keys = np.zeros(1024, np.uint64)
    values = np.full(1024, EMPTY, np.uint32)
    numbers = np.empty(hashes.size, np.uint32)
    distinct = np.empty(512, np.uint64)
    known = 0
    for i in range(hashes.size):
        slot = slot_of_hash(keys, values, hashes[i])
        if values[slot] == EMPTY:
            if known == distinct.size:
                wider = np.empty(4 * known, np.uint64)
                wider[:known] = distinct
                distinct = wider
                keys = np.zeros(8 * known, np.uint64)
                values = np.full(8 * known, EMPTY, np.uint32)
                for k in range(known):
                    slot = slot_of_hash(keys, values, distinct[k])
                    keys[slot] = distinct[k]
                    values[slot] = k
                slot = slot_of_hash(keys, values, hashes[i])
            keys[slot] = hashes[i]
            values[slot] = known
            distinct[known] = hashes[i]
            known += 1
        numbers[i] = values[slot]
    return keys, values, numbers, distinct[:known].copy()


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
