"""The words of term hashes: find, sort and weigh them by a lexicon.

UTF-8 preserves the order of code points, so words are compared by their bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from placewire.kernels.blocks import slices_to_buffer
from placewire.kernels.jit import read_only
from placewire.kernels.text.words import slices_to_prefixes, slices_to_ranks, sort_equal_prefixes
from placewire.model.arrays import F64, I64, U8, U32, U64
from placewire.model.errors import Unusable
from placewire.model.settings import LexiconFile
from placewire.text.analyzer import Analyzer, TermSets


class Words(NamedTuple):
    """Distinct words, ascending: their hashes u64[v], and a CSR column of their bytes."""

    hashes: U64
    offsets: I64
    raw: U8


def words_of_terms(
    analyzer: Analyzer, terms: TermSets, raw: U8, starts: I64, ends: I64
) -> tuple[Words, U32]:
    """Return the words of terms, ascending, and the position of each term among them."""
    found = analyzer.find_words(terms, raw, starts, ends)
    ranks, firsts = rank_words(found.offsets, found.raw)
    offsets, ordered = slices_to_buffer(
        read_only(found.raw), read_only(found.offsets[firsts]), read_only(found.offsets[firsts + 1])
    )
    return Words(found.hashes[firsts], offsets, ordered), ranks[found.numbers]


def rank_words(offsets: I64, raw: U8) -> tuple[U32, I64]:
    """Return the rank of each word, and one word of each rank, ascending."""
    offsets, raw = read_only(offsets), read_only(raw)
    prefixes = slices_to_prefixes(offsets, raw)
    order = np.argsort(prefixes, kind="stable")
    for begin, end in sort_equal_prefixes(order, prefixes, offsets, raw).tolist():
        run = order[begin:end].tolist()
        run.sort(key=lambda number: raw[offsets[number] : offsets[number + 1]].tobytes())
        order[begin:end] = run
    return slices_to_ranks(order, offsets, raw)


class Lexicon:
    """Document frequencies of terms, and idf computed from them."""

    def __init__(self, documents: int, df: dict[str, int]) -> None:
        self.documents = documents
        self.df = {term.encode(): frequency for term, frequency in df.items()}

    def idf(self, word: bytes) -> float:
        """Return the idf of one word."""
        return self.idf_of_frequency(self.df.get(word, 0))

    def idf_of_frequency(self, frequency: int) -> float:
        """Return ln(1 + N / (1 + df))."""
        return math.log(1 + self.documents / (1 + frequency))

    def idf_of(self, words: Words) -> F64:
        """Return the idf of every word."""
        raw, edges = words.raw.tobytes(), words.offsets.tolist()
        idf = np.full(words.hashes.size, self.idf_of_frequency(0))
        for number, (begin, end) in enumerate(pairwise(edges)):
            if raw[begin:end] in self.df:
                idf[number] = self.idf(raw[begin:end])
        return idf


def weigh_terms(terms: Sequence[str], lexicon: Lexicon | None) -> tuple[list[float], float]:
    """Return the idf of terms in code-point order, and their norm, summed in that order."""
    weights = [1.0 if lexicon is None else lexicon.idf(term.encode()) for term in terms]
    total = 0.0
    for weight in weights:
        total += weight * weight
    return weights, math.sqrt(total)


@lru_cache(4)
def read_lexicon(path: str) -> Lexicon:
    """Return the lexicon of a file that never changes; raises Unusable."""
    try:
        found = msgspec.json.decode(Path(path).read_bytes(), type=LexiconFile)
    except (OSError, msgspec.DecodeError) as error:
        raise Unusable(f"lexicon {path}: cannot be read: {error}") from None
    return Lexicon(found.documents, found.df)
