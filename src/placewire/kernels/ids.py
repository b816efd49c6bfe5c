"""Link changes that share an id, find the row of an id, and set bits of rows in bitmaps."""

from __future__ import annotations

import numpy as np

from placewire.kernels.bytes import same_bytes
from placewire.kernels.jit import kernel, subkernel


@kernel
def changes_to_chains(
    hashes: np.ndarray, id_offsets: np.ndarray, id_bytes: np.ndarray
) -> np.ndarray:
    """Return for each change of a batch the previous change of the same id, or -1: i64[n]."""
    slots = 16
    while slots < 2 * hashes.size:
        slots *= 2
    latest = np.full(slots, -1, np.int64)
    previous = np.empty(hashes.size, np.int64)
    for i in range(hashes.size):
        slot = np.int64(hashes[i] & np.uint64(slots - 1))
        while latest[slot] >= 0:
            other = latest[slot]
            if hashes[other] == hashes[i] and same_bytes(
                id_bytes,
                id_offsets[other],
                id_offsets[other + 1],
                id_bytes,
                id_offsets[i],
                id_offsets[i + 1],
            ):
                break
            slot = (slot + 1) & (slots - 1)
        previous[i] = latest[slot]
        latest[slot] = i
    return previous


@subkernel
def first_hash_not_below(hashes: np.ndarray, key: np.uint64) -> int:
    """Return the first position whose hash is >= `key`, searching from its expected position."""
    n = hashes.size
    low = np.int64(np.float64(key) / 18446744073709551616.0 * n)
    low = min(max(low, 0), n - 1)
    step = 1
    if hashes[low] >= key:
        high = low
        while low > 0 and hashes[low] >= key:
            high = low
            low = max(0, low - step)
            step *= 2
        if hashes[low] >= key:
            return low
    else:
        high = low
        while high < n and hashes[high] < key:
            low = high
            high = min(n, high + step)
            step *= 2
    while low + 1 < high:
        middle = (low + high) >> 1
        if hashes[middle] < key:
            low = middle
        else:
            high = middle
    return high


@kernel
def ids_to_rows(
    hashes: np.ndarray,
    id_offsets: np.ndarray,
    id_bytes: np.ndarray,
    wanted: np.ndarray,
    directory_hash: np.ndarray,
    directory_row: np.ndarray,
    row_id_offsets: np.ndarray,
    row_id_bytes: np.ndarray,
    dead: np.ndarray,
    found: np.ndarray,
) -> None:
    """Write into `found` i64[n] the live row of one segment that each wanted id names, if there is
    one, and clear its entry in `wanted` bool[n]."""
    if directory_hash.size == 0:
        return
    for i in range(hashes.size):
        if not wanted[i]:
            continue
        at = first_hash_not_below(directory_hash, hashes[i])
        while at < directory_hash.size and directory_hash[at] == hashes[i]:
            row = np.int64(directory_row[at])
            ended = dead.size and (dead[row >> 6] >> np.uint64(row & 63)) & np.uint64(1)
            if not ended and same_bytes(
                id_bytes,
                id_offsets[i],
                id_offsets[i + 1],
                row_id_bytes,
                row_id_offsets[row],
                row_id_offsets[row + 1],
            ):
                found[i] = row
                wanted[i] = False
                break
            at += 1


@kernel
def mark_bits(bits: np.ndarray, rows: np.ndarray) -> None:
    """Set the bits of `rows` in a bitmap u64."""
    for row in rows:
        bits[row >> 6] |= np.uint64(1) << np.uint64(row & 63)


@kernel
def bits_to_mask(bits: np.ndarray, count: int) -> np.ndarray:
    """Unpack a bitmap u64 to bool[count]."""
    mask = np.empty(count, np.bool_)
    for row in range(count):
        mask[row] = (bits[row >> 6] >> np.uint64(row & 63)) & np.uint64(1)
    return mask
