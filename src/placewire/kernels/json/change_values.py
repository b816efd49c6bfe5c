"""Values of plain changes read from raw bytes: regions, words of a `where`, keywords, a k.

Each reader is given the place where its value begins and gives the place after it, or FAILED for a
value that is not plain, be it valid or not. A line feed is in `raw` after that place, so that the
reading ends.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from placewire.kernels.jit import inlined, kernel
from placewire.kernels.json.numbers import number_at_byte
from placewire.kernels.json.strings import QUOTE, Bytes, after_blanks, byte_at, spells
from placewire.kernels.text.siphash import bytes_hash
from placewire.kernels.text.term_map import NOTHING, Mapping, term_mapped
from placewire.model.regions import BOX, CIRCLE

MOST_WORDS = 256
MOST_KEYWORDS = 64
MOST_NEIGHBOURS = 1000
BLANK = 0x20

BOX_KEY, CIRCLE_KEY = b'box"', b'circle"'
LON_KEY, LAT_KEY, RADIUS_KEY = b'lon"', b'lat"', b'radius_m"'
AND, OR = b" AND ", b" OR "
BY_AND, BY_OR, BY_BLANK = 1, 2, 3

FAILED = -1

Terms = npt.NDArray[np.uint64]


@inlined
def after_colon(raw: Bytes, at: int) -> int:
    """The start of the value whose colon comes at or after `at`; FAILED if there is none."""
    at = after_blanks(raw, at)
    if byte_at(raw, at) != ord(":"):
        return FAILED
    return after_blanks(raw, at + 1)


@kernel
def region_at(raw: Bytes, at: int, figures: npt.NDArray[np.float64]) -> tuple[int, int]:
    """Read a box or circle that begins at `at` into `figures`: its kind and the place after it."""
    if byte_at(raw, at) != ord("{"):
        return 0, FAILED
    at = after_blanks(raw, at + 1)
    if byte_at(raw, at) != QUOTE:
        return 0, FAILED
    at += 1
    if spells(raw, at, BOX_KEY):
        kind = BOX
        at = _box_at(raw, after_colon(raw, at + len(BOX_KEY)), figures)
    elif spells(raw, at, CIRCLE_KEY):
        kind = CIRCLE
        at = _circle_at(raw, after_colon(raw, at + len(CIRCLE_KEY)), figures)
    else:
        return 0, FAILED
    if at < 0:
        return 0, FAILED
    at = after_blanks(raw, at)
    if byte_at(raw, at) != ord("}"):
        return 0, FAILED
    return kind, at + 1


@kernel
def _box_at(raw: Bytes, at: int, figures: npt.NDArray[np.float64]) -> int:
    """Read `[west, south, east, north]`; the place after it or FAILED."""
    if at < 0 or byte_at(raw, at) != ord("["):
        return FAILED
    for k in range(4):
        at, value = number_at_byte(raw, after_blanks(raw, at + 1))
        limit = 90.0 if k & 1 else 180.0
        if at < 0 or value < -limit or value > limit:
            return FAILED
        figures[k] = value
        at = after_blanks(raw, at)
        if byte_at(raw, at) != (ord(",") if k < 3 else ord("]")):
            return FAILED
    if figures[1] > figures[3]:
        return FAILED
    return at + 1


@kernel
def _circle_at(raw: Bytes, at: int, figures: npt.NDArray[np.float64]) -> int:
    """Read `{"lon": .., "lat": .., "radius_m": ..}`; the place after it or FAILED."""
    if at < 0 or byte_at(raw, at) != ord("{"):
        return FAILED
    seen = 0
    while True:
        at = after_blanks(raw, at + 1)
        if byte_at(raw, at) != QUOTE:
            return FAILED
        at += 1
        if spells(raw, at, LON_KEY):
            k = 0
            at += len(LON_KEY)
        elif spells(raw, at, LAT_KEY):
            k = 1
            at += len(LAT_KEY)
        elif spells(raw, at, RADIUS_KEY):
            k = 2
            at += len(RADIUS_KEY)
        else:
            return FAILED
        at = after_colon(raw, at)
        if at < 0 or seen & (1 << k):
            return FAILED
        seen |= 1 << k
        at, value = number_at_byte(raw, at)
        if at < 0:
            return FAILED
        figures[k] = value
        at = after_blanks(raw, at)
        if byte_at(raw, at) != ord(","):
            break
    if byte_at(raw, at) != ord("}") or seen != 7:
        return FAILED
    if abs(figures[0]) > 180.0 or abs(figures[1]) > 90.0 or not figures[2] > 0.0:
        return FAILED
    return at + 1


@inlined
def _is_word_byte(byte: np.uint8) -> bool:
    """Whether the byte is a lower-case letter, a digit or an underscore of ASCII."""
    return bool(0x61 <= byte <= 0x7A or 0x30 <= byte <= 0x39 or byte == 0x5F)


@inlined
def _term_of_word(
    raw: Bytes, start: int, end: int, k0: np.uint64, k1: np.uint64, mapping: Mapping | None
) -> np.uint64:
    """The term of the word raw[start:end]; NOTHING or more if it has none that is known."""
    term = bytes_hash(raw, start, end, k0, k1)
    return term if mapping is None else term_mapped(term, mapping)


@inlined
def _with_term(terms: Terms, first: int, count: int, term: np.uint64) -> int:
    """Put a term after the `count` ones at terms[first:] unless it is one of them; their number."""
    for k in range(first, first + count):
        if terms[k] == term:
            return count
    terms[first + count] = term
    return count + 1


@kernel
def words_at(
    raw: Bytes,
    at: int,
    end: int,
    k0: np.uint64,
    k1: np.uint64,
    mapping: Mapping | None,
    terms: Terms,
    first: int,
) -> tuple[int, int]:
    """Put the distinct terms of raw[at:end] at terms[first:]; their number (or FAILED), the joint.

    Words are lower-case ASCII, so each is its own only token, or what the mapping makes of it; a
    word that stands for nothing, or is not known, is not plain.
    """
    count = words = joint = 0
    while True:
        start = at
        while at < end and _is_word_byte(byte_at(raw, at)):
            at += 1
        words += 1
        if at == start or words > MOST_WORDS:
            return FAILED, 0
        term = _term_of_word(raw, start, at, k0, k1, mapping)
        if term >= NOTHING:
            return FAILED, 0
        count = _with_term(terms, first, count, term)
        if at == end:
            return count, joint
        if byte_at(raw, at) != BLANK:
            return FAILED, 0
        if spells(raw, at, AND):
            found = BY_AND
            at += len(AND)
        elif spells(raw, at, OR):
            found = BY_OR
            at += len(OR)
        else:
            found = BY_BLANK
            at += 1
        if joint and found != joint:
            return FAILED, 0
        joint = found


@kernel
def keywords_at(
    raw: Bytes,
    at: int,
    k0: np.uint64,
    k1: np.uint64,
    mapping: Mapping | None,
    terms: Terms,
    first: int,
    starts: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Read a list of words, its distinct terms to terms[first:]: the place after, their number.

    As in `words_at`, a word is its own only token. Where each term's word begins goes to `starts`.
    """
    if byte_at(raw, at) != ord("["):
        return FAILED, 0
    count = words = 0
    while True:
        at = after_blanks(raw, at + 1)
        if byte_at(raw, at) != QUOTE:
            return FAILED, 0
        at += 1
        start = at
        while _is_word_byte(byte_at(raw, at)):
            at += 1
        words += 1
        if at == start or byte_at(raw, at) != QUOTE or words > MOST_KEYWORDS:
            return FAILED, 0
        starts[count] = start
        term = _term_of_word(raw, start, at, k0, k1, mapping)
        if term >= NOTHING:
            return FAILED, 0
        count = _with_term(terms, first, count, term)
        at = after_blanks(raw, at + 1)
        if byte_at(raw, at) != ord(","):
            break
    if byte_at(raw, at) != ord("]"):
        return FAILED, 0
    return at + 1, count


