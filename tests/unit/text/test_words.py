"""Words behind hashes: found again in any texts, distinct and in the order of code points."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from placewire.kernels.text.words import place_of_slice
from placewire.text.analyzer import Analyzer
from placewire.text.words import rank_words, words_of_terms
from profiles import examples

ANALYZER = Analyzer(3, 5)
texts = st.lists(
    st.text(max_size=30) | st.text("aB_1 ﬁÅ̊é東ͺ̀ß'", max_size=30), min_size=1, max_size=8
)


def words_and_terms(lines: list[str]) -> tuple[list[str], list[list[str]]]:
    encoded = [line.encode() for line in lines]
    ends = np.cumsum([len(line) for line in encoded])
    starts = ends - [len(line) for line in encoded]
    raw = np.frombuffer(b"".join(encoded), np.uint8)
    terms = ANALYZER.analyse(raw, starts, ends)
    words, numbers = words_of_terms(ANALYZER, terms, raw, starts, ends)
    edges, whole = words.offsets.tolist(), words.raw.tobytes()
    names = [whole[a:b].decode() for a, b in itertools.pairwise(edges)]
    assert ANALYZER.hash_terms(names).tolist() == words.hashes.tolist()
    cuts = terms.offsets.tolist()
    return names, [[names[n] for n in numbers[a:b]] for a, b in itertools.pairwise(cuts)]


@given(texts)
@example(["\\ufdfa" * 9, "a"])  # one code point that becomes eighteen
@example(["ͺ̀0", "ͺ̀0"])
@settings(max_examples=examples(300))
def test_words_of_any_texts(lines: list[str]) -> None:
    names, terms = words_and_terms(lines)
    expected = [set(ANALYZER.tokens(line)) for line in lines]
    assert names == sorted(set().union(*expected))
    assert [set(row) for row in terms] == expected


def test_many_words_that_begin_alike() -> None:
    lines = [" ".join(f"commonstart{n * 7919 % 1000}" for n in range(1000)), "commons commonst"]
    names, _ = words_and_terms(lines)
    assert names == sorted(set(" ".join(lines).split()))


@given(st.lists(st.text(min_size=1, max_size=12), max_size=40))
def test_ranks_are_those_of_sorted_words(words: list[str]) -> None:
    encoded = [word.encode() for word in words]
    offsets = np.cumsum([0, *map(len, encoded)])
    raw = np.frombuffer(b"".join(encoded), np.uint8)
    ranks, firsts = rank_words(offsets, raw)
    distinct = sorted(set(words))
    assert ranks.tolist() == [distinct.index(word) for word in words]
    assert [words[first] for first in firsts.tolist()] == distinct


def test_a_word_is_found_among_others() -> None:
    words = sorted(["a", "ab", "abc", "b", "é", "東京"])
    encoded = [word.encode() for word in words]
    offsets = np.cumsum([0, *map(len, encoded)])
    raw = np.frombuffer(b"".join(encoded), np.uint8)
    for place, word in enumerate(words):
        assert place_of_slice(offsets, raw, np.frombuffer(word.encode(), np.uint8)) == place
    for word in ("", "aa", "abcd", "z", "東"):
        assert place_of_slice(offsets, raw, np.frombuffer(word.encode(), np.uint8)) == -1
