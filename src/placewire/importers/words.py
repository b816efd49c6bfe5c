"""Split a query's text as Elasticsearch's standard analyzer does, and analyse each word.

The analyzers differ: `don't` is one word in Elasticsearch and two terms in Placewire. Such a word
becomes all of its terms. Where no translation is exact, as in scripts without spaces, the query is
refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from placewire.importers.report import Untranslatable, shown
from placewire.model.expression import ALL, Node
from placewire.text.query import Tokens

NO_SPACES = "a script without spaces has no visible word boundaries"
SYMBOLS = "a symbol is a word there, and none here"
PARTS = "a character is part of a word here, and of none there"
UNSTABLE = "a word that changes each time it is analysed"

# Scripts whose words the standard analyzer cuts in its own way: Thai to Myanmar and Khmer, kana
# without katakana, ideographs.
UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x19E0, 0x19FF), (0x3005, 0x3007),
    (0x3040, 0x309F), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),
)  # fmt: skip

# On a text with `a` for each letter and `0` for each digit: a dot or an apostrophe between letters
# or digits, a colon between letters, a comma or semicolon between digits join what they are
# between.
_WORD = re.compile(r"[a0_]+(?:(?:(?<=a)[.':](?=a)|(?<=0)[.',;](?=0))[a0_]+)*")
_JOINTS = {
    **dict.fromkeys(".․﹒．", "."),
    **dict.fromkeys("'’‘＇", "'"),
    **dict.fromkeys(":·\u0387՟״‧︓﹕：", ":"),
    **dict.fromkeys(",،؍٬߸⁄︐﹐，", ","),
    **dict.fromkeys(";\u037e։︔﹔；", ";"),
}
# A number that is not a digit, such as ² or ½, next to a part of a word.
_PART = re.compile(r"[a0_m]n|n[a0_m]")


class Word(NamedTuple):
    """One word of theirs, and what it is here."""

    written: str
    node: Node

    @property
    def is_same(self) -> bool:
        """Whether it is one word here too."""
        return isinstance(self.node, str)

    @property
    def lowered(self) -> str:
        """The word as it is there, each letter in lower case by itself."""
        return "".join("i" if letter == "İ" else letter.lower() for letter in self.written)

    @property
    def is_folded(self) -> bool:
        """Whether its letters differ between there and here, apart from what is no word here."""
        if "İ" in self.written:  # `i` there; `i` and a dot above here, and the dot ends a word
            return True
        terms = (self.node,) if isinstance(self.node, str) else self.node[1]
        return "".join(map(str, terms)) != re.sub(r"\W", "", self.lowered)


class WordReader:
    """Splits texts; words repeat, so each is looked at once."""

    def __init__(self, tokens: Tokens) -> None:
        self.analyse: Callable[[str], tuple[str, ...]] = lru_cache(32_768)(
            lambda word: tuple(tokens(word))
        )

    def read(self, text: str, where: str) -> list[Word]:
        """The words of a text, in order; raises Untranslatable."""
        ascii_text = text.isascii()
        outline = text.translate(_ASCII) if ascii_text else "".join(map(self.outline, text))
        if "x" in outline:
            raise Untranslatable(NO_SPACES, where, shown(text))
        if "s" in outline:
            raise Untranslatable(SYMBOLS, where, shown(text))
        if _PART.search(outline):
            raise Untranslatable(PARTS, where, shown(text))
        # A mark belongs to the character before it.
        outline = re.sub(r"([a0])m+", lambda run: run[1] * len(run[0]), outline)
        found = []
        for match in _WORD.finditer(outline):
            written = text[match.start() : match.end()]
            terms = self.analyse(written)
            if not terms:
                continue
            for term in terms:
                if self.analyse(term) != (term,):
                    raise Untranslatable(UNSTABLE, where, shown(written))
            found.append(Word(written, terms[0] if len(terms) == 1 else (ALL, terms)))
        return found

    @staticmethod
    @lru_cache(8_192)
    def outline(character: str) -> str:
        """What the character is to a word: `a`, `0`, `_`, a joint, `m`, `n`, `x`, `s` or space."""
        code = ord(character)
        if any(first <= code <= last for first, last in UNSPACED):
            return "x"
        category = unicodedata.category(character)
        if category[0] == "L" or category == "Nl":
            return "a"
        if category == "Nd":
            return "0"
        if category[0] == "M" or category == "Cf":
            return "m"
        if category == "Pc":
            return "_"
        if category == "So":
            return "s"
        if category == "No":
            return "n"
        return _JOINTS.get(character, " ")


_ASCII = {
    code: "a" if chr(code).isalpha() else "0" if chr(code).isdigit() else chr(code)
    for code in range(128)
}
_ASCII |= {
    code: " " for code in range(128) if chr(code) not in "_.':,;" and not chr(code).isalnum()
}
