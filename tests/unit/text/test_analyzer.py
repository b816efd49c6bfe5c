"""The analyzer kernel against the specification's expression; SipHash against its definition."""

from __future__ import annotations

import pickle
import random
import re
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from placewire.text import analyzer
from placewire.text.analyzer import Analyzer, TermSets
from placewire.text.codepoints import COMPOSITES, code_points, composing_pairs
from profiles import examples
from siphash import K0, K1, siphash13

ANALYZER = Analyzer(K0, K1)


def spec_tokens(text: str) -> list[str]:
    return re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())


def packed(
    texts: Iterable[str],
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """The texts in one buffer, with a letter between them that no text may see."""
    encoded = [text.encode() for text in texts]
    lengths = np.array([len(text) for text in encoded], np.int64)
    ends = np.cumsum(lengths + 1) - 1
    return np.frombuffer(b"z".join(encoded), np.uint8), ends - lengths, ends


def analysed(texts: Iterable[str]) -> TermSets:
    return ANALYZER.analyse(*packed(texts))


def assert_as_specified(texts: Sequence[str]) -> None:
    """Every hash by the pure-Python reference: for few texts."""
    offsets, hashes = analysed(texts)
    assert len(offsets) == len(texts) + 1
    for row, text in enumerate(texts):
        expected = sorted({siphash13(token.encode()) for token in spec_tokens(text)})
        assert hashes[offsets[row] : offsets[row + 1]].tolist() == expected, ascii(text)


def assert_all_as_specified(texts: Sequence[str]) -> None:
    """Hashes by the kernel that is checked on its own: for many texts."""
    sets = [set(spec_tokens(text)) for text in texts]
    offsets, hashes = analysed(texts)
    rows = np.repeat(np.arange(len(texts)), [len(terms) for terms in sets])
    expected = ANALYZER.hash_terms([term for terms in sets for term in terms])
    expected = expected[np.lexsort((expected, rows))]
    sizes = np.bincount(rows, minlength=len(texts))
    wrong = np.flatnonzero(np.diff(offsets) != sizes)
    assert wrong.size == 0, ascii(texts[wrong[0]])
    wrong = rows[hashes != expected]
    assert wrong.size == 0, ascii(texts[wrong[0]])


def test_hash_terms_keeps_order_and_repeats() -> None:
    terms = ["", "a", "coffee", "coffee", "straße", "a rather long term"]
    assert ANALYZER.hash_terms(terms).tolist() == [siphash13(term.encode()) for term in terms]
    assert ANALYZER.hash_terms([]).size == 0


# Analysis -----------------------------------------------------------------------------------------

SENTENCES = {
    "English": "Free coffee, 5th Ave! It's the best_coffee in N.Y.C. — don't miss it…",
    "German": "Die Straße ist GROẞ und schön; Äpfel, Öl und Übermut für 5 €.",
    "French": "À l'été, où l'œuvre naïve coûte 12 € à Besançon, ça va déjà ?",
    "Spanish": "¿Dónde está el niño? ¡Mañana será otro día en Bogotá!",
    "Portuguese": "O coração não é razão; amanhã há pão e açúcar em São Paulo.",
    "Polish": "Zażółć gęślą jaźń, źdźbło trawy w ŁODZI.",
    "Czech": "Příliš žluťoučký kůň úpěl ďábelské ódy v Plzni.",
    "Turkish": "İstanbul'da ışık ve IŞIK, Iğdır'da yağmur çok güzel.",
    "Vietnamese": "Tiếng Việt ở Hà Nội: phở bò rất ngon, ĐƯỜNG Nguyễn Huệ.",
    "Greek": "Ο ΟΔΥΣΣΕΎΣ και ο Ὅμηρος: ὁδὸς τῆς θαλάσσης, ᾠδή.",
    "Russian": "Съешь ещё этих мягких французских булок, Ёлка и Йод.",
    "Arabic": "مَرْحَبًا بكم في القاهرة، الطقسُ جميلٌ اليوم ٢٠٢٦ ﷺ",
    "Hebrew": "שָׁלוֹם עוֹלָם, בְּרֵאשִׁית בָּרָא אֱלֹהִים",
    "Persian": "می‌خواهم به تهران بروم؛ هوا خوب است ۱۲۳",
    "Hindi": "नमस्ते दुनिया, मुंबई में हिन्दी कविता पढ़ना और ज़मीन २०२६",
    "Bengali": "আমার সোনার বাংলা, আমি তোমায় ভালোবাসি।",
    "Tamil": "தமிழ் மொழி மிகவும் பழமையானது; சென்னை கோவில் யாழ்ப்பாணம்.",
    "Thai": "สวัสดีชาวโลก กรุงเทพมหานคร น้ำใจ ๑๒๓",
    "Burmese": "မြန်မာနိုင်ငံ ရန်ကုန်မြို့ ကြီးမားသည်။",
    "Korean": "안녕하세요 세계! 서울특별시 강남구 커피 한잔",
    "Japanese": "東京タワーで珈琲を飲む。ガンダム、㌔メートル、ｶﾀｶﾅ、ＡＢＣ１２３",
    "Chinese": "你好，世界！北京市的咖啡馆（免费）在哪里？",
    "Emoji": "I ❤️ NY 🗽👨‍👩‍👧‍👦 🇺🇸 1️⃣ 👍🏽 café☕️ №5 ½ x² Ⅻ ﬁne 𝓕𝓻𝓮𝓮",
}
FOCI = {
    "combining marks": "aeoAE<=>éÅạ̧çα̱ᾳ\u0300\u0301\u0307\u0308\u0323\u0327\u0328\u031b\u0338"
    "\u0340\u0344\u0345\u035c\u0483\u0591\u05bc\u05c1\u064b\u0651\u0653\u0654\u20d7\u3099\u302a ",
    "hangul": "\u1100\u1112\u1113\u115f\u1160\u1161\u1175\u1176\u11a7\u11a8\u11c2\u11c3"
    "가각힣한글ㄱㅏㄳ\uffa1\uffc2\uff9e\u302e a",
    "compatibility": "ﬁﬀ²½Ⅻ㌀㏂ｆｕｌＬ１①⒈№ﷺﷻ℡㍿𝔸ǆŉ¨´\u037a ﾊﾟﾞ\u2126\u212b\u2474 .a",
    "casing": "İıIiẞßſΣσςΆΐǰŉᾼᾳͅΙιԿևﬓﬗꭰᏸAZaz_09 ",
    "arabic": "مﻻﷲﹰﹶﱞﳲلا\u0622\u0627\u0653\u0654\u0655\u0670ئ\u064a\u200c\u0640 ",
    "indic": "कऩनऱळ्ािड़ক\u09c7\u09be\u09d7ো\u0b47\u0b56க\u0bc6\u0bbe\u0bd7\u0cbf\u0cd5\u0cc6\u0cc2"
    "\u0dd9\u0dcf\u0dca\u1025\u102e\u0f71\u0f72\u0f73\u0f74\u0fb5\U00011131\U00011127 ",
    "thai and emoji": "กขำ\u0e33\u0eb3\u0e38\u0e48้👨\u200d👩🏽\ufe0f\u20e31❤🇺🇸 ",
    "cjk": "中文豈\uf900\U0002f800々ー々か\u3099が゛〱ㇰ㊀㋿。、 a",
    "ascii": "azAZ09_@[`{/:. \x00\x7f-é",
}


@pytest.fixture
def slow_texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that took the way through Python."""
    seen: list[str] = []

    def tokens(text: str) -> list[str]:
        seen.append(text)
        return spec_tokens(text)

    monkeypatch.setattr(analyzer, "tokenize", tokens)
    return seen


def any_text() -> st.SearchStrategy[str]:
    focussed = [st.text(st.sampled_from(chars), max_size=24) for chars in FOCI.values()]
    return st.one_of(st.text(), *focussed, st.text(st.sampled_from("".join(FOCI.values()))))


@given(st.lists(any_text(), max_size=6))
@example(["\u037a\u03000"])  # a mark that is a word when folded, and one that is sorted before it
@settings(max_examples=examples(300))
def test_any_texts(texts: list[str]) -> None:
    assert_as_specified(texts)


@given(any_text())
def test_tokens_are_the_expression(text: str) -> None:
    assert ANALYZER.tokens(text) == spec_tokens(text)


def test_sentences_need_no_slow_way(slow_texts: list[str]) -> None:
    assert_as_specified([unicodedata.normalize("NFC", text) for text in SENTENCES.values()])
    assert slow_texts == []


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("change", [str, str.upper, str.lower, str.title])
def test_sentences_in_every_form(form: str, change: type[str]) -> None:
    assert_as_specified([change(unicodedata.normalize(form, text)) for text in SENTENCES.values()])


def test_composition_takes_the_slow_way(slow_texts: list[str]) -> None:
    texts = [
        "e\u0301",
        "\u1100\u1161",
        "가\u11a8",
        "=\u0338",
        "é\u0323",
        "か\u3099",
        "\u09c7\u09be",
    ]
    assert_as_specified(texts)
    assert slow_texts == texts


def test_marks_that_only_break_take_the_fast_way(slow_texts: list[str]) -> None:
    # Out of canonical order, but neither mark composes: the tokens are the same either way.
    assert_as_specified(["ב\u05bc\u05b0ר", "x\u0304\u0331y", "\u0301", "क\u093cख", "কা"])
    assert slow_texts == []


@pytest.mark.slow
def test_every_code_point_between_letters() -> None:
    # One text each where characters are assigned; far above, 64 a text with names that tell them
    # apart, since there every code point is unassigned or private.
    for first in (*range(0, 0x34000, 0x4000), 0xE0000):
        codes = [code for code in range(first, first + 0x4000) if not 0xD800 <= code < 0xE000]
        assert_all_as_specified([f"a{chr(code)}b" for code in codes])
    above = [code for code in range(0x34000, 0x110000) if not 0xE0000 <= code < 0xE4000]
    named = [f"{code:x}a{chr(code)}b{code:x}" for code in above]
    assert_all_as_specified([" ".join(named[at : at + 64]) for at in range(0, len(named), 64)])


def interesting() -> list[str]:
    """The code points that normalising, folding or composing touches."""
    pairs = composing_pairs()
    touched = {
        char
        for char in map(chr, (*range(0xA0, 0xAC00), *range(0xF900, 0x20000)))
        if unicodedata.decomposition(char)
        or unicodedata.combining(char)
        or char.casefold() != char
        or char in pairs
    }
    jamo = set(map(chr, (*range(0x1100, 0x1200), *range(0xAC00, 0xAC40))))
    return sorted(touched | jamo | set("".join(pairs.values())) | set("aZ0_ .<="))


def test_interesting_neighbours() -> None:
    rng = random.Random(20260301)
    chars = interesting()
    marks = [char for char in chars if unicodedata.combining(char)]
    assert_all_as_specified(["".join(rng.choices(chars, k=2)) for _ in range(60_000)])
    assert_all_as_specified(
        [
            rng.choice(chars) + "".join(rng.choices(marks, k=rng.randint(1, 3)))
            for _ in range(60_000)
        ]
    )


def test_every_composing_letter_before_every_composing_mark() -> None:
    pairs = composing_pairs()
    seconds = sorted(set("".join(pairs.values())) | set("\u1161\u11a8\u0345\u05bc"))
    firsts = [*pairs, *"\u1100가각x "]
    assert_all_as_specified([f"{first}{second}b" for first in firsts for second in seconds])


def test_composing_pairs_are_complete() -> None:
    scanned = {code for codes in COMPOSITES for code in codes}
    for char in map(chr, range(0x110000)):
        mapping = unicodedata.decomposition(char)
        if " " in mapping and mapping[0] != "<":
            assert ord(char) in scanned


def test_tables_have_room_for_all_of_unicode() -> None:
    table = code_points()
    for first in range(0, 0x110000, 64):
        if not table.points.entries[first]:
            table.learn(first)
    assert table.points.entries.all()
    assert max(len(table._lefts), len(table._marks)) < 512
    assert table._pool_end < table.points.pool.size
    unsafe = set(np.flatnonzero((table.points.entries >> 2) & 3 == 3).tolist())
    unsafe -= set(range(0xD800, 0xE000))
    assert unsafe >= {0x344, 0x345, 0xF73, 0xF75, 0xF81}
    assert len(unsafe) < 50  # Unicode 14 has these five; later versions add a few


def test_no_texts_and_empty_texts() -> None:
    offsets, hashes = ANALYZER.analyse(
        np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64)
    )
    assert offsets.tolist() == [0]
    assert hashes.size == 0
    offsets, hashes = analysed(["", "", " "])
    assert offsets.tolist() == [0, 0, 0, 0]
    assert hashes.dtype == np.uint64


def test_long_texts_and_long_tokens() -> None:
    numbers = " ".join(map(str, range(5_000)))
    texts = [numbers, "x" * 65_536, "é" * 30_000, "ﷺ" * 20_000, numbers.replace("1", "é")]
    assert_all_as_specified(texts)


def test_texts_that_outgrow_the_first_guess() -> None:
    assert_all_as_specified(["ﷺ"] * 3_000 + ["e\u0301 \u0301ﷺ"] * 100)


@pytest.mark.parametrize("dtype", [np.int64, np.uint32, np.int32])
def test_slices_of_a_writeable_buffer(dtype: type[np.integer]) -> None:
    raw, starts, ends = packed(["One two", "deux été", "two TWO"])
    writeable = np.array(raw)
    offsets, hashes = ANALYZER.analyse(writeable, starts.astype(dtype), ends.astype(dtype))
    assert writeable.flags.writeable
    expected = analysed(["One two", "deux été", "two TWO"])
    assert offsets.tolist() == expected.offsets.tolist() == [0, 2, 4, 5]
    assert hashes.tolist() == expected.hashes.tolist()


def test_analyzer_pickles_without_its_table() -> None:
    analysed(["été"])
    pickled = pickle.dumps(ANALYZER)
    assert len(pickled) < 500
    copy = pickle.loads(pickled)
    assert copy.hash_terms(["été"]).tolist() == ANALYZER.hash_terms(["été"]).tolist()
