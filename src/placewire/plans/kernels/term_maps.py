"""Maps of (scope, term) keys: the terms posted in each scope, and counts of posts.

A map is a Bloom filter in which the bits of a key share a word. A clear bit proves that no
subscription is posted there. A false positive costs work but never changes a result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import kernel, read_only, subkernel
from placewire.kernels.space.cells import spread_bits
from placewire.kernels.text.hash_table import EMPTY, entry_of_hash
from placewire.kinds.boolean.kernels.postings import ANY_TERM

GOLDEN = np.uint64(0x9E3779B97F4A7C15)

MIX = np.uint64(0xD6E8FEB86659FD93)

ONE = np.uint64(1)

IN_WORD = np.uint64(63)

HALF = np.uint64(32)

WIDE = -1  # the scope of a region that spans too many scopes


class Objects(NamedTuple):
    """n objects in code order: cell codes u32[n], and distinct terms u64 as a CSR column."""

    codes: NDArray[np.uint32]
    term_offsets: NDArray[np.int64]
    terms: NDArray[np.uint64]

    @property
    def total(self) -> int:
        return int(self.codes.size)

    def frozen(self) -> Objects:
        """Return the objects as read-only arrays, so that kernels are compiled once."""
        return Objects(*map(read_only, self))


class LiveTables(NamedTuple):
    """The tables that routing reads: maps of keys, u64, and `needless` u8[scopes + 1].

    `wide` has the keys of regions that span too many scopes; a map of one word is empty.
    """

    live: NDArray[np.uint64]
    wide: NDArray[np.uint64]
    needless: NDArray[np.uint8]


@subkernel
def key_of_scope_term(scope: int, term: np.uint64) -> np.uint64:
    """Return a mixed key of a term in a scope."""
    return (term ^ (np.uint64(scope + 1) * GOLDEN)) * MIX


@subkernel
def word_of_key(key: np.uint64, words: int) -> np.uint64:
    """Return which word of a map holds a key's bits, by the key's top half."""
    return ((key >> HALF) * np.uint64(words)) >> HALF


@subkernel
def bits_of_key(key: np.uint64) -> np.uint64:
    """Return the four bits of a key in its word; one read rules out all but one key in 200."""
    return (
        (ONE << (key & IN_WORD))
        | (ONE << ((key >> np.uint64(6)) & IN_WORD))
        | (ONE << ((key >> np.uint64(12)) & IN_WORD))
        | (ONE << ((key >> np.uint64(18)) & IN_WORD))
    )


@subkernel
def key_is_set(words: np.ndarray, key: np.uint64) -> bool:
    """Return true if a map has all bits of a key."""
    bits = bits_of_key(key)
    return bool(words[word_of_key(key, words.size)] & bits == bits)


@kernel
def posts_into_maps(
    post_row: np.ndarray,
    post_term: np.ndarray,
    scope_offsets: np.ndarray,
    scopes: np.ndarray,
    live: np.ndarray,
    wide: np.ndarray,
    needless: np.ndarray,
) -> int:
    """Set the keys of every post in every scope of its row; return how many were set.

    The scopes of row r are scopes[scope_offsets[r]:scope_offsets[r + 1]], WIDE for everywhere.
    `needless` u8[scopes + 1] marks the scopes where a post needs no term, the last for everywhere.
    """
    keys = 0
    for p in range(post_row.size):
        row = post_row[p]
        term = post_term[p]
        for at in range(scope_offsets[row], scope_offsets[row + 1]):
            scope = np.int64(scopes[at])
            if term == ANY_TERM:
                needless[scope] = 1  # WIDE is the last
            else:
                key = key_of_scope_term(scope, term)
                if scope == WIDE:
                    wide[word_of_key(key, wide.size)] |= bits_of_key(key)
                else:
                    live[word_of_key(key, live.size)] |= bits_of_key(key)
            keys += 1
    return keys


WIDE_CELL = -1  # stands for all cells: the circle overlaps too many


@subkernel
def scope_of_worker_cell(worker: int, cell: int, cells: int) -> int:
    """Number a worker's cell, or return WIDE_CELL."""
    return worker * (cells + 1) + cell + 1


@kernel
def posts_into_map(
    post_row: np.ndarray,
    post_term: np.ndarray,
    owner: np.ndarray,
    cell_offsets: np.ndarray,
    cells_of_rows: np.ndarray,
    cells: int,
    words: np.ndarray,
) -> None:
    """Set the keys of every post in every cell of its row: cells_of_rows[offsets[r]:...]."""
    for p in range(post_row.size):
        row = post_row[p]
        worker = np.int64(owner[row])
        for at in range(cell_offsets[row], cell_offsets[row + 1]):
            scope = scope_of_worker_cell(worker, np.int64(cells_of_rows[at]), cells)
            key = key_of_scope_term(scope, post_term[p])
            words[word_of_key(key, words.size)] |= bits_of_key(key)


