"""Find the words of term hashes, and sort words.

UTF-8 preserves the order of code points, so words are compared by their bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.blocks import slices_to_buffer
from placewire.kernels.jit import read_only
from placewire.kernels.text.words import (
    slices_to_prefixes,
    slices_to_ranks,
    sort_equal_prefixes,
)
from placewire.text.analyzer import Analyzer, TermSets


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
    """Return the words of terms, ascending, and the place of each term among them."""
    found = analyzer.find_words(terms, raw, starts, ends)
    ranks, firsts = rank_words(found.offsets, found.raw)
    offsets, ordered = slices_to_buffer(
        read_only(found.raw),
        read_only(found.offsets[firsts]),
        read_only(found.offsets[firsts + 1]),
    )
    return Words(found.hashes[firsts], offsets, ordered), ranks[found.numbers]


def rank_words(
    offsets: NDArray[np.int64], raw: NDArray[np.uint8]
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the rank of each word, and one word of each rank, ascending."""
    offsets, raw = read_only(offsets), read_only(raw)
    prefixes = slices_to_prefixes(offsets, raw)
    order = np.argsort(prefixes, kind="stable")
    for begin, end in sort_equal_prefixes(order, prefixes, offsets, raw).tolist():
        run = order[begin:end].tolist()
        run.sort(key=lambda number: raw[offsets[number] : offsets[number + 1]].tobytes())
        order[begin:end] = run
    return slices_to_ranks(order, offsets, raw)
