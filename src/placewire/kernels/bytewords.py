"""Eight bytes at a time: the bit tricks by which the byte readers look at a word, not at a byte.

A word is eight bytes in a row, the first one lowest. A mask holds a mark a byte, in its top bit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from placewire.kernels.jit import inlined

Bytes = npt.NDArray[np.uint8]

U8, U16, U24, U32, U40, U48, U56 = (np.uint64(8 * n) for n in range(1, 8))
N1, N2, N3, N4, N5, N6, N7 = (np.uint64(n) for n in range(1, 8))

EVERY_ONE = np.uint64(0x0101010101010101)
EVERY_TOP_BIT = np.uint64(0x8080808080808080)
BYTE_NUMBERS = np.uint64(0x0001020304050607)


@inlined
def byte_at(raw: Bytes, at: int) -> np.uint8:
    """raw[at] for `at` >= 0, which spares the compiler the case of a negative index."""
    return raw[np.uint64(at)]


@inlined
def word_at(raw: Bytes, at: int) -> np.uint64:
    """The eight bytes from `at` on, all of them inside `raw`; the compiler makes it one load."""
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


@inlined
def zero_bytes(word: np.uint64) -> np.uint64:
    """A mask whose lowest mark is the word's first zero byte (marks above it may be false)."""
    return (word - EVERY_ONE) & ~word & EVERY_TOP_BIT


@inlined
def first_mark(mask: np.uint64) -> int:
    """The number, from 0, of the lowest marked byte of a mask that has one."""
    lowest = mask & (~mask + N1)
    return int(np.int64(((lowest >> N7) * BYTE_NUMBERS) >> U56))
