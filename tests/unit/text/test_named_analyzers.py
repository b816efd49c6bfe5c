"""Analyzers by name against their references: terms, words, expressions, settings."""

from __future__ import annotations

import builtins
import json
import pickle
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import snowballstemmer
import Stemmer
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from oracle import default_analyzer
from placewire.ingest.changes import plain_changes
from placewire.ingest.decode import decode_lines
from placewire.kernels.json.objects import find_lines
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.settings import (
    Settings,
    check_analyzer,
    complete_settings,
    parse_settings,
    read_stop_words,
)
from placewire.model.subscriptions import COLUMNS
from placewire.text import analyzer as stemming
from placewire.text.analyzer import Analyzer, StemmingAnalyzer, open_analyzer
from placewire.text.codepoints import CJK, cut_token
from placewire.text.words import words_of_terms
from profiles import examples
from reference_analyzers import (
    ANALYZERS,
    ENGLISH,
    WORDS,
    cjk_bigrams,
    is_cjk,
    opened,
    stemmer,
    texts,
)

LANGUAGES = Stemmer.algorithms()


def packed(
    texts: Sequence[str],
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    encoded = [text.encode() for text in texts]
    lengths = np.array([len(text) for text in encoded], np.int64)
    ends = np.cumsum(lengths + 1) - 1
    return np.frombuffer(b"z".join(encoded), np.uint8), ends - lengths, ends


def analysed(analyzer: Analyzer, texts: Sequence[str]) -> list[list[str]]:
    """The terms of each text, spelt, ascending."""
    columns = packed(texts)
    sets = analyzer.analyse(*columns)
    words, numbers = words_of_terms(analyzer, sets, *columns)
    edges = words.offsets.tolist()
    spelt = [words.raw[a:b].tobytes().decode() for a, b in pairwise(edges)]
    assert spelt == sorted(set(spelt))
    assert words.hashes.tolist() == analyzer.hash_terms(spelt).tolist()
    assert words.hashes[numbers].tolist() == sets.hashes.tolist()
    rows = list(pairwise(sets.offsets.tolist()))
    for begin, end in rows:
        assert (np.diff(sets.hashes[begin:end].astype(object)) > 0).all()
    return [sorted(spelt[n] for n in numbers[begin:end].tolist()) for begin, end in rows]


@pytest.mark.parametrize("name", ANALYZERS)
@given(lines=st.lists(texts(), max_size=8))
@settings(max_examples=examples(150))
def test_terms_are_those_of_the_reference(name: str, lines: list[str]) -> None:
    analyzer, reference = opened(name)
    assert analysed(analyzer, lines) == [sorted(set(reference(line))) for line in lines]
    for line in lines:
        assert analyzer.tokens(line) == reference(line)


@pytest.mark.parametrize("name", ANALYZERS)
def test_no_text_and_no_terms(name: str) -> None:
    analyzer, _ = opened(name)
    assert analysed(analyzer, []) == []
    assert analysed(analyzer, ["", " ", "☕"]) == [[], [], []]


# CJK ----------------------------------------------------------------------------------------------


def test_scripts_are_those_that_unicode_names() -> None:
    for code in range(0x110000):
        char = chr(code)
        if default_analyzer(char) == [char]:
            inside = any(first <= code <= last for first, last in CJK)
            assert inside == is_cjk(char), hex(code)


@pytest.mark.slow
def test_every_code_point_beside_han() -> None:
    analyzer, reference = opened("cjk-bigram")
    for first in range(0, 0x34000, 0x4000):
        codes = [code for code in range(first, first + 0x4000) if not 0xD800 <= code < 0xE000]
        lines = [f"東{chr(code)}京{chr(code)}a{chr(code)}" for code in codes]
        assert analysed(analyzer, lines) == [sorted(set(reference(line))) for line in lines]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("東京都庁", ["東京", "京都", "都庁"]),
        ("東京", ["東京"]),
        ("京", ["京"]),
        ("京 都", ["京", "都"]),
        ("Tokyo東京Tower", ["tokyo", "東京", "tower"]),
        ("２０２６年３月", ["2026", "年", "3", "月"]),
        ("東京へ行く", ["東京", "京へ", "へ行", "行く"]),
        ("ﾊﾞｽ停", ["バス", "ス停"]),
        ("서울역에서", ["서울", "울역", "역에", "에서"]),
        ("𠮷野家", ["𠮷野", "野家"]),
        ("東・京", ["東", "京"]),
        ("coffee", ["coffee"]),
    ],
)
def test_pairs(text: str, terms: list[str]) -> None:
    analyzer, _ = opened("cjk-bigram")
    assert analyzer.tokens(text) == cjk_bigrams(text) == terms
    assert analysed(analyzer, [text]) == [sorted(set(terms))]


