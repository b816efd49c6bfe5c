"""Raw bytes: load eight at a time, find marked bytes in a word, compare and copy slices."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from placewire.kernels.jit import subkernel

Bytes = npt.NDArray[np.uint8]

U8, U16, U24, U32, U40, U48, U56 = (np.uint64(8 * n) for n in range(1, 8))
N1, N2, N3, N4, N5, N6, N7, N8 = (np.uint64(n) for n in range(1, 9))

EVERY_ONE = np.uint64(0x0101010101010101)
EVERY_TOP_BIT = np.uint64(0x8080808080808080)
BYTE_NUMBERS = np.uint64(0x0001020304050607)


@subkernel
def byte_at(raw: Bytes, at: int) -> np.uint8:
    """Return raw[at] for `at` >= 0; the compiler then emits no code for negative indexes."""
    return raw[np.uint64(at)]


@subkernel
def word_at(raw: Bytes, at: int) -> np.uint64:
    """Return the eight bytes from `at`, little-endian, all of them inside `raw`.

    Written as shifts of single bytes, which LLVM turns into one unaligned load.
    """
    p = np.uint64(at)
    return np.uint64(
        np.uint64(raw[p])
        | np.uint64(raw[p + N1]) << U8
        | np.uint64(raw[p + N2]) << U16
        | np.uint64(raw[p + N3]) << U24
        | np.uint64(raw[p + N4]) << U32
        | np.uint64(raw[p + N5]) << U40
        | np.uint64(raw[p + N6]) << U48
        | np.uint64(raw[p + N7]) << U56
    )


@subkernel
def padded_word_at(raw: Bytes, at: np.uint64) -> np.uint64:
    """Return the eight bytes from `at`, little-endian; bytes past the end of `raw` are zero."""
    if at + N8 <= np.uint64(raw.size):
        return word_at(raw, at)
    word = np.uint64(0)
    shift = np.uint64(0)
    while at < np.uint64(raw.size):
        word |= np.uint64(raw[at]) << shift
        shift += N8
        at += N1
    return word


@subkernel
def zero_bytes(word: np.uint64) -> np.uint64:
    """Mark the zero bytes of a word; only the lowest mark is reliable."""
    return (word - EVERY_ONE) & ~word & EVERY_TOP_BIT


@subkernel
def first_mark(mask: np.uint64) -> int:
    """Return the number, from 0, of the lowest marked byte of a mask that is not empty."""
    lowest = mask & (~mask + N1)
    return int(np.int64(((lowest >> N7) * BYTE_NUMBERS) >> U56))


@subkernel
def same_bytes(
    a: np.ndarray, a_start: int, a_end: int, b: np.ndarray, b_start: int, b_end: int
) -> bool:
    """Whether two slices are equal."""
    if a_end - a_start != b_end - b_start:
        return False
    for k in range(a_end - a_start):
        if a[a_start + k] != b[b_start + k]:
            return False
    return True


@subkernel
def compare_slices(
    a: np.ndarray, a_start: int, a_end: int, b: np.ndarray, b_start: int, b_end: int
) -> int:
    """A number less than, equal to or greater than 0 as slice `a` sorts against slice `b`."""
    size = min(a_end - a_start, b_end - b_start)
    for k in range(size):
        if a[a_start + k] != b[b_start + k]:
            return np.int64(a[a_start + k]) - np.int64(b[b_start + k])
    return (a_end - a_start) - (b_end - b_start)


@subkernel
def append_bytes(to: Bytes, end: int, raw: Bytes, start: int, count: int) -> int:
    """Copy raw[start:start + count] to `to` from `end` on; return the new end."""
    first = np.uint64(start)
    for k in range(count):
        to[end + k] = raw[first + np.uint64(k)]
    return end + count
