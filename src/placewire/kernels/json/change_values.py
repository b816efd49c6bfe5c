"""Read the values of plain changes from raw bytes: regions, words of a `where`, keywords, `k`.

A reader takes the position where its value begins and returns the position after it, or FAILED if
the value is not plain, whether valid or not. `raw` has a line feed after that position, which ends
every loop.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from placewire.kernels.bytes import Bytes, byte_at
from placewire.kernels.jit import kernel, subkernel
from placewire.kernels.json.numbers import number_at_byte
from placewire.kernels.json.strings import QUOTE, skip_blanks, starts_with
from placewire.kernels.text.siphash import bytes_hash
from placewire.kernels.text.term_map import NOTHING, TermMap, map_term
from placewire.model.events import MOST_K, MOST_KEYWORDS, MOST_TERMS
from placewire.model.regions import BOX, CIRCLE

BLANK = 0x20

BOX_KEY, CIRCLE_KEY = b'box"', b'circle"'
LON_KEY, LAT_KEY, RADIUS_KEY = b'lon"', b'lat"', b'radius_m"'
AND, OR = b" AND ", b" OR "
BY_AND, BY_OR, BY_BLANK = 1, 2, 3

FAILED = -1

Terms = npt.NDArray[np.uint64]


@subkernel
def skip_colon(raw: Bytes, at: int) -> int:
    """Skip a colon and the blanks around it; return the start of the value or FAILED."""
    at = skip_blanks(raw, at)
    if byte_at(raw, at) != ord(":"):
        return FAILED
    return skip_blanks(raw, at + 1)


@kernel
def region_at(raw: Bytes, at: int, numbers: npt.NDArray[np.float64]) -> tuple[int, int]:
    """Read a box or circle at `at` into `numbers`; return its kind and the position after it."""
    if byte_at(raw, at) != ord("{"):
        return 0, FAILED
    at = skip_blanks(raw, at + 1)
    if byte_at(raw, at) != QUOTE:
        return 0, FAILED
    at += 1
    if starts_with(raw, at, BOX_KEY):
        kind = BOX
        at = _box_at(raw, skip_colon(raw, at + len(BOX_KEY)), numbers)
    elif starts_with(raw, at, CIRCLE_KEY):
        kind = CIRCLE
        at = _circle_at(raw, skip_colon(raw, at + len(CIRCLE_KEY)), numbers)
    else:
        return 0, FAILED
    if at < 0:
        return 0, FAILED
    at = skip_blanks(raw, at)
    if byte_at(raw, at) != ord("}"):
        return 0, FAILED
    return kind, at + 1


@kernel
def _box_at(raw: Bytes, at: int, numbers: npt.NDArray[np.float64]) -> int:
    """Read `[west, south, east, north]`; return the position after it or FAILED."""
    if at < 0 or byte_at(raw, at) != ord("["):
        return FAILED
    for k in range(4):
        at, value = number_at_byte(raw, skip_blanks(raw, at + 1))
        limit = 90.0 if k & 1 else 180.0
        if at < 0 or value < -limit or value > limit:
            return FAILED
        numbers[k] = value
        at = skip_blanks(raw, at)
        if byte_at(raw, at) != (ord(",") if k < 3 else ord("]")):
            return FAILED
    if numbers[1] > numbers[3]:
        return FAILED
    return at + 1


@kernel
def _circle_at(raw: Bytes, at: int, numbers: npt.NDArray[np.float64]) -> int:
    """Read `{"lon": .., "lat": .., "radius_m": ..}`; return the position after it or FAILED."""
    if at < 0 or byte_at(raw, at) != ord("{"):
        return FAILED
    seen = 0
    while True:
        at = skip_blanks(raw, at + 1)
        if byte_at(raw, at) != QUOTE:
            return FAILED
        at += 1
        if starts_with(raw, at, LON_KEY):
            k = 0
            at += len(LON_KEY)
        elif starts_with(raw, at, LAT_KEY):
            k = 1
            at += len(LAT_KEY)
        elif starts_with(raw, at, RADIUS_KEY):
            k = 2
            at += len(RADIUS_KEY)
        else:
            return FAILED
        at = skip_colon(raw, at)
        if at < 0 or seen & (1 << k):
            return FAILED
        seen |= 1 << k
        at, value = number_at_byte(raw, at)
        if at < 0:
            return FAILED
        numbers[k] = value
        at = skip_blanks(raw, at)
        if byte_at(raw, at) != ord(","):
            break
    if byte_at(raw, at) != ord("}") or seen != 7:
        return FAILED
    if abs(numbers[0]) > 180.0 or abs(numbers[1]) > 90.0 or not numbers[2] > 0.0:
        return FAILED
    return at + 1


@subkernel
def _is_word_byte(byte: np.uint8) -> bool:
    """Return true if the byte is an ASCII lower-case letter, digit or underscore."""
    return bool(0x61 <= byte <= 0x7A or 0x30 <= byte <= 0x39 or byte == 0x5F)


@subkernel
def _term_of_word(
    raw: Bytes, start: int, end: int, k0: np.uint64, k1: np.uint64, mapping: TermMap | None
) -> np.uint64:
    """Return the term of the word raw[start:end]; NOTHING or more if there is no known term."""
    term = bytes_hash(raw, start, end, k0, k1)
    return term if mapping is None else map_term(term, mapping)


@subkernel
def _with_term(terms: Terms, first: int, count: int, term: np.uint64) -> int:
    """Append a term to the `count` terms at terms[first:] unless present; return the new count."""
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
    mapping: TermMap | None,
    terms: Terms,
    first: int,
) -> tuple[int, int]:
    """Write the distinct terms of raw[at:end] to terms[first:]; return their number and operator.

    Words are lower-case ASCII, so each is one token, which `mapping` may replace. The number is
    FAILED if a word maps to nothing or is unknown.
    """
    count = words = operator = 0
    while True:
        start = at
        while at < end and _is_word_byte(byte_at(raw, at)):
            at += 1
        words += 1
        if at == start or words > MOST_TERMS:
            return FAILED, 0
        term = _term_of_word(raw, start, at, k0, k1, mapping)
        if term >= NOTHING:
            return FAILED, 0
        count = _with_term(terms, first, count, term)
        if at == end:
            return count, operator
        if byte_at(raw, at) != BLANK:
            return FAILED, 0
        if starts_with(raw, at, AND):
            found = BY_AND
            at += len(AND)
        elif starts_with(raw, at, OR):
            found = BY_OR
            at += len(OR)
        else:
            found = BY_BLANK
            at += 1
        if operator and found != operator:
            return FAILED, 0
        operator = found


@kernel
def keywords_at(
    raw: Bytes,
    at: int,
    k0: np.uint64,
    k1: np.uint64,
    mapping: TermMap | None,
    terms: Terms,
    first: int,
    starts: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Write the distinct terms of a list of words to terms[first:]; return position and number.

    Words are as in `words_at`. `starts` receives the position of each term's word.
    """
    if byte_at(raw, at) != ord("["):
        return FAILED, 0
    count = words = 0
    while True:
        at = skip_blanks(raw, at + 1)
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
        at = skip_blanks(raw, at + 1)
        if byte_at(raw, at) != ord(","):
            break
    if byte_at(raw, at) != ord("]"):
        return FAILED, 0
    return at + 1, count


@subkernel
def _precedes(raw: Bytes, one: int, other: int) -> bool:
    """Return true if the word that begins at `one` sorts before the different word at `other`.

    The quote after a word is less than any byte of a word, so a prefix sorts first.
    """
    while byte_at(raw, one) == byte_at(raw, other):
        one += 1
        other += 1
    return bool(byte_at(raw, one) < byte_at(raw, other))


@kernel
def sort_terms(
    raw: Bytes, starts: npt.NDArray[np.int64], terms: Terms, first: int, count: int
) -> None:
    """Sort the terms at terms[first:] by the code points of their words, which begin at `starts`.

    Uses insertion sort, because there are few.
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


@subkernel
def k_at(raw: Bytes, at: int) -> tuple[int, int]:
    """Read an integer from 1 to MOST_K; return the position after it and its value.

    The caller checks the byte that follows, which may begin a fraction or an exponent.
    """
    k = 0
    if byte_at(raw, at) == ord("0"):
        return FAILED, 0
    while ord("0") <= byte_at(raw, at) <= ord("9") and k <= MOST_K:
        k = 10 * k + np.int64(byte_at(raw, at) - 48)
        at += 1
    if k < 1 or k > MOST_K:
        return FAILED, 0
    return at, k
