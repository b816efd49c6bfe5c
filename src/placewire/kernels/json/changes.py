"""Read plain subscribes and unsubscribes from a block of JSON Lines.

A subscribe is plain if it has known keys, no escapes and no `data`, and either a box or circle and
a `where` of lower-case words joined by one operator, or a point and lower-case keywords. Every rule
of the format is checked. All other lines are *slow*: the strict decoder reads them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from placewire.kernels.bytes import Bytes, byte_at
from placewire.kernels.jit import kernel, read_only, subkernel
from placewire.kernels.json.change_values import (
    BY_AND,
    BY_OR,
    FAILED,
    Terms,
    k_at,
    keywords_at,
    region_at,
    skip_colon,
    sort_terms,
    words_at,
)
from placewire.kernels.json.numbers import number_at_byte
from placewire.kernels.json.objects import LINE_FEED, Positions
from placewire.kernels.json.strings import QUOTE, skip_blanks, starts_with, string_end
from placewire.kernels.json.timestamps import timestamp_of_bytes
from placewire.kernels.text.term_map import TermMap
from placewire.model.events import MOST_ID_CHARACTERS, MOST_KEYWORDS, MOST_TERMS
from placewire.model.expression import ACCEPT, COVER_ALL, COVER_ANY, COVER_ONE, REJECT
from placewire.model.kinds import BOOLEAN, NEAREST, RELEVANT
from placewire.model.regions import EVERYWHERE
from placewire.model.subscriptions import NEVER_US

SUBSCRIBE_WORD, UNSUBSCRIBE_WORD = b'subscribe"', b'unsubscribe"'
ANY_WORD, ALL_WORD = b'any"', b'all"'

TYPE, ID, TS, KIND, EXPIRES, REGION, WHERE = 1, 2, 4, 8, 16, 32, 64
LON, LAT, KEYWORDS, K, MODE, WITHIN, ALPHA, REACH = (1 << n for n in range(7, 15))
UNSUBSCRIBE_KEYS = TYPE | ID | TS
SUBSCRIBE_KEYS = TYPE | ID | TS | KIND
RANKED_KEYS = LON | LAT | KEYWORDS | K
NUMBER_KEYS = LON | LAT | WITHIN | ALPHA | REACH

# The kinds that the fast path reads, whose subscriptions usually have plain values: name and
# number, required keys, allowed keys, and whether each term has a weight. Weighted terms are in
# code-point order, and all are in the cover. The strict decoder reads every other kind.
KIND_WORDS = (b'boolean"', b'nearest"', b'relevant"')
KIND_NUMBERS = (BOOLEAN, NEAREST, RELEVANT)
NEEDED_KEYS = (0, RANKED_KEYS, RANKED_KEYS | ALPHA)
OPTIONAL_KEYS = (REGION | WHERE, MODE | WITHIN, REACH)
WEIGHS_TERMS = (False, False, True)

TYPE_KEY, ID_KEY, TS_KEY, KIND_KEY = b'type"', b'id"', b'ts"', b'kind"'
EXPIRES_KEY, REGION_KEY, WHERE_KEY = b'expires"', b'region"', b'where"'
LON_KEY, LAT_KEY, KEYWORDS_KEY, K_KEY = b'lon"', b'lat"', b'keywords"', b'k"'
MODE_KEY, WITHIN_KEY, ALPHA_KEY, REACH_KEY = b'mode"', b'within_m"', b'alpha"', b'reach_m"'


@subkernel
def key_at(raw: Bytes, at: int) -> tuple[int, int]:
    """Return the bit of the key at `at`, 0 if unknown, and the position after its quote."""
    first = byte_at(raw, at)
    if first == ord("t"):
        if starts_with(raw, at, TYPE_KEY):
            return TYPE, at + len(TYPE_KEY)
        if starts_with(raw, at, TS_KEY):
            return TS, at + len(TS_KEY)
    elif first == ord("i"):
        if starts_with(raw, at, ID_KEY):
            return ID, at + len(ID_KEY)
    elif first == ord("k"):
        if starts_with(raw, at, KIND_KEY):
            return KIND, at + len(KIND_KEY)
        if starts_with(raw, at, KEYWORDS_KEY):
            return KEYWORDS, at + len(KEYWORDS_KEY)
        if starts_with(raw, at, K_KEY):
            return K, at + len(K_KEY)
    elif first == ord("r"):
        if starts_with(raw, at, REGION_KEY):
            return REGION, at + len(REGION_KEY)
        if starts_with(raw, at, REACH_KEY):
            return REACH, at + len(REACH_KEY)
    elif first == ord("w"):
        if starts_with(raw, at, WHERE_KEY):
            return WHERE, at + len(WHERE_KEY)
        if starts_with(raw, at, WITHIN_KEY):
            return WITHIN, at + len(WITHIN_KEY)
    elif first == ord("l"):
        if starts_with(raw, at, LON_KEY):
            return LON, at + len(LON_KEY)
        if starts_with(raw, at, LAT_KEY):
            return LAT, at + len(LAT_KEY)
    elif first == ord("m"):
        if starts_with(raw, at, MODE_KEY):
            return MODE, at + len(MODE_KEY)
    elif first == ord("a"):
        if starts_with(raw, at, ALPHA_KEY):
            return ALPHA, at + len(ALPHA_KEY)
    elif first == ord("e") and starts_with(raw, at, EXPIRES_KEY):
        return EXPIRES, at + len(EXPIRES_KEY)
    return 0, at


@subkernel
def kind_at(raw: Bytes, at: int) -> int:
    """Return the table position of the kind whose name begins at `at`; FAILED if unknown."""
    for k in range(len(KIND_NUMBERS)):
        if starts_with(raw, at, KIND_WORDS[k]):
            return k
    return FAILED


@subkernel
def keys_complete(seen: int, subscribes: bool, place: int) -> bool:
    """Whether the keys are those of an unsubscribe, or of a subscribe of the kind at `place`."""
    if not subscribes:
        return seen == UNSUBSCRIBE_KEYS
    if seen & SUBSCRIBE_KEYS != SUBSCRIBE_KEYS:
        return False
    own = seen & ~(SUBSCRIBE_KEYS | EXPIRES)
    needed = NEEDED_KEYS[place]
    return own != 0 and own & needed == needed and own & ~(needed | OPTIONAL_KEYS[place]) == 0


class PlainNumbers(NamedTuple):
    """The values of the numeric keys by row; infinite or the default where a row gives none."""

    lon: npt.NDArray[np.float64]
    lat: npt.NDArray[np.float64]
    within_m: npt.NDArray[np.float64]
    alpha: npt.NDArray[np.float64]
    reach_m: npt.NDArray[np.float64]


NUMBERS = len(PlainNumbers._fields)
LON_AT, LAT_AT, WITHIN_AT, ALPHA_AT, REACH_AT = range(NUMBERS)


class PlainChanges(NamedTuple):
    """The plain changes of a block, in line order.

    `subscribes` marks the changes that create a row; the columns after it have one entry per row.
    `region` f64[n, 4] holds a box, or lon, lat and radius of a circle. `numbers` f64[n, NUMBERS]
    are defined only in rows with keywords. `literal_offsets` are CSR offsets of the literals.
    """

    line: Positions
    ts_us: npt.NDArray[np.int64]
    id_start: npt.NDArray[np.int64]
    id_end: npt.NDArray[np.int64]
    subscribes: npt.NDArray[np.bool_]
    kind: npt.NDArray[np.uint8]
    k: npt.NDArray[np.uint16]
    expires_us: npt.NDArray[np.int64]
    region_kind: npt.NDArray[np.uint8]
    region: npt.NDArray[np.float64]
    numbers: npt.NDArray[np.float64]
    cover_mode: npt.NDArray[np.uint8]
    literal_offsets: npt.NDArray[np.int64]
    literal_term: Terms
    literal_true: npt.NDArray[np.int16]
    literal_false: npt.NDArray[np.int16]


class _Change(NamedTuple):
    """One change: the position of its line feed (FAILED if it is not plain), its keys and values.

    `place` is the position of its kind in the table. Its region, numbers and terms are written
    directly to the columns.
    """

    end: int
    seen: int
    ts_us: int
    id_start: int
    id_end: int
    expires_us: int
    place: int
    k: int
    region_kind: int
    words: int
    operator: int


@subkernel
def _number_of_key(raw: Bytes, at: int, key: int, numbers: npt.NDArray[np.float64]) -> int:
    """Read the value of one key into `numbers`; return the position after it or FAILED."""
    at, value = number_at_byte(raw, at)
    if key == LON:
        numbers[LON_AT] = value
        fits = abs(value) <= 180.0
    elif key == LAT:
        numbers[LAT_AT] = value
        fits = abs(value) <= 90.0
    elif key == ALPHA:
        numbers[ALPHA_AT] = value
        fits = 0.0 <= value <= 1.0
    else:
        numbers[WITHIN_AT if key == WITHIN else REACH_AT] = value
        fits = value > 0.0
    return at if fits else FAILED


@kernel
def _change_of_line(
    raw: Bytes,
    start: int,
    k0: np.uint64,
    k1: np.uint64,
    mapping: TermMap | None,
    reach_m: float,
    region: npt.NDArray[np.float64],
    numbers: npt.NDArray[np.float64],
    terms: Terms,
    first: int,
    starts: npt.NDArray[np.int64],
) -> _Change:
    """Read the line that begins at `start`; `starts` is scratch space for its keywords."""
    failed = _Change(FAILED, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    ts_us = id_start = id_end = words = operator = k = 0
    expires_us = NEVER_US
    place = 0
    region_kind = EVERYWHERE
    subscribes = all_of_them = False
    seen = 0
    at = skip_blanks(raw, start)
    if byte_at(raw, at) != ord("{"):
        return failed
    while True:
        at = skip_blanks(raw, at + 1)
        if byte_at(raw, at) != QUOTE:
            return failed
        key, at = key_at(raw, at + 1)
        if key == 0 or seen & key:
            return failed
        seen |= key
        at = skip_colon(raw, at)
        if at < 0:
            return failed
        if key == REGION:
            region_kind, at = region_at(raw, at, region)
        elif key == KEYWORDS:
            at, words = keywords_at(raw, at, k0, k1, mapping, terms, first, starts)
        elif key == K:
            at, k = k_at(raw, at)
        elif key & NUMBER_KEYS:
            at = _number_of_key(raw, at, key, numbers)
        else:
            if byte_at(raw, at) != QUOTE:
                return failed
            at += 1
            quote, characters = string_end(raw, at)
            if quote < 0:
                return failed
            if key == TYPE:
                subscribes = starts_with(raw, at, SUBSCRIBE_WORD)
                if not subscribes and not starts_with(raw, at, UNSUBSCRIBE_WORD):
                    return failed
            elif key == KIND:
                place = kind_at(raw, at)
                if place < 0 or (WEIGHS_TERMS[place] and reach_m <= 0.0):
                    return failed
            elif key == MODE:
                all_of_them = starts_with(raw, at, ALL_WORD)
                if not all_of_them and not starts_with(raw, at, ANY_WORD):
                    return failed
            elif key == ID:
                if characters < 1 or characters > MOST_ID_CHARACTERS:
                    return failed
                id_start, id_end = at, quote
            elif key == WHERE:
                words, operator = words_at(raw, at, quote, k0, k1, mapping, terms, first)
                if words < 0:
                    return failed
            else:
                valid, time_us = timestamp_of_bytes(raw, at, quote)
                if not valid:
                    return failed
                if key == TS:
                    ts_us = time_us
                else:
                    expires_us = time_us
            at = quote + 1
        if at < 0:
            return failed
        at = skip_blanks(raw, at)
        if byte_at(raw, at) != ord(","):
            break
    if byte_at(raw, at) != ord("}") or not keys_complete(seen, subscribes, place):
        return failed
    if seen & KEYWORDS:
        operator = BY_AND if all_of_them else BY_OR
        if WEIGHS_TERMS[place]:
            sort_terms(raw, starts, terms, first, words)
        if not seen & WITHIN:
            numbers[WITHIN_AT] = np.inf
        if not seen & REACH:
            numbers[REACH_AT] = reach_m
    at = skip_blanks(raw, at + 1)
    return _Change(
        at, seen, ts_us, id_start, id_end, expires_us, place, k, region_kind, words, operator
    )


@kernel
def _scan_closed_lines(
    raw: Bytes,
    line_offsets: npt.NDArray[np.int64],
    lines: Positions,
    k0: np.uint64,
    k1: np.uint64,
    mapping: TermMap | None,
    reach_m: float,
    room: int,
) -> tuple[PlainChanges, Positions]:
    """Implement `scan_changes`; `room` is an upper bound on the number of terms."""
    size = len(lines)
    line_of = np.empty(size, np.uint32)
    ts_us = np.empty(size, np.int64)
    id_start = np.empty(size, np.int64)
    id_end = np.empty(size, np.int64)
    subscribes = np.empty(size, np.bool_)
    kind = np.empty(size, np.uint8)
    wanted = np.empty(size, np.uint16)
    expires_us = np.empty(size, np.int64)
    region_kind = np.empty(size, np.uint8)
    region = np.zeros((size + 1, 4), np.float64)
    numbers = np.empty((size + 1, NUMBERS), np.float64)
    cover_mode = np.empty(size, np.uint8)
    offsets = np.zeros(size + 1, np.int64)
    terms = np.empty(room, np.uint64)
    on_true = np.empty(room, np.int16)
    on_false = np.empty(room, np.int16)
    slow = np.empty(size, np.uint32)
    starts = np.empty(MOST_KEYWORDS, np.int64)
    change = row = 0
    for k in range(size):
        line = np.int64(lines[k])
        start, last = line_offsets[line], line_offsets[line + 1] - 1
        first = offsets[row]
        plain = False
        if last >= start and byte_at(raw, last) == LINE_FEED:
            found = _change_of_line(
                raw,
                start,
                k0,
                k1,
                mapping,
                reach_m,
                region[row],
                numbers[row],
                terms,
                first,
                starts,
            )
            plain = found.end == last
        if not plain:
            slow[k - change] = line
            continue
        line_of[change] = line
        ts_us[change] = found.ts_us
        id_start[change] = found.id_start
        id_end[change] = found.id_end
        subscribes[change] = found.seen != UNSUBSCRIBE_KEYS
        if found.seen != UNSUBSCRIBE_KEYS:
            words, by_or = found.words, found.operator == BY_OR
            kind[row] = KIND_NUMBERS[found.place]
            wanted[row] = found.k
            expires_us[row] = found.expires_us
            region_kind[row] = found.region_kind
            if words == 0:
                cover_mode[row] = COVER_ANY
            elif by_or and (words > 1 or WEIGHS_TERMS[found.place]):
                cover_mode[row] = COVER_ALL
            else:
                cover_mode[row] = COVER_ONE
            for w in range(words):
                onward = w + 1 if w + 1 < words else (REJECT if by_or else ACCEPT)
                on_true[first + w] = ACCEPT if by_or else onward
                on_false[first + w] = onward if by_or else REJECT
                if found.seen & KEYWORDS:  # a list of terms, without jumps
                    on_true[first + w] = on_false[first + w] = 0
            row += 1
            offsets[row] = first + words
        change += 1
    total = offsets[row]
    changes = PlainChanges(
        line_of[:change],
        ts_us[:change],
        id_start[:change],
        id_end[:change],
        subscribes[:change],
        kind[:row],
        wanted[:row],
        expires_us[:row],
        region_kind[:row],
        region[:row],
        numbers[:row],
        cover_mode[:row],
        offsets[: row + 1],
        terms[:total].copy(),
        on_true[:total].copy(),
        on_false[:total].copy(),
    )
    return changes, slow[: size - change]


def scan_changes(
    raw: Bytes,
    line_offsets: npt.NDArray[np.int64],
    lines: Positions,
    k0: np.uint64,
    k1: np.uint64,
    mapping: TermMap | None,
    reach_m: float,
) -> tuple[PlainChanges, Positions]:
    """Return the plain changes among `lines`, with hashed terms, and the numbers of slow lines.

    `mapping` replaces words; None keeps them. `reach_m` is the default of `relevant` lines; with 0
    all lines of that kind are slow. A last line without a line feed is slow.
    """
    at = lines.astype(np.int64)
    # Every word but the first follows at least one byte. Pages that are never written cost nothing.
    room = int((line_offsets[at + 1] - line_offsets[at]).sum()) // 2 + MOST_TERMS
    return _scan_closed_lines(
        read_only(raw), line_offsets, lines, k0, k1, mapping, float(reach_m), room
    )