@inlined
def _precedes(raw: Bytes, one: int, other: int) -> bool:
    """Whether the word that begins at `one` comes before the other, a different one.

    The quote after a word is less than any byte of a word, so the shorter comes first.
    """
    while byte_at(raw, one) == byte_at(raw, other):
        one += 1
        other += 1
    return bool(byte_at(raw, one) < byte_at(raw, other))


@kernel
def sort_terms(
    raw: Bytes, starts: npt.NDArray[np.int64], terms: Terms, first: int, count: int
) -> None:
    """Put the terms at terms[first:] in code-point order of their words, which begin at `starts`.

    They are few, so each is put in among those before it.
    """
    for k in range(1, count):
        start, term = starts[k], terms[first + k]
        place = k
        while place > 0 and _precedes(raw, start, starts[place - 1]):
            starts[place] = starts[place - 1]
            terms[first + place] = terms[first + place - 1]
            place -= 1
        starts[place] = start
        terms[first + place] = term


@inlined
def k_at(raw: Bytes, at: int) -> tuple[int, int]:
    """Read an integer from 1 to MOST_NEIGHBOURS: the place after it, and it.

    The caller judges the byte that follows, which a fraction or an exponent would begin.
    """
    k = 0
    if byte_at(raw, at) == ord("0"):
        return FAILED, 0
    while ord("0") <= byte_at(raw, at) <= ord("9") and k <= MOST_NEIGHBOURS:
        k = 10 * k + np.int64(byte_at(raw, at) - 48)
        at += 1
    if k < 1 or k > MOST_NEIGHBOURS:
        return FAILED, 0
    return at, k
