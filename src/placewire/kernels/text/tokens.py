"""Texts to sets of term hashes in one pass over their UTF-8 bytes.

Runs of ASCII are classified eight bytes at a time; a token of up to seven letters is one load, a
few operations on the word and one hash. Everything else goes code point by code point through a
table that Python fills when the kernel meets a code point for the first time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import inlined, kernel
from placewire.kernels.text.siphash import (
    EIGHT,
    ONE,
    SEVEN,
    THREE,
    TWO,
    ZERO,
    bytes_hash,
    key_state,
    state_after_word,
    state_hash,
    word_at,
)

# Why the kernel came back.
DONE, FULL, UNKNOWN, UNSAFE_ROW = 0, 1, 2, 3

# What an entry says: bits 0-1 the action, 2-3 the manner, 4-12 the context, 13-30 the pool offset.
SEPARATOR, WORD, MAPPED = 1, 2, 3
STARTER, MARK, JOINER, UNSAFE = 0, 1, 2, 3
MANNER_SHIFT, CONTEXT_SHIFT, POOL_SHIFT = 2, 4, 13
CONTEXTS, MARKS, POOL_BYTES = 1 << 9, 1 << 9, 1 << 18

# A pool record is a list of word runs (a length and its bytes) and breaks between words.
POOL_BREAK, POOL_END = 0, 255

# What one code point may turn into, as multiples of its UTF-8 length.
GROWTH_BYTES, GROWTH_TERMS = 16, 2

TOPS = np.uint64(0x8080808080808080)
LOWS = np.uint64(0x0101010101010101)
CASE_BITS = LOWS * np.uint64(0x20)
UNDERSCORES = LOWS * np.uint64(ord("_"))
SEVENS = LOWS * np.uint64(0x7F)
# Added to a byte below 128, `FROM` sets the top bit from a character on, `PAST` after it.
FROM_A, PAST_Z = LOWS * np.uint64(0x80 - ord("a")), LOWS * np.uint64(0x7F - ord("z"))
FROM_0, PAST_9 = LOWS * np.uint64(0x80 - ord("0")), LOWS * np.uint64(0x7F - ord("9"))
BYTE_SHIFT = np.uint64(56)
GROWTH = np.uint64(GROWTH_TERMS)
SHORT = 40


class CodePoints(NamedTuple):
    """What is known about code points; filled in place, never reallocated.

    `entries` has one int32 a code point, 0 when not yet known. `pool` holds the mapped texts.
    `conflicts[left, mark]` is set when a mark or joiner must not follow a starter of context `left`
    without being composed with it or moved before a mark that it has absorbed.
    """

    entries: NDArray[np.int32]
    pool: NDArray[np.uint8]
    conflicts: NDArray[np.uint8]


@inlined
def ascii_classes(word: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The word in lower case, and the top bit of each byte that is an ASCII word character."""
    low = word & SEVENS
    cased = low | CASE_BITS
    letters = (cased + FROM_A) & ~(cased + PAST_Z) & TOPS
    digits = (low + FROM_0) & ~(low + PAST_9)
    underscores = ~((low ^ UNDERSCORES) + SEVENS)
    return low | (letters >> TWO), (letters | digits | underscores) & ~word & TOPS


@inlined
def bytes_below(tops: np.uint64) -> np.uint64:
    """A mask of the whole bytes below the first byte marked in `tops` (all eight if none is)."""
    first = tops >> SEVEN
    return (first & (~first + ONE)) - ONE


@inlined
def mask_length(mask: np.uint64) -> np.uint64:
    """The number of bytes in a mask of whole bytes."""
    return ((mask & LOWS) * LOWS) >> BYTE_SHIFT


@inlined
def hashes_made_distinct(hashes: NDArray[np.uint64], top: np.uint64, end: np.uint64) -> np.uint64:
    """Sort `hashes[top:end]` in place, drop repeats, and return the new end."""
    if end - top <= ONE:
        return end
    if end - top <= np.uint64(SHORT):
        # Hashes are random, so a branch would be mispredicted: pass the larger of two on.
        for last in range(top + ONE, end):
            carried = hashes[last]
            for at in range(top, last):
                here = hashes[at]
                hashes[at] = min(here, carried)
                carried = max(here, carried)
            hashes[last] = carried
    else:
        hashes[top:end].sort()
    kept = top
    for at in range(top + ONE, end):
        kept += np.uint64(hashes[at] != hashes[kept])
        hashes[kept] = hashes[at]
    return kept + ONE


