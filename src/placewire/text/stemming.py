"""Stems: terms brought to their stems by Snowball, each word once, then by a table of hashes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.blocks import slices_to_buffer
from placewire.kernels.interning import EMPTY, hashes_to_numbers
from placewire.kernels.jit import read_only
from placewire.kernels.mapping import (
    Mapping,
    make_sets,
    make_table,
    put_pairs,
    put_table,
    values_of_hashes,
)
from placewire.model.subscriptions import concat_offsets, lengths_to_offsets
from placewire.text.analyzer import Analyzer, Spelling, TermSets

MOST_WORDS = 1 << 19  # some 50 MB; when there are more, all are forgotten and learnt anew


class GrowingTable:
    """A table of pairs that is made larger as it fills."""

    def __init__(self) -> None:
        self.pairs = make_table(0)
        self.count = 0

    def put(self, keys: NDArray[np.uint64], values: NDArray[np.uint64]) -> None:
        """Add pairs whose keys are distinct and new."""
        self.count += keys.size
        if 4 * self.count > self.pairs.size:
            wider = make_table(2 * self.count)
            put_table(wider, self.pairs)
            self.pairs = wider
        put_pairs(self.pairs, keys, values)


class Vocabulary:
    """What a process knows of words: the hash of each one's stem, and how stems are spelt."""

    def __init__(self) -> None:
        self.stem_of = GrowingTable()
        self.number_of = GrowingTable()  # of a stem, by its hash
        self.offsets = np.zeros(1, np.int64)
        self.raw = np.empty(0, np.uint8)

    def add(
        self, words: NDArray[np.uint64], stems: NDArray[np.uint64], spelt: Sequence[bytes]
    ) -> None:
        """Take in words that are new, with their stems."""
        self.stem_of.put(words, stems)
        distinct, first = np.unique(stems, return_index=True)
        numbers, _ = values_of_hashes(distinct, self.number_of.pairs)
        fresh = np.flatnonzero(numbers == EMPTY)
        total = self.offsets.size - 1
        self.number_of.put(distinct[fresh], np.arange(total, total + fresh.size, dtype=np.uint64))
        added = [spelt[at] for at in first[fresh].tolist()]
        lengths = lengths_to_offsets(np.fromiter(map(len, added), np.int64, len(added)))
        self.offsets = concat_offsets([self.offsets, lengths])
        self.raw = np.concatenate([self.raw, np.frombuffer(b"".join(added), np.uint8)])


class StemmingAnalyzer(Analyzer):
    """The analyzer `snowball:LANGUAGE`: default terms that are no stop words, stemmed."""

    stems = True

    def __init__(self, k0: int, k1: int, language: str, stop_words: Sequence[str] = ()) -> None:
        import Stemmer  # an extra: most logs need none

        super().__init__(k0, k1, stop_words)
        self.language = language
        self._stemmer = Stemmer.Stemmer(language, 0)  # a cache of its own would be a second one
        self._lock = Lock()  # a stemmer serves one thread at a time
        self._vocabulary = Vocabulary()
        self._heard: set[str] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        words = tuple(sorted(self.stop_words))
        return StemmingAnalyzer, (int(self.k0), int(self.k1), self.language, words)

    def tokens(self, text: str) -> list[str]:
        """The stems of a text, in order, repeats included."""
        words = super().tokens(text)
        with self._lock:
            self._heard.update(words)
            return [stem.decode() for stem in self._stem([word.encode() for word in words])]

    def _stem(self, words: Sequence[bytes]) -> list[bytes]:
        """The stem of each word; a word of which nothing would be left stays as it is."""
        stems = self._stemmer.stemWords(list(words))
        return [stem or word for stem, word in zip(stems, words, strict=True)]

    def mapping(self) -> Mapping:
        """The stems of words that are known, those of earlier expressions among them."""
        with self._lock:
            heard = [word.encode() for word in self._heard]
            self._heard.clear()
            hashes = self.hash_words(heard)
            values, _ = values_of_hashes(hashes, self._vocabulary.stem_of.pairs)
            new = np.flatnonzero(values == EMPTY)
            self._learn(hashes[new], [heard[at] for at in new.tolist()])
            return Mapping(read_only(self._vocabulary.stem_of.pairs), False)

    def _learn(self, hashes: NDArray[np.uint64], words: Sequence[bytes]) -> None:
        """Stem words that are not known yet."""
        if words:
            stems = self._stem(words)
            self._vocabulary.add(hashes, self.hash_words(stems), stems)

    def analyse(
        self,
        raw: NDArray[np.uint8],
        starts: NDArray[np.int64] | NDArray[np.uint32],
        ends: NDArray[np.int64] | NDArray[np.uint32],
    ) -> TermSets:
        """The stems of the texts `raw[starts[i]:ends[i]]`."""
        terms = super().analyse(raw, starts, ends)
        with self._lock:
            if self._vocabulary.stem_of.count > MOST_WORDS:
                self._vocabulary = Vocabulary()
            stems, unknown = values_of_hashes(terms.hashes, self._vocabulary.stem_of.pairs)
            if unknown:
                new = stems == EMPTY
                self._learn_from(terms, new, raw, starts, ends)
                pairs = self._vocabulary.stem_of.pairs
                stems[new], _ = values_of_hashes(terms.hashes[new], pairs)
        make_sets(terms.offsets, stems)
        return TermSets(terms.offsets, stems[: int(terms.offsets[-1])])

    def _learn_from(
        self,
        terms: TermSets,
        new: NDArray[np.bool_],
        raw: NDArray[np.uint8],
        starts: NDArray[np.int64] | NDArray[np.uint32],
        ends: NDArray[np.int64] | NDArray[np.uint32],
    ) -> None:
        """Learn the marked terms of texts."""
        edges = lengths_to_offsets(new.astype(np.int64))[terms.offsets]
        spelt = super().spell(
            TermSets(edges, terms.hashes[new]),
            raw,
            np.asarray(starts, np.int64),
            np.asarray(ends, np.int64),
        )
        buffer = spelt.raw.tobytes()
        words = [buffer[begin:end] for begin, end in pairwise(spelt.offsets.tolist())]
        self._learn(spelt.hashes, words)

    def spell(
        self,
        terms: TermSets,
        raw: NDArray[np.uint8],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
    ) -> Spelling:
        """The stems themselves, from what was learnt when the texts were analysed."""
        _, numbers, distinct = hashes_to_numbers(read_only(terms.hashes))
        while True:
            with self._lock:
                places, unknown = values_of_hashes(distinct, self._vocabulary.number_of.pairs)
                if not unknown:
                    places = places.astype(np.int64)
                    edges = self._vocabulary.offsets
                    offsets, words = slices_to_buffer(
                        read_only(self._vocabulary.raw),
                        read_only(edges[places]),
                        read_only(edges[places + 1]),
                    )
                    return Spelling(distinct, offsets, words, numbers)
            self.analyse(raw, starts, ends)  # forgotten in between
