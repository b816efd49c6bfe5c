"""Properties of code points for the kernels of analyzers.

Normalising a text is normalising its code points one by one, except where neighbours interact: a
mark composes with the letter before it, or is sorted before a mark that the letter has absorbed.
`CodePointTable` detects where that can happen; only such texts are analysed in Python.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from threading import Lock

import numpy as np

from placewire.kernels.text.tokens import (
    CONTEXT_SHIFT,
    CONTEXTS,
    GROWTH_BYTES,
    GROWTH_TERMS,
    JOINER,
    MANNER_SHIFT,
    MAPPED,
    MARK,
    MARKS,
    POOL_BREAK,
    POOL_BYTES,
    POOL_END,
    POOL_SHIFT,
    SEPARATOR,
    STARTER,
    UNSAFE,
    WORD,
    CodePoints,
)

BLOCK = 64  # code points learnt together: those whose UTF-8 differs only in the last byte
COMPOSITES = (range(0xA0, 0x3400), range(0xF900, 0x20000))  # Hangul is composed by rule
LEADS, VOWELS, TAILS = range(0x1100, 0x1113), range(0x1161, 0x1176), range(0x11A8, 0x11C3)
SYLLABLES = range(0xAC00, 0xD7A4)
SURROGATES = range(0xD800, 0xE000)


class CodePointTable:
    """The code points that this process has seen, filled a block at a time."""

    def __init__(self) -> None:
        self.points = CodePoints(
            np.zeros(0x110000, np.int32),
            np.zeros(POOL_BYTES, np.uint8),
            np.zeros((CONTEXTS, MARKS), np.uint8),
        )
        self._lock = Lock()
        self._followers = composing_pairs()
        self._seconds = frozenset("".join(self._followers.values())) | set(
            map(chr, (*VOWELS, *TAILS))
        )
        # Starters that compose with the same marks share a context, represented by one of them.
        self._alike = {marks: first for first, marks in self._followers.items()}
        self._lefts: dict[tuple[str, int], int] = {("", 0): 0}
        self._marks: dict[tuple[str, int], int] = {("", 0): 0}
        self._pooled: dict[bytes, int] = {}
        self._pool_end = 0
        for first in range(0, 0x80, BLOCK):
            self.learn(first)

    def learn(self, code: int) -> None:
        """Fill the entries of the block around `code`."""
        with self._lock:
            first = code - code % BLOCK
            # Write entries last: other threads use an entry once it is not zero.
            self.points.entries[first : first + BLOCK] = [
                self._entry(chr(point)) for point in range(first, first + BLOCK)
            ]

    def _entry(self, char: str) -> int:
        unsafe = SEPARATOR | UNSAFE << MANNER_SHIFT
        if ord(char) in SURROGATES:
            return unsafe
        decomposed = unicodedata.normalize("NFKD", char)
        composed = unicodedata.normalize("NFKC", char)
        folded = composed.casefold()
        action, pooled = self._action(char, folded)
        manner, context = self._manner(decomposed, composed, action)
        width = len(char.encode())
        if (
            manner == UNSAFE
            or pooled is None
            or context is None
            or len(folded.encode()) > GROWTH_BYTES * width
            or most_terms(folded) > GROWTH_TERMS * width
        ):
            return unsafe
        return action | manner << MANNER_SHIFT | context << CONTEXT_SHIFT | pooled << POOL_SHIFT

    def _action(self, char: str, folded: str) -> tuple[int, int | None]:
        """Return the action of a code point and the position of its text in the pool."""
        if folded == char:
            return WORD if is_word(char) else SEPARATOR, 0
        runs = re.findall(r"\w+|\W", folded)
        if not any(map(is_word, runs)):
            return SEPARATOR, 0
        record = b"".join(
            bytes([len(run.encode())]) + run.encode() if is_word(run) else bytes([POOL_BREAK])
            for run in runs
        ) + bytes([POOL_END])
        place = self._pooled.get(record)
        if place is None:
            place = self._pool_end
            if place + len(record) > POOL_BYTES:
                return MAPPED, None
            self.points.pool[place : place + len(record)] = np.frombuffer(record, np.uint8)
            self._pooled[record] = place
            self._pool_end += len(record)
        return MAPPED, place

    def _manner(self, decomposed: str, composed: str, action: int) -> tuple[int, int | None]:
        """Return how a code point combines with its left neighbours, and its own context."""
        head = decomposed[0]
        order = unicodedata.combining(head)
        if order or head in self._seconds:
            # A mark that is only a break may be reordered with other such marks; a word may not.
            if len(decomposed) > 1 or head in self._followers or (order and action != SEPARATOR):
                return UNSAFE, 0
            second = head if head in self._seconds else ""
            return MARK if order else JOINER, self._context(self._marks, (second, order))
        starters = [char for char in composed if not unicodedata.combining(char)]
        tail = composed[composed.rindex(starters[-1]) + 1 :]
        absorbed = not decomposed.endswith(tail) or (
            len(decomposed) > len(tail) and unicodedata.combining(decomposed[-len(tail) - 1]) > 0
        )
        # A mark that folds to a word keeps its place among breaks: U+037A ends with such a mark.
        worded = any(re.search(r"\w", mark.casefold()) for mark in tail)
        guard = unicodedata.combining(decomposed[-1]) if absorbed or worded else 0
        return STARTER, self._context(self._lefts, (self._composing(starters[-1]), guard))

    def _composing(self, starter: str) -> str:
        """Return the representative of starters that compose with the same marks, or nothing."""
        code = ord(starter)
        if code in LEADS:
            return chr(LEADS[0])
        if code in SYLLABLES:
            return "" if (code - SYLLABLES[0]) % (len(TAILS) + 1) else chr(SYLLABLES[0])
        return self._alike[self._followers[starter]] if starter in self._followers else ""

    def _context(self, known: dict[tuple[str, int], int], key: tuple[str, int]) -> int | None:
        """Return the number of a context; a new one fills its row or column of conflicts."""
        if key not in known:
            if len(known) == CONTEXTS:
                return None
            known[key] = len(known)
            new = {key: known[key]}
            for (first, guard), left in (new if known is self._lefts else self._lefts).items():
                for (second, order), mark in (new if known is self._marks else self._marks).items():
                    composes = first and second and is_composed(first + second)
                    self.points.conflicts[left, mark] = bool(composes) or 0 < order < guard
        return known[key]


def is_word(run: str) -> bool:
    """Return true if a run of similar characters consists of word characters."""
    return run[0].isalnum() or run[0] == "_"


def most_terms(folded: str) -> int:
    """Return the most terms that a text can have: its words, or pairs of its characters."""
    return max(len(re.findall(r"\w+", folded)), sum(map(is_cjk, folded)))


def is_composed(pair: str) -> bool:
    """Return true if two adjacent characters compose into one."""
    return len(unicodedata.normalize("NFC", pair)) == 1


def composing_pairs() -> dict[str, str]:
    """Map each character to the following characters that it composes with, in code-point order."""
    pairs: dict[str, list[str]] = {}
    for codes in COMPOSITES:
        for char in map(chr, codes):
            parts = unicodedata.decomposition(char).split()
            if len(parts) == 2 and parts[0][0] != "<":
                first, second = (chr(int(part, 16)) for part in parts)
                if unicodedata.normalize("NFC", first + second) == char:
                    pairs.setdefault(first, []).append(second)
    return {first: "".join(sorted(seconds)) for first, seconds in pairs.items()}


@cache
def code_points() -> CodePointTable:
    """Return the table of this process."""
    return CodePointTable()


CJK = (
    (0x1100, 0x11FF),  # Hangul: letters
    (0x3000, 0x30FF),  # iteration marks, Hangzhou numerals, hiragana, katakana
    (0x31F0, 0x31FF),  # katakana for Ainu
    (0x3400, 0x4DBF),  # Han: extension A
    (0x4E00, 0x9FFF),  # Han
    (0xA960, 0xA97F),  # Hangul: old initials
    (0xAC00, 0xD7FF),  # Hangul: syllables, old vowels and finals
    (0xF900, 0xFAFF),  # Han: the few compatibility ideographs that stay as they are
    (0x16FE3, 0x16FE3),  # Han: an old iteration mark
    (0x1AFF0, 0x1B16F),  # kana: old and small ones
    (0x20000, 0x3FFFF),  # Han: all further extensions
)
CJK_SCRIPTS = np.array(CJK, np.int32)
CJK_SCRIPTS.flags.writeable = False


def is_cjk(char: str) -> bool:
    """Return true if a character is in the CJK scripts."""
    return any(first <= ord(char) <= last for first, last in CJK)


def cut_token(token: str) -> Iterator[str]:
    """Cut a token into overlapping pairs of CJK characters, single ones, and the text between."""
    run = ""
    cjk = False
    for char in token:
        if run and is_cjk(char) == cjk:
            run += char
            continue
        yield from cut_run(run, cjk)
        run, cjk = char, is_cjk(char)
    yield from cut_run(run, cjk)


def cut_run(run: str, cjk: bool) -> Iterator[str]:
    """Return a run unchanged, or cut into overlapping pairs."""
    if not cjk or len(run) < 3:
        yield from [run] if run else []
    else:
        yield from map("".join, pairwise(run))