@inlined
def mixed_text_terms(
    raw: NDArray[np.uint8],
    begin: np.uint64,
    at: np.uint64,
    end: np.uint64,
    points: CodePoints,
    k0: np.uint64,
    k1: np.uint64,
    scripts: Scripts,
    scratch: NDArray[np.uint8],
    hashes: NDArray[np.uint64],
    count: np.uint64,
) -> tuple[np.uint64, np.uint64, int, int]:
    """Take the text on from `at` until an ASCII byte stands outside any token.

    `begin` is the start of the text, `at` the start of a token or of a code point. Returns where it
    stopped, the new count, the reason and the code point that is to blame.
    """
    size = 0
    left = 0
    if at > begin and raw[at - ONE] < 0x80:
        left = (int(points.entries[raw[at - ONE]]) >> CONTEXT_SHIFT) & (CONTEXTS - 1)
    while at < end:
        byte = raw[at]
        if byte < 0x80:
            entry = int(points.entries[byte])
            left = (entry >> CONTEXT_SHIFT) & (CONTEXTS - 1)
            if entry & 3 == SEPARATOR:
                break
            if 0x41 <= byte <= 0x5A:
                byte |= np.uint8(0x20)
            scratch[size] = byte
            size += 1
            at += ONE
            continue
        if byte < 0xE0:
            width = 2
            code = int(byte & 0x1F)
        elif byte < 0xF0:
            width = 3
            code = int(byte & 0x0F)
        else:
            width = 4
            code = int(byte & 0x07)
        for step in range(1, width):
            code = (code << 6) | int(raw[at + np.uint64(step)] & 0x3F)
        entry = int(points.entries[code])
        if entry == 0:
            return at, count, UNKNOWN, code
        manner = (entry >> MANNER_SHIFT) & 3
        context = (entry >> CONTEXT_SHIFT) & (CONTEXTS - 1)
        if manner == STARTER:
            left = context
        elif manner == UNSAFE or points.conflicts[left, context]:
            return at, count, UNSAFE_ROW, code
        elif manner == JOINER:
            left = 0
        action = entry & 3
        if action == WORD:
            for step in range(width):
                scratch[size + step] = raw[at + np.uint64(step)]
            size += width
        elif action == SEPARATOR:
            if size:
                count = token_hashed(scratch, size, k0, k1, scripts, hashes, count)
                size = 0
        else:
            place = entry >> POOL_SHIFT
            while points.pool[place] != POOL_END:
                run = int(points.pool[place])
                place += 1
                if run == POOL_BREAK and size:
                    count = token_hashed(scratch, size, k0, k1, scripts, hashes, count)
                    size = 0
                for step in range(run):
                    scratch[size + step] = points.pool[place + step]
                size += run
                place += run
        at += np.uint64(width)
        if size == 0 and at < end and raw[at] < 0x80:
            break
    if size:
        count = token_hashed(scratch, size, k0, k1, scripts, hashes, count)
    return at, count, DONE, 0


