"""Analyse texts: turn UTF-8 into sets of term hashes in one pass.

Runs of ASCII are classified eight bytes at a time; a token of up to seven letters takes one load, a
few operations on the word and one hash. Other code points are looked up one by one in a table that
Python fills when the kernel first meets a code point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.bytes import append_bytes, padded_word_at
from placewire.kernels.jit import array_subkernel, kernel, subkernel
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
)

# Reasons why the kernel returned.
DONE, FULL, UNKNOWN, UNSAFE_ROW = 0, 1, 2, 3

# Bits of an entry: 0-1 the action, 2-3 the manner, 4-12 the context, 13-30 the pool offset.
SEPARATOR, WORD, MAPPED = 1, 2, 3
STARTER, MARK, JOINER, UNSAFE = 0, 1, 2, 3
MANNER_SHIFT, CONTEXT_SHIFT, POOL_SHIFT = 2, 4, 13
CONTEXTS, MARKS, POOL_BYTES = 1 << 9, 1 << 9, 1 << 18

# A pool record is a list of word runs (a length and its bytes) and breaks between words.
POOL_BREAK, POOL_END = 0, 255

# The most that one code point can expand to, as multiples of its UTF-8 length.
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
    """Properties of code points; filled in place, never reallocated.

    `entries` has one int32 per code point, 0 if not yet known. `pool` holds the mapped texts.
    `conflicts[left, mark]` is set if a mark or joiner after a starter of context `left` composes
    with it or moves before a mark that it has absorbed.
    """

    entries: NDArray[np.int32]
    pool: NDArray[np.uint8]
    conflicts: NDArray[np.uint8]


@subkernel
def ascii_classes(word: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The word in lower case, and the top bit of each byte that is an ASCII word character."""
    low = word & SEVENS
    cased = low | CASE_BITS
    letters = (cased + FROM_A) & ~(cased + PAST_Z) & TOPS
    digits = (low + FROM_0) & ~(low + PAST_9)
    underscores = ~((low ^ UNDERSCORES) + SEVENS)
    return low | (letters >> TWO), (letters | digits | underscores) & ~word & TOPS


@subkernel
def bytes_below(tops: np.uint64) -> np.uint64:
    """Return a mask of the bytes below the first byte marked in `tops` (all eight if none is)."""
    first = tops >> SEVEN
    return (first & (~first + ONE)) - ONE


@subkernel
def mask_length(mask: np.uint64) -> np.uint64:
    """Return the number of bytes in a mask of whole bytes."""
    return ((mask & LOWS) * LOWS) >> BYTE_SHIFT


@array_subkernel
def sort_distinct(hashes: NDArray[np.uint64], top: np.uint64, end: np.uint64) -> np.uint64:
    """Sort `hashes[top:end]` in place, remove duplicates, and return the new end."""
    if end - top <= ONE:
        return end
    if end - top <= np.uint64(SHORT):
        # Hashes are random, so a branch would be mispredicted; carry the larger of two on instead.
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


# First and last code points of scripts i32[n, 2], ascending; None disables cutting. The compiler
# specializes kernels for None, so unused scripts cost nothing.
Scripts = NDArray[np.int32] | None


