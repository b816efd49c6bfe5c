"""Han, kana and Hangul: scripts that are written without blanks, or with few, and cut into pairs.

Of each block only the word characters count, so a block may be named whole although some of it is
punctuation. What normalising turns into other characters (half-width kana, squared words) is not
here: it is gone before anything is cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

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
    """Whether a character is of these scripts."""
    return any(first <= ord(char) <= last for first, last in CJK)


def cut_token(token: str) -> Iterator[str]:
    """The pieces of a token: pairs of each run of CJK characters, or one alone; what is between."""
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
    """A run as it is, or in pairs."""
    if not cjk or len(run) < 3:
        yield from [run] if run else []
    else:
        yield from map("".join, pairwise(run))