@kernel
def terms_of_texts(
    raw: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    first_row: int,
    points: CodePoints,
    k0: np.uint64,
    k1: np.uint64,
    scripts: Scripts,
    scratch: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    hashes: NDArray[np.uint64],
) -> tuple[int, int, int]:
    """Fill `offsets` and `hashes` (see `TermSets`) from `first_row`, whose offset is known, on.

    Stops at the first row that it cannot do: `hashes` may be too small for it (FULL), a code point
    is not yet known (UNKNOWN) or needs its neighbours (UNSAFE_ROW). Returns the row, the reason and
    the code point. `scratch` holds GROWTH_BYTES times the longest text. Tokens of `scripts` are cut
    as `kernels/text/tokens.py` says; none is pure ASCII.
    """
    v0, v1, v2, v3 = key_state(k0, k1)
    count = np.uint64(offsets[first_row])
    for row in range(first_row, starts.size):
        begin = np.uint64(starts[row])
        end = np.uint64(ends[row])
        if count + GROWTH * (end - begin) > np.uint64(hashes.size):
            return row, FULL, 0
        top = count
        at = begin
        while at < end:
            word = word_at(raw, at)
            lower, inside = ascii_classes(word)
            other = inside ^ TOPS
            below = bytes_below(other)
            if below == ZERO:
                if word & np.uint64(0x80):
                    at, count, reason, code = mixed_text_terms(
                        raw, begin, at, end, points, k0, k1, scripts, scratch, hashes, count
                    )
                    if reason != DONE:
                        return row, reason, code
                else:
                    at += mask_length(bytes_below((inside | word) & TOPS))
                continue
            token = at
            s0, s1, s2, s3 = v0, v1, v2, v3
            while other == ZERO and at + EIGHT <= end:
                s0, s1, s2, s3 = state_after_word(s0, s1, s2, s3, lower)
                at += EIGHT
                word = word_at(raw, at)
                lower, inside = ascii_classes(word)
                other = inside ^ TOPS
            below = bytes_below(other)
            length = mask_length(below)
            if at + length >= end:
                length = end - at
                below = (ONE << (length << THREE)) - ONE
            elif word & (below + ONE) << SEVEN:
                at, count, reason, code = mixed_text_terms(
                    raw, begin, token, end, points, k0, k1, scripts, scratch, hashes, count
                )
                if reason != DONE:
                    return row, reason, code
                continue
            at += length
            hashes[count] = state_hash(s0, s1, s2, s3, lower & below, at - token)
            count += ONE
            at += ONE
        count = hashes_made_distinct(hashes, top, count)
        offsets[row + 1] = np.int64(count)
    return starts.size, DONE, 0


# First and last code points of scripts i32[n, 2], ascending; None cuts nothing. The compiler makes
# a kernel of its own for None, which is as fast as if there were no scripts.
Scripts = NDArray[np.int32] | None


@inlined
def code_at(raw: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """The code point whose UTF-8 begins at `at`, and its width."""
    byte = raw[at]
    if byte < 0x80:
        return int(byte), 1
    if byte < 0xE0:
        width = 2
        code = int(byte & 0x1F)
    elif byte < 0xF0:
        width = 3
        code = int(byte & 0x0F)
    else:
        width = 4
        code = int(byte & 0x07)
    for step in range(1, width):
        code = (code << 6) | int(raw[at + step] & 0x3F)
    return code, width


@inlined
def is_of_scripts(code: int, scripts: NDArray[np.int32]) -> bool:
    """Whether a code point is of the scripts."""
    for k in range(scripts.shape[0]):
        if code <= scripts[k, 1]:
            return bool(code >= scripts[k, 0])
    return False


@inlined
def piece_at(
    raw: NDArray[np.uint8], at: int, end: int, paired: bool, scripts: NDArray[np.int32]
) -> tuple[int, int, bool]:
    """The piece of the token raw[..:end] that begins at `at`: its end, and where to go on.

    A run of the scripts is cut into pairs, one character alone is a piece, and so is all between
    two runs. `paired` tells, and is told, that the character at `at` is the second of a pair; as
    the last of a run it begins no piece, and the end is `at`.
    """
    code, width = code_at(raw, at)
    if not is_of_scripts(code, scripts):
        stop = at + width
        while stop < end:
            code, width = code_at(raw, stop)
            if is_of_scripts(code, scripts):
                break
            stop += width
        return stop, stop, False
    after = at + width
    if after < end:
        code, width = code_at(raw, after)
        if is_of_scripts(code, scripts):
            return after + width, after, True
    return at if paired else after, after, False


@inlined
def token_hashed(
    token: NDArray[np.uint8],
    size: int,
    k0: np.uint64,
    k1: np.uint64,
    scripts: Scripts,
    hashes: NDArray[np.uint64],
    count: np.uint64,
) -> np.uint64:
    """Put the hashes of the terms of token[:size] after the first `count`; gives their number."""
    if scripts is None:
        hashes[count] = bytes_hash(token, 0, size, k0, k1)
        return count + ONE
    at = 0
    paired = False
    while at < size:
        stop, onward, paired = piece_at(token, at, size, paired, scripts)
        if stop > at:
            hashes[count] = bytes_hash(token, at, stop, k0, k1)
            count += ONE
        at = onward
    return count
