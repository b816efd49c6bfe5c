"""Analyzers: turn texts into sets of hashed terms.

`Analyzer` implements `default` and, given scripts, `cjk-bigram`, which cuts tokens into pairs of
characters. `StemmingAnalyzer` implements `snowball:LANGUAGE`. All of them drop stop words.
`open_analyzer` returns the analyzer of the settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from placewire.kernels.blocks import slices_to_buffer
from placewire.kernels.jit import freeze, read_only
from placewire.kernels.text.hash_table import EMPTY, hashes_to_numbers
from placewire.kernels.text.siphash import slices_hash
from placewire.kernels.text.term_map import (
    NOTHING,
    TermMap,
    drop_terms,
    make_sets,
    make_table,
    put_pairs,
    put_table,
    values_of_hashes,
)
from placewire.kernels.text.tokens import (
    DONE,
    FULL,
    GROWTH_BYTES,
    GROWTH_TERMS,
    UNKNOWN,
    Scripts,
    terms_of_texts,
)
from placewire.kernels.text.words import (
    FoundWords,
    TextSlices,
    WordSearch,
    numbers_to_first_rows,
    words_of_texts,
)
from placewire.model.arrays import I32, I64, U8, U32, U64, Bools
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.settings import CJK_BIGRAM, SNOWBALL, Settings, check_analyzer, tokenize
from placewire.model.subscriptions import concat_offsets, lengths_to_offsets
from placewire.text.codepoints import CJK_SCRIPTS, code_points, cut_token

Bytes = U8
Places = I64 | U32  # where texts start or end in a buffer


class TermSets(NamedTuple):
    """The terms of text i are `hashes[offsets[i]:offsets[i + 1]]`, ascending and distinct."""

    offsets: I64
    hashes: U64


class TermWords(NamedTuple):
    """The words of the distinct terms of some sets, unordered: hashes and a CSR column of bytes.

    `numbers` has the position among them of each term of the sets.
    """

    hashes: U64
    offsets: I64
    raw: U8
    numbers: U32


class Analyzer:
    """Turn texts into terms hashed under the key (`k0`, `k1`), without stop words."""

    stems = False  # whether terms may differ from the tokens of the text

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
        """Cut tokens into pieces if the analyzer has scripts."""
        if self.scripts is None:
            return tokens
        return [piece for token in tokens for piece in cut_token(token)]

    def tokens(self, text: str) -> list[str]:
        """Return the terms of a text in order, with repeats."""
        tokens = self._cut(tokenize(text))
        return [token for token in tokens if token not in self.stop_words]

    def term_map(self) -> TermMap | None:
        """Return the map from plain words to terms; None if it is the identity."""
        return TermMap(read_only(self._stops), True) if self.stop_words else None

    def hash_terms(self, terms: Sequence[str]) -> U64:
        """Hash terms, in order."""
        return self.hash_words([term.encode() for term in terms])

    def hash_words(self, words: Sequence[bytes]) -> U64:
        """Hash terms that are UTF-8, in order."""
        ends = np.cumsum(np.fromiter(map(len, words), np.int64, len(words)))
        starts = np.zeros_like(ends)
        starts[1:] = ends[:-1]
        return slices_hash(
            np.frombuffer(b"".join(words), np.uint8),
            read_only(starts),
            read_only(ends),
            self.k0,
            self.k1,
        )

    def analyse(self, raw: Bytes, starts: Places, ends: Places) -> TermSets:
        """Return the terms of the texts `raw[starts[i]:ends[i]]`, which are valid UTF-8."""
        raw = read_only(np.ascontiguousarray(raw))  # one type for mapped and other buffers
        begins, stops = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(ends, np.int64)
        lengths = stops - begins
        longest = int(lengths.max(initial=0))
        scratch = np.empty(GROWTH_BYTES * longest, np.uint8)
        offsets = np.zeros(begins.size + 1, np.int64)
        # Pages that are never written cost nothing. Only texts full of ligatures need more.
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
                terms = np.sort(self.hash_terms(list(set(self._cut(tokenize(text))))))
                count = int(offsets[row])
                if count + terms.size > hashes.size:
                    hashes.resize(2 * hashes.size + terms.size, refcheck=False)
                hashes[count : count + terms.size] = terms
                row += 1
                offsets[row] = count + terms.size
        if self.stop_words:
            drop_terms(offsets, hashes, self._stops)
        hashes.resize(int(offsets[-1]), refcheck=False)  # frees the rest without a copy
        return TermSets(offsets, hashes)

    def find_words(self, terms: TermSets, raw: Bytes, starts: Places, ends: Places) -> TermWords:
        """Find the words of terms in the texts that contain them."""
        table, numbers, distinct = hashes_to_numbers(read_only(terms.hashes))
        first = numbers_to_first_rows(numbers, read_only(terms.offsets), distinct.size)
        rows = np.flatnonzero(first)
        lengths = ends[rows] - starts[rows]
        pool = np.empty(int(lengths.sum()) + GROWTH_BYTES * int(lengths.max(initial=0)), np.uint8)
        place = np.zeros(distinct.size, np.int64)
        size = np.zeros(distinct.size, np.int32)
        unsafe = np.zeros(rows.size, np.uint8)
        texts = freeze(TextSlices, (raw, starts, ends, rows))
        search = WordSearch(read_only(table), self.k0, self.k1)
        done = used = 0
        while True:
            found = FoundWords(place, size, pool, unsafe)
            done, used = words_of_texts(
                texts, done, used, code_points().points, search, self.scripts, found
            )
            if done == rows.size:
                break
            pool.resize(2 * pool.size, refcheck=False)
        pool = pool[:used]
        if unsafe.any():
            left = [raw[starts[row] : ends[row]].tobytes() for row in rows[unsafe > 0].tolist()]
            pool = self._add_unsafe(distinct, left, place, size, pool)
        offsets, words = slices_to_buffer(
            read_only(pool), read_only(place), read_only(place + size)
        )
        return TermWords(distinct, offsets, words, numbers)

    def _add_unsafe(
        self, distinct: U64, texts: Sequence[bytes], place: I64, size: I32, pool: U8
    ) -> U8:
        """Find words that only texts outside the kernel have; return the extended pool."""
        tokens: dict[str, None] = {}
        for text in texts:
            tokens.update(dict.fromkeys(self._cut(tokenize(text.decode()))))
        known = dict(zip(self.hash_terms(list(tokens)).tolist(), tokens, strict=True))
        added = bytearray()
        for number in np.flatnonzero(size == 0).tolist():
            word = known[int(distinct[number])].encode()
            place[number] = pool.size + len(added)
            size[number] = len(word)
            added += word
        return np.concatenate([pool, np.frombuffer(bytes(added), np.uint8)])


MOST_WORDS = 1 << 19  # about 50 MB; a larger vocabulary is dropped and rebuilt


class GrowingTable:
    """A hash table of pairs that grows as it fills."""

    def __init__(self) -> None:
        self.pairs = make_table(0)
        self.count = 0

    def put(self, keys: U64, values: U64) -> None:
        """Add pairs whose keys are distinct and new."""
        self.count += keys.size
        if 4 * self.count > self.pairs.size:
            wider = make_table(2 * self.count)
            put_table(wider, self.pairs)
            self.pairs = wider
        put_pairs(self.pairs, keys, values)


class Vocabulary:
    """The words that a process has seen: the hash of each word's stem, and the bytes of stems."""

    def __init__(self) -> None:
        self.stem_of = GrowingTable()
        self.number_of = GrowingTable()  # of a stem, by its hash
        self.offsets = np.zeros(1, np.int64)
        self.raw = np.empty(0, np.uint8)

    def add(self, words: U64, stems: U64, spelt: Sequence[bytes]) -> None:
        """Add new words with their stems."""
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
    """The analyzer `snowball:LANGUAGE`: stems of default terms that are not stop words."""

    stems = True

    def __init__(self, k0: int, k1: int, language: str, stop_words: Sequence[str] = ()) -> None:
        import Stemmer  # an optional dependency: most logs need no stemmer

        super().__init__(k0, k1, stop_words)
        self.language = language
        self._stemmer = Stemmer.Stemmer(language, 0)  # no cache: the vocabulary is the cache
        self._lock = Lock()  # a stemmer serves one thread at a time
        self._vocabulary = Vocabulary()
        self._pending: set[str] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        words = tuple(sorted(self.stop_words))
        return StemmingAnalyzer, (int(self.k0), int(self.k1), self.language, words)

    def tokens(self, text: str) -> list[str]:
        """Return the stems of a text in order, with repeats."""
        words = super().tokens(text)
        with self._lock:
            self._pending.update(words)
            return [stem.decode() for stem in self._stem([word.encode() for word in words])]

    def _stem(self, words: Sequence[bytes]) -> list[bytes]:
        """Stem words; a word whose stem is empty is unchanged."""
        stems = self._stemmer.stemWords(list(words))
        return [stem or word for stem, word in zip(stems, words, strict=True)]

    def term_map(self) -> TermMap:
        """Return the map from known words, including those of expressions, to stems."""
        with self._lock:
            pending = [word.encode() for word in self._pending]
            self._pending.clear()
            hashes = self.hash_words(pending)
            values, _ = values_of_hashes(hashes, self._vocabulary.stem_of.pairs)
            new = np.flatnonzero(values == EMPTY)
            self._learn(hashes[new], [pending[at] for at in new.tolist()])
            return TermMap(read_only(self._vocabulary.stem_of.pairs), False)

    def _learn(self, hashes: U64, words: Sequence[bytes]) -> None:
        """Add unknown words to the vocabulary."""
        if words:
            stems = self._stem(words)
            self._vocabulary.add(hashes, self.hash_words(stems), stems)

    def analyse(self, raw: Bytes, starts: Places, ends: Places) -> TermSets:
        """Return the stems of the texts `raw[starts[i]:ends[i]]`."""
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
        self, terms: TermSets, new: Bools, raw: Bytes, starts: Places, ends: Places
    ) -> None:
        """Add the marked terms of texts to the vocabulary."""
        edges = lengths_to_offsets(new.astype(np.int64))[terms.offsets]
        found = super().find_words(
            TermSets(edges, terms.hashes[new]),
            raw,
            np.asarray(starts, np.int64),
            np.asarray(ends, np.int64),
        )
        buffer = found.raw.tobytes()
        words = [buffer[begin:end] for begin, end in pairwise(found.offsets.tolist())]
        self._learn(found.hashes, words)

    def find_words(self, terms: TermSets, raw: Bytes, starts: Places, ends: Places) -> TermWords:
        """Find stems in the vocabulary, which `analyse` has filled."""
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
                    return TermWords(distinct, offsets, words, numbers)
            self.analyse(raw, starts, ends)  # the vocabulary was dropped since


def open_analyzer(settings: Settings, key: tuple[int, int]) -> Analyzer:
    """Return the analyzer of the settings under a hash key; raises Unusable."""
    return _open(settings.analyzer, settings.stemmer, settings.stop_words or "", *key)


@lru_cache(8)  # the next block reuses the vocabulary
def _open(name: str, stemmer: str | None, stop_words: str, k0: int, k1: int) -> Analyzer:
    try:
        here = check_analyzer(name)
    except InvalidEvent as error:
        raise Unusable(str(error)) from None
    if stemmer is not None and stemmer != here:
        raise Unusable(f"analyzer: its stems are those of {stemmer}, but {here} is installed")
    if name.startswith(SNOWBALL):
        return StemmingAnalyzer(k0, k1, name.removeprefix(SNOWBALL), stop_words.split())
    return Analyzer(k0, k1, stop_words.split(), CJK_SCRIPTS if name == CJK_BIGRAM else None)
