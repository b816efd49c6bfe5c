"""Find the words of term hashes in the texts, and sort and search words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.bytes import append_bytes, compare_slices
from placewire.kernels.jit import kernel, subkernel
from placewire.kernels.text.hash_table import EMPTY, entry_of_hash
from placewire.kernels.text.siphash import bytes_hash
from placewire.kernels.text.tokens import (
    GROWTH_BYTES,
    POOL_BREAK,
    POOL_END,
    POOL_SHIFT,
    SEPARATOR,
    WORD,
    CodePoints,
    Scripts,
    append_mapped,
    code_at,
    context_after_entry,
    context_of_entry,
    piece_at,
)

FEW = 48  # longest run of equal prefixes for insertion sort; Python sorts longer runs


@kernel
def numbers_to_first_rows(numbers: np.ndarray, offsets: np.ndarray, count: int) -> np.ndarray:
    """Mark the rows u8[n] of a CSR column in which any of `count` numbers first appears."""
    seen = np.zeros(count, np.bool_)
    first = np.zeros(offsets.size - 1, np.uint8)
    for row in range(offsets.size - 1):
        for at in range(offsets[row], offsets[row + 1]):
            if not seen[numbers[at]]:
                seen[numbers[at]] = True
                first[row] = 1
    return first


@subkernel
def record_word(
    pool: np.ndarray,
    first: int,
    end: int,
    table: np.ndarray,
    k0: np.uint64,
    k1: np.uint64,
    word_start: np.ndarray,
    word_size: np.ndarray,
) -> bool:
    """Record pool[first:end] as the word of its hash, if the hash is wanted and has none yet."""
    entry = entry_of_hash(table, bytes_hash(pool, first, end, k0, k1))
    number = table[entry + np.uint64(1)]
    if number == EMPTY or word_size[number] != 0:
        return False
    word_start[number] = first
    word_size[number] = end - first
    return True


@subkernel
def keep_word(
    pool: np.ndarray,
    first: int,
    end: int,
    table: np.ndarray,
    k0: np.uint64,
    k1: np.uint64,
    scripts: Scripts,
    word_start: np.ndarray,
    word_size: np.ndarray,
) -> int:
    """Record the terms of the token pool[first:end] that have no word; return the new pool end."""
    if end == first:
        return first
    if scripts is None:  # `record_word` inlined by hand: the call is 10% slower
        entry = entry_of_hash(table, bytes_hash(pool, first, end, k0, k1))
        number = table[entry + np.uint64(1)]
        if number == EMPTY or word_size[number] != 0:
            return first
        word_start[number] = first
        word_size[number] = end - first
        return end
    kept = False
    at = first
    paired = False
    while at < end:
        stop, onward, paired = piece_at(pool, at, end, paired, scripts)
        if stop > at:
            kept |= record_word(pool, at, stop, table, k0, k1, word_start, word_size)
        at = onward
    return end if kept else first


class TextSlices(NamedTuple):
    """Texts as byte slices; only those of `rows` are read."""

    raw: NDArray[np.uint8]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    row: NDArray[np.int64]


class WordSearch(NamedTuple):
    """The hashes whose words are wanted, numbered in a table, and their hash key."""

    table: NDArray[np.uint64]
    k0: np.uint64
    k1: np.uint64


class FoundWords(NamedTuple):
    """Where in the pool the word of each number is; a size is 0 until the word is found.

    `unsafe` marks skipped texts, whose code points must be normalised with their neighbours.
    """

    start: NDArray[np.int64]
    size: NDArray[np.int32]
    pool: NDArray[np.uint8]
    unsafe: NDArray[np.uint8]


@kernel
def words_of_texts(
    texts: TextSlices,
    first_row: int,
    used: int,
    points: CodePoints,
    search: WordSearch,
    scripts: Scripts,
    found: FoundWords,
) -> tuple:  # type: ignore[type-arg]
    """Find the words of hashes in texts that were analysed before.

    Starts at the text `first_row` of those to read, with `used` bytes of the pool. Returns both for
    the next call, which is needed if the pool was too small.
    """
    raw, starts, ends, rows = texts.raw, texts.start, texts.end, texts.row
    table, k0, k1 = search.table, search.k0, search.k1
    word_start, word_size, pool, unsafe = found.start, found.size, found.pool, found.unsafe
    for i in range(first_row, rows.size):
        row = rows[i]
        at, stop = starts[row], ends[row]
        if used + GROWTH_BYTES * (stop - at) > pool.size:
            return i, used
        first = used
        end = used
        left = 0
        while at < stop:
            byte = raw[at]
            if byte < 0x80:
                entry = int(points.entries[byte])
                left = context_of_entry(entry)
                if entry & 3 == SEPARATOR:
                    first = keep_word(
                        pool, first, end, table, k0, k1, scripts, word_start, word_size
                    )
                    end = first
                else:
                    pool[end] = byte | 0x20 if 0x41 <= byte <= 0x5A else byte
                    end += 1
                at += 1
                continue
            code, width = code_at(raw, at)
            entry = int(points.entries[code])
            left = context_after_entry(points, left, entry)
            if left < 0:
                unsafe[i] = 1
                break
            action = entry & 3
            if action == WORD:
                end = append_bytes(pool, end, raw, at, width)
            elif action == SEPARATOR:
                first = keep_word(pool, first, end, table, k0, k1, scripts, word_start, word_size)
                end = first
            else:
                place = entry >> POOL_SHIFT
                while points.pool[place] != POOL_END:
                    run = int(points.pool[place])
                    place += 1
                    if run == POOL_BREAK:
                        first = keep_word(
                            pool, first, end, table, k0, k1, scripts, word_start, word_size
                        )
                        end = first
                    end = append_mapped(pool, end, points, place, run)
                    place += run
            at += width
        if not unsafe[i]:
            first = keep_word(pool, first, end, table, k0, k1, scripts, word_start, word_size)
        used = first
    return rows.size, used


@kernel
def slices_to_prefixes(offsets: np.ndarray, raw: np.ndarray) -> np.ndarray:
    """The first eight bytes of each slice as a big-endian number u64[n], padded with zeros."""
    prefixes = np.empty(offsets.size - 1, np.uint64)
    for i in range(prefixes.size):
        prefix = np.uint64(0)
        for k in range(8):
            at = offsets[i] + k
            byte = np.uint64(raw[at]) if at < offsets[i + 1] else np.uint64(0)
            prefix = (prefix << np.uint64(8)) | byte
        prefixes[i] = prefix
    return prefixes


@kernel
def sort_equal_prefixes(
    order: np.ndarray, prefixes: np.ndarray, offsets: np.ndarray, raw: np.ndarray
) -> np.ndarray:
    """Sort runs of `order` i64[n] that have equal prefixes by all their bytes, in place.

    Returns begin and end of the runs that are too long for insertion sort: i64[r, 2].
    """
    left = np.empty((order.size // FEW + 1, 2), np.int64)
    count = 0
    begin = 0
    for end in range(1, order.size + 1):
        if end < order.size and prefixes[order[end]] == prefixes[order[begin]]:
            continue
        if end - begin > FEW:
            left[count, 0], left[count, 1] = begin, end
            count += 1
        else:
            for i in range(begin + 1, end):
                moved = order[i]
                k = i
                while k > begin and (
                    compare_slices(
                        raw,
                        offsets[moved],
                        offsets[moved + 1],
                        raw,
                        offsets[order[k - 1]],
                        offsets[order[k - 1] + 1],
                    )
                    < 0
                ):
                    order[k] = order[k - 1]
                    k -= 1
                order[k] = moved
        begin = end
    return left[:count]


@kernel
def slices_to_ranks(order: np.ndarray, offsets: np.ndarray, raw: np.ndarray) -> tuple:  # type: ignore[type-arg]
    """Return the rank u32[n] of each slice, equal slices alike, and the first of each rank."""
    ranks = np.empty(order.size, np.uint32)
    firsts = np.empty(order.size, np.int64)
    count = 0
    for i in range(order.size):
        here = order[i]
        if i > 0:
            before = order[i - 1]
            if (
                compare_slices(
                    raw,
                    offsets[before],
                    offsets[before + 1],
                    raw,
                    offsets[here],
                    offsets[here + 1],
                )
                == 0
            ):
                ranks[here] = count - 1
                continue
        firsts[count] = here
        ranks[here] = count
        count += 1
    return ranks, firsts[:count].copy()


@kernel
def place_of_slice(offsets: np.ndarray, raw: np.ndarray, word: np.ndarray) -> int:
    """Return the position of `word` u8 among ascending slices, or -1."""
    first, last = 0, offsets.size - 1
    while first < last:
        middle = (first + last) >> 1
        order = compare_slices(raw, offsets[middle], offsets[middle + 1], word, 0, word.size)
        if order == 0:
            return middle
        if order < 0:
            first = middle + 1
        else:
            last = middle
    return -1
