"""Read JSON strings from raw bytes: find where a string ends and check that it is valid.

UTF-8 is checked strictly: no overlong sequences, no surrogates, nothing past U+10FFFF.
"""

from __future__ import annotations

import numpy as np

from placewire.kernels.bytes import (
    EVERY_TOP_BIT,
    Bytes,
    byte_at,
    first_mark,
    word_at,
    zero_bytes,
)
from placewire.kernels.jit import kernel, subkernel

QUOTE = ord('"')
BACKSLASH = ord("\\")

ZERO = np.uint64(0)
EVERY_BLANK = np.uint64(0x2020202020202020)
EVERY_QUOTE = np.uint64(0x2222222222222222)
EVERY_BACKSLASH = np.uint64(0x5C5C5C5C5C5C5C5C)


@subkernel
def skip_blanks(raw: Bytes, at: int) -> int:
    """Return the first position from `at` that is a line feed or not JSON white space."""
    while byte_at(raw, at) == 0x20 or byte_at(raw, at) == 0x09 or byte_at(raw, at) == 0x0D:
        at += 1
    return at


@subkernel
def starts_with(raw: Bytes, at: int, word: bytes) -> bool:
    """Whether the bytes from `at` are `word`; a line feed after `at` ends the comparison."""
    for k in range(len(word)):
        if byte_at(raw, at + k) != word[k]:
            return False
    return True


@subkernel
def _continues(byte: np.uint8) -> bool:
    """Return true if the byte is a continuation byte of a UTF-8 sequence."""
    return bool(byte & 0xC0 == 0x80)


@kernel
def string_end(raw: Bytes, start: int) -> tuple[int, int]:
    """Return the position of a string's closing quote, and the string's length in characters.

    The string begins at `start`. The position is -1 if it has a backslash, a control character or
    invalid UTF-8. `raw` has a line feed after `start`, which ends the loop.
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
            # An overlong sequence, or a surrogate.
            if (byte == 0xE0 and second < 0xA0) or (byte == 0xED and second >= 0xA0):
                return -1, 0
            at += 3
        else:
            second = byte_at(raw, at + 1)
            if not _continues(second) or not _continues(byte_at(raw, at + 2)):
                return -1, 0
            # An overlong sequence, or past U+10FFFF.
            if (byte == 0xF0 and second < 0x90) or (byte == 0xF4 and second >= 0x90):
                return -1, 0
            if byte > 0xF4 or not _continues(byte_at(raw, at + 3)):
                return -1, 0
            at += 4
        characters += 1
