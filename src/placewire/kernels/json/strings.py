"""Strings of JSON read from raw bytes: where a string ends, if every byte of it is as it should be.

UTF-8 is held to the letter: nothing longer than needed, no surrogates, nothing past U+10FFFF.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from placewire.kernels.jit import inlined, kernel

QUOTE = ord('"')
BACKSLASH = ord("\\")

ZERO = np.uint64(0)
EVERY_BLANK = np.uint64(0x2020202020202020)
EVERY_QUOTE = np.uint64(0x2222222222222222)
EVERY_BACKSLASH = np.uint64(0x5C5C5C5C5C5C5C5C)


@inlined
def after_blanks(raw: Bytes, at: int) -> int:
    """The first position from `at` on that holds no JSON white space (bar the line feed)."""
    while byte_at(raw, at) == 0x20 or byte_at(raw, at) == 0x09 or byte_at(raw, at) == 0x0D:
        at += 1
    return at


@inlined
def spells(raw: Bytes, at: int, word: bytes) -> bool:
    """Whether the bytes from `at` on are `word`; a line feed after `at` ends the look."""
    for k in range(len(word)):
        if byte_at(raw, at + k) != word[k]:
            return False
    return True


@inlined
def _continues(byte: np.uint8) -> bool:
    """Whether the byte is one of those after the first of a UTF-8 sequence."""
    return bool(byte & 0xC0 == 0x80)


@kernel
def string_end(raw: Bytes, start: int) -> tuple[int, int]:
    """The closing quote of the plain string whose inside begins at `start`, and its characters.

    The position is -1 for a string with a backslash, a control character or invalid UTF-8. A line
    feed is in `raw` after `start`, so that the reading ends.
    """
    at = start
    characters = 0
    last_word = len(raw) - 8
    while True:
        byte = byte_at(raw, at)
        if byte < 0x80 and at <= last_word:
            word = word_at(raw, at)
            ends = zero_bytes(word ^ EVERY_QUOTE) | zero_bytes(word ^ EVERY_BACKSLASH)
            ends |= ((word - EVERY_BLANK) & ~word | word) & EVERY_TOP_BIT  # control, not ASCII
            plain = 8 if ends == ZERO else first_mark(ends)
            at += plain
            characters += plain
            if ends == ZERO:
                continue
            byte = byte_at(raw, at)
        if byte < 0x80:
            if byte == QUOTE:
                return at, characters
            if byte == BACKSLASH or byte < 0x20:
                return -1, 0
            at += 1
        elif byte < 0xE0:
            if byte < 0xC2 or not _continues(byte_at(raw, at + 1)):
                return -1, 0
            at += 2
        elif byte < 0xF0:
            second = byte_at(raw, at + 1)
            if not _continues(second) or not _continues(byte_at(raw, at + 2)):
                return -1, 0
            # Longer than needed, or a surrogate.
            if (byte == 0xE0 and second < 0xA0) or (byte == 0xED and second >= 0xA0):
                return -1, 0
            at += 3
        else:
            second = byte_at(raw, at + 1)
            if not _continues(second) or not _continues(byte_at(raw, at + 2)):
                return -1, 0
            # Longer than needed, or past U+10FFFF.
            if (byte == 0xF0 and second < 0x90) or (byte == 0xF4 and second >= 0x90):
                return -1, 0
            if byte > 0xF4 or not _continues(byte_at(raw, at + 3)):
                return -1, 0
            at += 4
        characters += 1


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
