"""Analyzers: text to terms, by the regular expression of the specification and what follows it.

`Analyzer` is `default`; with scripts its tokens are cut into pairs of characters (`cjk-bigram`),
and stop words are left out. `text/stemming.py` adds stems, `text/analyzers.py` opens all by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.bigrams import Scripts
from placewire.kernels.blocks import slices_to_buffer
from placewire.kernels.hashing import slices_hash
from placewire.kernels.interning import hashes_to_numbers
from placewire.kernels.jit import read_only
from placewire.kernels.mapping import NOTHING, Mapping, drop_terms, make_table, put_pairs
from placewire.kernels.tokens import (
    DONE,
    FULL,
    GROWTH_BYTES,
    GROWTH_TERMS,
    UNKNOWN,
    terms_of_texts,
)
from placewire.kernels.words import numbers_to_first_rows, words_of_texts
from placewire.model.analyzers import default_tokens
from placewire.text.codepoints import code_points
from placewire.text.scripts import cut_token


class TermSets(NamedTuple):
    """The terms of text i are `hashes[offsets[i]:offsets[i + 1]]`, ascending and distinct."""

    offsets: NDArray[np.int64]
    hashes: NDArray[np.uint64]


class Spelling(NamedTuple):
    """The distinct terms of some sets: their hashes, a CSR column of their bytes, in no order.

    `numbers` has the place among them of each term of the sets.
    """

    hashes: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    raw: NDArray[np.uint8]
    numbers: NDArray[np.uint32]


class Analyzer:
    """Text to terms under the hash key (`k0`, `k1`), less those of `stop_words`."""

    stems = False  # whether terms may be others than the tokens of the text

    def __init__(
        self, k0: int, k1: int, stop_words: Sequence[str] = (), scripts: Scripts = None
    ) -> None:
        self.k0 = np.uint64(k0)
        self.k1 = np.uint64(k1)
        self.scripts = scripts
        self.stop_words = frozenset(term for word in stop_words for term in self._cut([word]))
        self._stops = make_table(len(self.stop_words))
        hashes = self.hash_terms(list(self.stop_words))
        put_pairs(self._stops, hashes, np.full(hashes.size, NOTHING))

    def _cut(self, tokens: list[str]) -> list[str]:
        """The pieces of tokens."""
        if self.scripts is None:
            return tokens
        return [piece for token in tokens for piece in cut_token(token)]

    def tokens(self, text: str) -> list[str]:
        """The terms of a text, in order, repeats included."""
        tokens = self._cut(default_tokens(text))
        return [token for token in tokens if token not in self.stop_words]

    def mapping(self) -> Mapping | None:
        """What terms that are plain words stand for; None if each stands for itself."""
        return Mapping(read_only(self._stops), True) if self.stop_words else None

    def hash_terms(self, terms: Sequence[str]) -> NDArray[np.uint64]:
        """The hashes of ready terms, in their order."""
        return self.hash_words([term.encode() for term in terms])

    def hash_words(self, words: Sequence[bytes]) -> NDArray[np.uint64]:
        """The hashes of ready terms as UTF-8."""
        ends = np.cumsum(np.fromiter(map(len, words), np.int64, len(words)))
        starts = np.zeros_like(ends)
        starts[1:] = ends[:-1]
        return slices_hash(np.frombuffer(b"".join(words), np.uint8), starts, ends, self.k0, self.k1)

    def analyse(
        self,
        raw: NDArray[np.uint8],
        starts: NDArray[np.int64] | NDArray[np.uint32],
        ends: NDArray[np.int64] | NDArray[np.uint32],
    ) -> TermSets:
        """The terms of the texts `raw[starts[i]:ends[i]]`, which are valid UTF-8."""
        raw = read_only(np.ascontiguousarray(raw))  # as mapped buffers are: one kernel for all
        begins, stops = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(ends, np.int64)
        lengths = stops - begins
        longest = int(lengths.max(initial=0))
        scratch = np.empty(GROWTH_BYTES * longest, np.uint8)
        offsets = np.zeros(begins.size + 1, np.int64)
        # Pages that are not written to cost nothing. Only texts full of ligatures need more.
        hashes = np.empty(
            (int(lengths.sum()) + begins.size) // 2 + GROWTH_TERMS * longest, np.uint64
        )
        table = code_points()
        row = 0
        while True:
            row, reason, code = terms_of_texts(
                raw,
                begins,
                stops,
                row,
                table.points,
                self.k0,
                self.k1,
                self.scripts,
                scratch,
                offsets,
                hashes,
            )
            if reason == DONE:
                break
            if reason == UNKNOWN:
                table.learn(code)
            elif reason == FULL:
                hashes.resize(2 * hashes.size, refcheck=False)
            else:
                text = raw[begins[row] : stops[row]].tobytes().decode()
                terms = np.sort(self.hash_terms(list(set(self._cut(default_tokens(text))))))
                count = int(offsets[row])
                if count + terms.size > hashes.size:
                    hashes.resize(2 * hashes.size + terms.size, refcheck=False)
                hashes[count : count + terms.size] = terms
                row += 1
                offsets[row] = count + terms.size
        if self.stop_words:
            drop_terms(offsets, hashes, self._stops)
        hashes.resize(int(offsets[-1]), refcheck=False)  # gives the rest back without a copy
        return TermSets(offsets, hashes)

    def spell(
        self,
        terms: TermSets,
        raw: NDArray[np.uint8],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
    ) -> Spelling:
        """The words behind terms, found again in the texts that they came from."""
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
                self.k0,
                self.k1,
                self.scripts,
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
            texts = [raw[starts[row] : ends[row]].tobytes() for row in rows[unsafe > 0].tolist()]
            pool = self._add_unsafe(distinct, texts, place, size, pool)
        offsets, words = slices_to_buffer(
            read_only(pool), read_only(place), read_only(place + size)
        )
        return Spelling(distinct, offsets, words, numbers)

    def _add_unsafe(
        self,
        distinct: NDArray[np.uint64],
        texts: Sequence[bytes],
        place: NDArray[np.int64],
        size: NDArray[np.int32],
        pool: NDArray[np.uint8],
    ) -> NDArray[np.uint8]:
        """Find the words that are only in some texts, one after another; gives the longer pool."""
        tokens: dict[str, None] = {}
        for text in texts:
            tokens.update(dict.fromkeys(self._cut(default_tokens(text.decode()))))
        known = dict(zip(self.hash_terms(list(tokens)).tolist(), tokens, strict=True))
        added = bytearray()
        for number in np.flatnonzero(size == 0).tolist():
            word = known[int(distinct[number])].encode()
            place[number] = pool.size + len(added)
            size[number] = len(word)
            added += word
        return np.concatenate([pool, np.frombuffer(bytes(added), np.uint8)])