@kernel
def objects_to_map_workers(
    codes: np.ndarray,
    term_offsets: np.ndarray,
    terms: np.ndarray,
    words: np.ndarray,
    workers: int,
    cells: int,
    cell_shift: int,
) -> tuple:  # type: ignore[type-arg]
    """Return the shares of all workers, one after another: offsets i64[workers + 1], objects i64.

    An object is not in a worker's share if the worker has no live term for it.
    """
    offsets = np.zeros(workers + 1, np.int64)
    received = np.empty(codes.size * workers, np.int64)
    sent = 0
    for worker in range(workers):
        wide = scope_of_worker_cell(worker, WIDE_CELL, cells)
        for o in range(codes.size):
            cell = np.int64(codes[o] >> np.uint32(cell_shift))
            scope = scope_of_worker_cell(worker, cell, cells)
            for at in range(term_offsets[o], term_offsets[o + 1]):
                if key_is_set(words, key_of_scope_term(scope, terms[at])) or key_is_set(
                    words, key_of_scope_term(wide, terms[at])
                ):
                    received[sent] = o
                    sent += 1
                    break
        offsets[worker + 1] = sent
    return offsets, received[:sent]


@kernel
def posts_to_counts(
    post_row: np.ndarray,
    post_term: np.ndarray,
    cell_offsets: np.ndarray,
    cells: np.ndarray,
    room: int,
) -> np.ndarray:
    """Build a table u64[2 s] of the number of posts per (cell, term), with room for `room` keys."""
    size = 16
    while size < 3 * room:
        size *= 2
    table = np.full(size, EMPTY, np.uint64)
    for p in range(post_row.size):
        row = post_row[p]
        for at in range(cell_offsets[row], cell_offsets[row + 1]):
            key = key_of_scope_term(np.int64(cells[at]), post_term[p])
            entry = entry_of_hash(table, key)
            if table[entry + ONE] == EMPTY:
                table[entry] = key
                table[entry + ONE] = np.uint64(0)
            table[entry + ONE] += ONE
    return table


@subkernel
def count_of_key(table: np.ndarray, key: np.uint64) -> float:
    """Return the count of a key in a table of `posts_to_counts`."""
    number = table[entry_of_hash(table, key) + ONE]
    return 0.0 if number == EMPTY else np.float64(number)


@kernel
def pairs_near_posts(objects: Objects, table: np.ndarray, cell_shift: int) -> tuple:  # type: ignore[type-arg]
    """Count the posts near each (object, term) pair, f64[pairs], and each object alone, f64[n].

    Near means in the same cell, or everywhere.
    """
    codes, term_offsets, terms = objects
    of_pair = np.empty(terms.size, np.float64)
    alone = np.empty(codes.size, np.float64)
    for o in range(codes.size):
        cell = np.int64(codes[o] >> np.uint32(cell_shift))
        for at in range(term_offsets[o], term_offsets[o + 1]):
            here = count_of_key(table, key_of_scope_term(cell, terms[at]))
            of_pair[at] = here + count_of_key(table, key_of_scope_term(WIDE, terms[at]))
        here = count_of_key(table, key_of_scope_term(cell, ANY_TERM))
        alone[o] = here + count_of_key(table, key_of_scope_term(WIDE, ANY_TERM))
    return of_pair, alone


@kernel
def cells_of_ranges(ranges: np.ndarray, shift: int, most: int) -> tuple:  # type: ignore[type-arg]
    """Return the cells that ranges i32[m, 4] overlap, coarsened by `shift` bits, as Z-order codes.

    Returns offsets i64[m + 1] and codes i32; a range of more than `most` cells gets only WIDE.
    """
    side = np.int64(1) << (16 - shift)
    offsets = np.zeros(ranges.shape[0] + 1, np.int64)
    for i in range(ranges.shape[0]):
        rows = (ranges[i, 3] >> shift) - (ranges[i, 1] >> shift) + 1
        columns = (ranges[i, 2] >> shift) - (ranges[i, 0] >> shift) + 1
        if ranges[i, 0] > ranges[i, 2]:
            columns += side
        columns = min(columns, side)
        offsets[i + 1] = offsets[i] + (rows * columns if rows * columns <= most else 1)
    codes = np.empty(offsets[-1], np.int32)
    for i in range(ranges.shape[0]):
        to = offsets[i]
        first_row, last_row = ranges[i, 1] >> shift, ranges[i, 3] >> shift
        first = ranges[i, 0] >> shift
        rows = last_row - first_row + 1
        columns = (ranges[i, 2] >> shift) - first + 1
        if ranges[i, 0] > ranges[i, 2]:
            columns += side
        columns = min(columns, side)
        if rows * columns > most:
            codes[to] = WIDE
            continue
        for row in range(first_row, last_row + 1):
            for k in range(columns):
                column = (first + k) % side
                codes[to] = spread_bits(column) | (spread_bits(row) << 1)
                to += 1
    return offsets, codes
