"""The words behind a block's term hashes, and words in the order of the specification.

UTF-8 keeps the order of code points, so words are compared by their bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.blocks import slices_to_buffer
from placewire.kernels.interning import hashes_to_numbers
from placewire.kernels.jit import read_only
from placewire.kernels.tokens import GROWTH_BYTES
from placewire.kernels.words import (
    numbers_to_first_rows,
    slices_to_prefixes,
    slices_to_ranks,
    sort_alike,
    words_of_texts,
)
from placewire.text.analyzer import Analyzer, TermSets, code_points


class Words(NamedTuple):
    """Distinct words, ascending: their hashes u64[v], and a CSR column of their bytes."""

    hashes: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    raw: NDArray[np.uint8]


def words_of_terms(
    analyzer: Analyzer,
    terms: TermSets,
    raw: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> tuple[Words, NDArray[np.uint32]]:
    """The words of the terms of texts, and the place among them of each term in `terms`."""
    table, numbers, distinct = hashes_to_numbers(read_only(terms.hashes))
    first = numbers_to_first_rows(numbers, read_only(terms.offsets), distinct.size)
    rows = np.flatnonzero(first)
    lengths = ends[rows] - starts[rows]
    pool = np.empty(int(lengths.sum()) + GROWTH_BYTES * int(lengths.max(initial=0)), np.uint8)
    place = np.zeros(distinct.size, np.int64)
    size = np.zeros(distinct.size, np.int32)
    unsafe = np.zeros(rows.size, np.uint8)
    done = used = 0
    while True:
        done, used = words_of_texts(
            read_only(raw),
            read_only(starts),
            read_only(ends),
            rows,
            done,
            used,
            code_points().points,
            table,
            analyzer.k0,
            analyzer.k1,
            place,
            size,
            pool,
            unsafe,
        )
        if done == rows.size:
            break
        pool.resize(2 * pool.size, refcheck=False)
    pool = pool[:used]
    if unsafe.any():
        pool = add_unsafe_words(
            analyzer, distinct, raw, starts, ends, rows[unsafe > 0], place, size, pool
        )
    words = slices_to_buffer(read_only(pool), read_only(place), read_only(place + size))
    ranks, firsts = rank_words(*words)
    offsets, ordered = slices_to_buffer(
        read_only(words[1]), read_only(words[0][firsts]), read_only(words[0][firsts + 1])
    )
    return Words(distinct[firsts], offsets, ordered), ranks[numbers]


def add_unsafe_words(
    analyzer: Analyzer,
    distinct: NDArray[np.uint64],
    raw: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    rows: NDArray[np.int64],
    place: NDArray[np.int64],
    size: NDArray[np.int32],
    pool: NDArray[np.uint8],
) -> NDArray[np.uint8]:
    """Find the words that are only in some rows, one text after another; gives the longer pool."""
    tokens: dict[str, None] = {}
    for row in rows.tolist():
        tokens.update(
            dict.fromkeys(analyzer.tokens(raw[starts[row] : ends[row]].tobytes().decode()))
        )
    known = dict(zip(analyzer.hash_terms(list(tokens)).tolist(), tokens, strict=True))
    added = bytearray()
    for number in np.flatnonzero(size == 0).tolist():
        word = known[int(distinct[number])].encode()
        place[number] = pool.size + len(added)
        size[number] = len(word)
        added += word
    return np.concatenate([pool, np.frombuffer(bytes(added), np.uint8)])


def rank_words(
    offsets: NDArray[np.int64], raw: NDArray[np.uint8]
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The rank of each word, equal ones alike, and one word of each rank, in order."""
    offsets, raw = read_only(offsets), read_only(raw)
    prefixes = slices_to_prefixes(offsets, raw)
    order = np.argsort(prefixes, kind="stable")
    for begin, end in sort_alike(order, prefixes, offsets, raw).tolist():
        run = order[begin:end].tolist()
        run.sort(key=lambda number: raw[offsets[number] : offsets[number + 1]].tobytes())
        order[begin:end] = run
    return slices_to_ranks(order, offsets, raw)
