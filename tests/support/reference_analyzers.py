"""Reference analyzers written from docs/reference/analyzers.md, sharing no code."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from typing import Any

from hypothesis import strategies as st

from oracle import default_analyzer
from placewire.model.settings import Settings, parse_settings
from placewire.text.analyzer import Analyzer, open_analyzer

Tokens = Callable[[str], list[str]]

# How Unicode names the word characters of Han, hiragana, katakana and Hangul.
CJK_NAMES = (
    "CJK UNIFIED IDEOGRAPH-",
    "CJK COMPATIBILITY IDEOGRAPH-",
    "HIRAGANA ",
    "KATAKANA ",
    "HENTAIGANA ",
    "KATAKANA-HIRAGANA ",
    "VERTICAL KANA ",
    "VERTICAL IDEOGRAPHIC ",
    "HANGUL ",
    "HANGZHOU NUMERAL ",
    "IDEOGRAPHIC ITERATION MARK",
    "IDEOGRAPHIC CLOSING MARK",
    "IDEOGRAPHIC NUMBER ZERO",
    "MASU MARK",
    "OLD CHINESE ITERATION MARK",
)


@cache
def is_cjk(char: str) -> bool:
    return unicodedata.name(char, "").startswith(CJK_NAMES)


def cjk_bigrams(text: str) -> list[str]:
    terms = []
    for token in default_analyzer(text):
        at = 0
        while at < len(token):
            end = at
            while end < len(token) and is_cjk(token[end]) == is_cjk(token[at]):
                end += 1
            if is_cjk(token[at]) and end - at > 1:
                terms += [token[k : k + 2] for k in range(at, end - 1)]
            else:
                terms.append(token[at:end])
            at = end
    return terms


def stemmer(language: str) -> Tokens:
    """Snowball's own Python; what compiles the same algorithms to C is what is tested."""
    module = import_module(f"snowballstemmer.{language}_stemmer")
    name = "".join(part.capitalize() for part in language.split("_")) + "Stemmer"
    stem = getattr(module, name)().stemWord

    @cache
    def stemmed(word: str) -> str:
        return stem(word) or word

    return lambda text: [stemmed(word) for word in default_analyzer(text)]


def without(words: Iterable[str], tokens: Tokens) -> Tokens:
    """Tokens less those of stop words."""
    stops = {token for word in words for token in tokens(word)}
    return lambda text: [token for token in tokens(text) if token not in stops]


def stemmed_without(words: Iterable[str], language: str) -> Tokens:
    """Stop words are left out before the rest is stemmed."""
    plain, stem = without(words, default_analyzer), stemmer(language)
    return lambda text: [stem(token)[0] for token in plain(text)]


ENGLISH = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it",
    "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they",
    "this", "to", "was", "will", "with",
]  # fmt: skip

# Settings beside what they mean.
ANALYZERS: dict[str, tuple[dict[str, Any], Tokens]] = {
    "default": ({"analyzer": "default"}, default_analyzer),
    "cjk-bigram": ({"analyzer": "cjk-bigram"}, cjk_bigrams),
    "english": ({"analyzer": "snowball:english"}, stemmer("english")),
    "turkish": ({"analyzer": "snowball:turkish"}, stemmer("turkish")),
    "stops": ({"stop_words": "english"}, without(ENGLISH, default_analyzer)),
    "cjk-stops": (
        {"analyzer": "cjk-bigram", "stop_words": ["です", "THE", "こちら"]},
        without(["です", "THE", "こちら"], cjk_bigrams),
    ),
    "stemmed-stops": (
        {"analyzer": "snowball:english", "stop_words": ["the", "Not", "don't", "cafe\u0301"]},
        stemmed_without(["the", "Not", "don't", "cafe\u0301"], "english"),
    ),
}


def opened(name: str, key: tuple[int, int] = (3, 5)) -> tuple[Analyzer, Tokens]:
    """An analyzer and its reference."""
    table, reference = ANALYZERS[name]
    settings: Settings = parse_settings(table)
    return open_analyzer(settings, key), reference


# Words that analyzers treat in different ways: other forms of one word, scripts that meet in one
# token, half-width and decomposed forms, marks, emoji.
WORDS = [
    "the", "Not", "a", "coffee", "coffees", "COFFEE'S", "running", "runs", "Runner", "relational",
    "don't", "skies", "sky", "café", "cafe\u0301", "cafés", "naïve", "straße", "STRASSE",
    "kitaplar", "kitap", "İstanbul", "ıstanbul", "东京", "東京", "東京都", "東京タワーへ", "京",
    "都庁tokyo東京", "ﾄｳｷｮｳ", "ﾊﾞｽ", "ばす", "は\u3099す", "です", "こちらです", "カフェー", "時々",
    "〇〇", "서울", "서울역", "\u1109\u1165울", "서", "㍿", "㌖", "豈\uf900", "𠮷野家", "x東",
    "東x", "２０２６年", "1月", "هذا", "улицы", "улица", "_", "☕", "👨\u200d👩\u200d👧", "東☕京",
    "'",
]  # fmt: skip

MARKS = " \n.,-\u3000・。゛\u0301\u3099\u11a8\u302a々ーㇰ〱〡ﾞｰﾡ\U0001b001"
ALPHABET = sorted({*"".join(WORDS), *MARKS})


def texts() -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join),
        st.lists(st.sampled_from(WORDS), max_size=5).map("".join),
        st.text(st.sampled_from(ALPHABET), max_size=24),
        st.text(max_size=24),
    )