@subkernel
def code_at(raw: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """Return the code point whose UTF-8 begins at `at`, and its width."""
    place = np.uint64(at)
    byte = raw[place]
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
        code = (code << 6) | int(raw[place + np.uint64(step)] & 0x3F)
    return code, width


@subkernel
def context_of_entry(entry: int) -> int:
    """Return the context that an entry sets or is tested against."""
    return (entry >> CONTEXT_SHIFT) & (CONTEXTS - 1)


@subkernel
def context_after_entry(points: CodePoints, left: int, entry: int) -> int:
    """Return the context after a code point that follows the context `left`.

    It is -1 if the code point must be normalised together with its neighbours.
    """
    manner = (entry >> MANNER_SHIFT) & 3
    context = context_of_entry(entry)
    if manner == STARTER:
        left = context
    elif manner == UNSAFE or points.conflicts[left, context]:
        left = -1
    elif manner == JOINER:
        left = 0
    return left


@subkernel
def append_mapped(
    to: NDArray[np.uint8], end: int, points: CodePoints, place: int, count: int
) -> int:
    """Copy a run of the pool to `to` from `end` on; return the new end.

    `append_bytes` would count references to the pool for every run.
    """
    for k in range(count):
        to[end + k] = points.pool[place + k]
    return end + count


@subkernel
def hash_mixed_text(
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
    """Hash the terms from `at` up to an ASCII byte outside any token.

    `begin` is the start of the text, `at` the start of a token or of a code point. Returns where it
    stopped, the new count, the reason and the code point that caused it.
    """
    size = 0
    left = 0
    if at > begin and raw[at - ONE] < 0x80:
        left = context_of_entry(int(points.entries[raw[at - ONE]]))
    while at < end:
        byte = raw[at]
        if byte < 0x80:
            entry = int(points.entries[byte])
            left = context_of_entry(entry)
            if entry & 3 == SEPARATOR:
                break
            if 0x41 <= byte <= 0x5A:
                byte |= np.uint8(0x20)
            scratch[size] = byte
            size += 1
            at += ONE
            continue
        code, width = code_at(raw, at)
        entry = int(points.entries[code])
        if entry == 0:
            return at, count, UNKNOWN, code
        left = context_after_entry(points, left, entry)
        if left < 0:
            return at, count, UNSAFE_ROW, code
        action = entry & 3
        if action == WORD:
            size = append_bytes(scratch, size, raw, at, width)
        elif action == SEPARATOR:
            if size:
                count = hash_token(scratch, size, k0, k1, scripts, hashes, count)
                size = 0
        else:
            place = entry >> POOL_SHIFT
            while points.pool[place] != POOL_END:
                run = int(points.pool[place])
                place += 1
                if run == POOL_BREAK and size:
                    count = hash_token(scratch, size, k0, k1, scripts, hashes, count)
                    size = 0
                size = append_mapped(scratch, size, points, place, run)
                place += run
        at += np.uint64(width)
        if size == 0 and at < end and raw[at] < 0x80:
            break
    if size:
        count = hash_token(scratch, size, k0, k1, scripts, hashes, count)
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
    by `piece_at`; none is pure ASCII.
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
            word = padded_word_at(raw, at)
            lower, inside = ascii_classes(word)
            other = inside ^ TOPS
            below = bytes_below(other)
            if below == ZERO:
                if word & np.uint64(0x80):
                    at, count, reason, code = hash_mixed_text(
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
                word = padded_word_at(raw, at)
                lower, inside = ascii_classes(word)
                other = inside ^ TOPS
            below = bytes_below(other)
            length = mask_length(below)
            if at + length >= end:
                length = end - at
                below = (ONE << (length << THREE)) - ONE
            elif word & (below + ONE) << SEVEN:
                at, count, reason, code = hash_mixed_text(
                    raw, begin, token, end, points, k0, k1, scripts, scratch, hashes, count
                )
                if reason != DONE:
                    return row, reason, code
                continue
            at += length
            hashes[count] = state_hash(s0, s1, s2, s3, lower & below, at - token)
            count += ONE
            at += ONE
        count = sort_distinct(hashes, top, count)
        offsets[row + 1] = np.int64(count)
    return starts.size, DONE, 0


@subkernel
def is_of_scripts(code: int, scripts: NDArray[np.int32]) -> bool:
    """Return true if a code point is in the scripts."""
    for k in range(scripts.shape[0]):
        if code <= scripts[k, 1]:
            return bool(code >= scripts[k, 0])
    return False


@subkernel
def piece_at(
    raw: NDArray[np.uint8], at: int, end: int, paired: bool, scripts: NDArray[np.int32]
) -> tuple[int, int, bool]:
    """Return the end of the piece at `at` of the token raw[..:end], and the start of the next.

    A run of the scripts is cut into overlapping pairs; a single character is a piece, and so is the
    text between two runs. `paired` says whether the character at `at` is the second of a pair, and
    is returned for the next call. The last character of a run begins no piece: the end is `at`.
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


@subkernel
def hash_token(
    token: NDArray[np.uint8],
    size: int,
    k0: np.uint64,
    k1: np.uint64,
    scripts: Scripts,
    hashes: NDArray[np.uint64],
    count: np.uint64,
) -> np.uint64:
    """Append the hashes of the terms of token[:size] to the first `count`; return the new count."""
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