def test_long_runs_and_squared_words_have_room() -> None:
    analyzer, reference = opened("cjk-bigram")
    lines = ["㌖" * 5_000, "㍿株" * 3_000, "あ" * 20_000, "x" + "서a" * 9_000]
    assert analysed(analyzer, lines) == [sorted(set(reference(line))) for line in lines]


@given(texts())
def test_cutting_what_is_cut_changes_nothing(text: str) -> None:
    for token in cjk_bigrams(text):
        assert list(cut_token(token)) == [token]


# Stems --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language(language: str) -> None:
    assert language in snowballstemmer.algorithms()
    analyzer = open_analyzer(parse_settings({"analyzer": f"snowball:{language}"}), (1, 2))
    assert analysed(analyzer, WORDS) == [sorted(set(stemmer(language)(word))) for word in WORDS]


@pytest.mark.parametrize("language", LANGUAGES)
@given(lines=st.lists(st.text(min_size=1, max_size=12), max_size=6))
@settings(max_examples=examples(25))
def test_every_language_on_anything(language: str, lines: list[str]) -> None:
    analyzer = open_analyzer(parse_settings({"analyzer": f"snowball:{language}"}), (1, 2))
    reference = stemmer(language)
    assert analysed(analyzer, lines) == [sorted(set(reference(line))) for line in lines]


def test_a_word_is_stemmed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    analyzer = StemmingAnalyzer(1, 2, "english")
    asked: list[bytes] = []
    stem = analyzer._stem
    monkeypatch.setattr(analyzer, "_stem", lambda words: asked.extend(words) or stem(words))
    analysed(analyzer, ["Running runs", "she runs"])
    analysed(analyzer, ["runs running", "sky"])
    assert sorted(asked) == [b"running", b"runs", b"she", b"sky"]


def test_words_that_are_forgotten_are_learnt_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stemming, "MOST_WORDS", 3)
    analyzer, reference = StemmingAnalyzer(1, 2, "english"), stemmer("english")
    for number in range(20):
        lines = [f"running{number} skies coffees", f"coffee{number}s of cafés"]
        assert analysed(analyzer, lines) == [sorted(set(reference(line))) for line in lines]
    columns = packed(["running skies coffees"])
    sets = analyzer.analyse(*columns)
    analyzer.analyse(*packed(["other words", "many of them"]))
    analyzer.analyse(*packed(["and more"]))
    words, _ = words_of_terms(analyzer, sets, *columns)
    assert sorted(words.hashes.tolist()) == sorted(sets.hashes.tolist())


def test_plain_subscriptions_are_read_alike_before_and_after_words_are_known() -> None:
    # Stems of these two come in another order than the words.
    assert [*map(stemmer("english"), ["happiest", "happy"])] == [["happiest"], ["happi"]]
    head = {"type": "subscribe", "ts": "2026-03-01T12:00:00Z"}
    point = {"lon": 1, "lat": 2, "k": 3}
    words = ["happiest", "happy", "runs", "running"]
    events = [
        {**head, "id": "and", "kind": "boolean", "where": "runs AND running AND happy"},
        {**head, "id": "or", "kind": "boolean", "where": "happiest OR happy OR runs"},
        {**head, "id": "near", "kind": "nearest", **point, "keywords": words, "mode": "all"},
        {**head, "id": "like", "kind": "relevant", **point, "keywords": words, "alpha": 0.5},
        {**head, "id": "stop", "kind": "boolean", "where": "the"},
    ]
    raw = np.frombuffer(b"".join(json.dumps(e).encode() + b"\n" for e in events), np.uint8)
    chosen = parse_settings({"analyzer": "snowball:english", "stop_words": ["the"]})
    analyzer = StemmingAnalyzer(1, 2, "english", ["the"])
    lines = np.arange(len(events), dtype=np.uint32)
    left = []
    blocks = []
    for _ in range(2):
        slow = plain_changes(raw, find_lines(raw), lines, 0, analyzer, 0.0)[1]
        left.append(slow.tolist())
        blocks.append(decode_lines(raw, 0, analyzer, None, 1 << 60, chosen))
    assert left == [[0, 1, 2, 3, 4], [3, 4]]
    assert [letter.event for letter in blocks[0].dead] == [4]
    assert blocks[0].dead == blocks[1].dead
    first, second = ([getattr(b.rows, name).tolist() for name in COLUMNS] for b in blocks)
    assert first == second
    first, second = (
        {kind: [column.tolist() for column in table] for kind, table in b.rows.own.items()}
        for b in blocks
    )
    assert first == second


