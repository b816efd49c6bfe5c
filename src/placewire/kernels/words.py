"""Words: the tokens behind term hashes, found again in their texts, and brought into order."""

from __future__ import annotations

import numpy as np

from placewire.kernels.hashing import bytes_hash
from placewire.kernels.interning import EMPTY, entry_of_hash
from placewire.kernels.jit import inlined, kernel

FEW = 48  # words that begin alike are put in order one by one; more are left to Python


@kernel
def numbers_to_first_rows(numbers: np.ndarray, offsets: np.ndarray, count: int) -> np.ndarray:
    """The rows u8[n] in which some of `count` numbers, of CSR lists of them, appears first."""
    seen = np.zeros(count, np.bool_)
    first = np.zeros(offsets.size - 1, np.uint8)
    for row in range(offsets.size - 1):
        for at in range(offsets[row], offsets[row + 1]):
            if not seen[numbers[at]]:
                seen[numbers[at]] = True
                first[row] = 1
    return first


@inlined
def ascii_word_byte(byte: int) -> int:
    """The byte in lower case if it is a word character of ASCII, otherwise 0."""
    if 0x61 <= byte <= 0x7A or 0x30 <= byte <= 0x39 or byte == 0x5F:
        return byte
    if 0x41 <= byte <= 0x5A:
        return byte | 0x20
    return 0


@kernel
def words_of_texts(
    raw: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    rows: np.ndarray,
    table: np.ndarray,
    k0: np.uint64,
    k1: np.uint64,
    word_start: np.ndarray,
    word_size: np.ndarray,
    pool: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """Find the words of hashes in texts of ASCII; the numbers of hashes are in `table`.

    Writes where in `pool` u8 each number's word is, i64, and its size i32, which is 0 before. Gives
    how much of the pool is used, and which of `rows` are not ASCII, u8: these are left alone.
    `pool` has room for all texts.
    """
    used = 0
    other = np.zeros(rows.size, np.uint8)
    for i in range(rows.size):
        row = rows[i]
        begin, end = starts[row], ends[row]
        for at in range(begin, end):
            if raw[at] >= 0x80:
                other[i] = 1
                break
        if other[i]:
            continue
        first = used
        for at in range(begin, end + 1):
            byte = 0 if at == end else ascii_word_byte(raw[at])
            if byte:
                pool[used] = byte
                used += 1
            elif used > first:
                key = bytes_hash(pool, first, used, k0, k1)
                entry = entry_of_hash(table, key)
                number = table[entry + np.uint64(1)]
                if number != EMPTY and word_size[number] == 0:
                    word_start[number] = first
                    word_size[number] = used - first
                    first = used
                else:
                    used = first
    return used, other


@inlined
def compare_slices(raw: np.ndarray, a: int, a_end: int, b: int, b_end: int) -> int:
    """Less than, equal to or greater than 0 as the first slice is before the second."""
    size = min(a_end - a, b_end - b)
    for k in range(size):
        if raw[a + k] != raw[b + k]:
            return np.int64(raw[a + k]) - np.int64(raw[b + k])
    return (a_end - a) - (b_end - b)


@kernel
def slices_to_prefixes(offsets: np.ndarray, raw: np.ndarray) -> np.ndarray:
    """The first eight bytes of each slice as a big-endian number u64[n], zeros after its end."""
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
def sort_alike(
    order: np.ndarray, prefixes: np.ndarray, offsets: np.ndarray, raw: np.ndarray
) -> np.ndarray:
    """Sort, in place, those neighbours of `order` i64[n] that have one prefix, by all their bytes.

    Gives begin and end of the runs i64[r, 2] that are too long for this.
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
    """The rank u32[n] of each slice in `order`, equal ones alike, and the first of each rank."""
    ranks = np.empty(order.size, np.uint32)
    firsts = np.empty(order.size, np.int64)
    count = 0
    for i in range(order.size):
        here = order[i]
        if i > 0:
            before = order[i - 1]
            if (
                compare_slices(
                    raw, offsets[before], offsets[before + 1], offsets[here], offsets[here + 1]
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
    """Where among ascending slices `word` u8 is, or -1."""
    first, last = 0, offsets.size - 1
    while first < last:
        middle = (first + last) >> 1
        begin, end = offsets[middle], offsets[middle + 1]
        size = min(end - begin, word.size)
        order = 0
        for k in range(size):
            if raw[begin + k] != word[k]:
                order = -1 if raw[begin + k] < word[k] else 1
                break
        if order == 0:
            if end - begin == word.size:
                return middle
            order = -1 if end - begin < word.size else 1
        if order < 0:
            first = middle + 1
        else:
            last = middle
    return -1