def test_a_large_vocabulary_grows() -> None:
    analyzer, reference = StemmingAnalyzer(1, 2, "english"), stemmer("english")
    lines = [f"walking{number} stations{number}es" for number in range(20_000)]
    assert analysed(analyzer, lines) == [sorted(set(reference(line))) for line in lines]


def test_a_stemming_analyzer_pickles_without_its_words() -> None:
    analyzer = StemmingAnalyzer(1, 2, "english", ["the"])
    analysed(analyzer, ["the coffees"])
    pickled = pickle.dumps(analyzer)
    assert len(pickled) < 500
    assert pickle.loads(pickled).tokens("the coffees") == analyzer.tokens("the coffees")


# Settings -----------------------------------------------------------------------------------------


def test_stop_words_in_all_forms(tmp_path: Path) -> None:
    path = tmp_path / "stop.txt"
    path.write_text("the  # an article\n\n# nothing\nOf\n", "utf-8")
    by_file = parse_settings({"stop_words": {"file": str(path)}})
    assert by_file == parse_settings({"stop_words": ["of", "THE", "the"]})
    assert by_file.stop_words == "of the"
    english = parse_settings({"stop_words": "english"}).stop_words
    assert english is not None
    assert english.split() == sorted(ENGLISH)
    assert read_stop_words(["don't", "ﬁn"]) == "don fin t"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("klingon", "english"),
        ([], "a list of words"),
        (5, "5"),
        (["the", 5], "5"),
        (["the", "!"], "'!'"),
        ({"path": "x"}, "file"),
        ({"file": 5}, "file"),
        ({"file": "missing.txt"}, "missing.txt"),
        ([f"w{n}" for n in range(10_001)], "10,001"),
    ],
)
def test_bad_stop_words_are_refused(value: Any, message: str) -> None:
    with pytest.raises(InvalidEvent, match="stop_words") as caught:
        parse_settings({"stop_words": value})
    assert message in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"# nothing\n", b"\xff"])
def test_bad_files_of_stop_words_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "stop.txt").write_bytes(content)
    with pytest.raises(InvalidEvent, match=r"stop_words: .*stop\.txt"):
        parse_settings({"stop_words": {"file": str(tmp_path / "stop.txt")}})


@pytest.mark.parametrize("name", ["porter", "Default", "", "snowball", 5, None, ["default"]])
def test_an_unknown_analyzer_is_told_what_there_is(name: Any) -> None:
    with pytest.raises(InvalidEvent, match="default, cjk-bigram or snowball:LANGUAGE") as caught:
        parse_settings({"analyzer": name})
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize("name", ["snowball:", "snowball:English", "snowball:en", "snowball:x y"])
def test_an_unknown_language_is_told_what_there_is(name: str) -> None:
    with pytest.raises(InvalidEvent, match="danish, dutch") as caught:
        parse_settings({"analyzer": name})
    assert repr(name.removeprefix("snowball:")) in str(caught.value)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def importing(name: str, *rest: Any, **more: Any) -> Any:
        if name == "Stemmer":
            raise ImportError(name)
        return usual(name, *rest, **more)

    monkeypatch.delitem(sys.modules, "Stemmer")
    monkeypatch.setattr(builtins, "__import__", importing)
    with pytest.raises(InvalidEvent, match=r"pip install 'placewire\[snowball\]'"):
        check_analyzer("snowball:english")
    assert check_analyzer("cjk-bigram") is None


def test_settings_made_in_python_are_completed() -> None:
    made = complete_settings(Settings(analyzer="snowball:english", stop_words="the OF the"))
    read = parse_settings({"analyzer": "snowball:english", "stop_words": ["of", "the"]})
    assert made == read
    assert made.stemmer == f"PyStemmer {Stemmer.version()}"
    with pytest.raises(Unusable, match="analyzer: must be default"):
        complete_settings(Settings(analyzer="nonsense"))


def test_stems_of_another_release_are_refused() -> None:
    other = parse_settings({"analyzer": "snowball:english"})._replace(stemmer="PyStemmer 2.0")
    with pytest.raises(Unusable, match=r"PyStemmer 2\.0, but PyStemmer"):
        open_analyzer(other, (1, 2))


def test_an_analyzer_is_kept_by_the_process() -> None:
    chosen = parse_settings({"analyzer": "snowball:english"})
    assert open_analyzer(chosen, (1, 2)) is open_analyzer(chosen._replace(reach_m=5), (1, 2))
    assert open_analyzer(chosen, (1, 2)) is not open_analyzer(chosen, (1, 3))
