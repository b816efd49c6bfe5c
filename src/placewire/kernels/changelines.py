"""Plain subscribes and unsubscribes read from a block of JSON Lines, as plain objects are.

Plain is a subscribe of the kind `boolean` with a box or a circle and a `where` of lower-case words
joined by one operator, or an unsubscribe: known keys, no escapes, no `data`. It is held to every
rule of the format. A line in doubt stays slow, for a reader that knows the whole format.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from placewire.kernels.bytewords import Bytes, byte_at
from placewire.kernels.hashing import bytes_hash
from placewire.kernels.jit import inlined, kernel, read_only
from placewire.kernels.jsonlines import LINE_FEED, MOST_ID_CHARACTERS, Positions
from placewire.kernels.numbers import number_at_byte
from placewire.kernels.strings import QUOTE, after_blanks, spells, string_end
from placewire.kernels.timestamps import timestamp_of_bytes
from placewire.model.expression import ACCEPT, COVER_ALL, COVER_ANY, COVER_ONE, REJECT
from placewire.model.regions import BOX, CIRCLE, EVERYWHERE
from placewire.model.subscriptions import NEVER_US

MOST_WORDS = 256
BLANK = 0x20

TYPE, ID, TS, KIND, EXPIRES, REGION, WHERE = 1, 2, 4, 8, 16, 32, 64
UNSUBSCRIBE_KEYS = TYPE | ID | TS
SUBSCRIBE_KEYS = TYPE | ID | TS | KIND
ASKS = REGION | WHERE

SUBSCRIBE, UNSUBSCRIBE, BOOLEAN = b'subscribe"', b'unsubscribe"', b'boolean"'
TYPE_KEY, ID_KEY, TS_KEY, KIND_KEY = b'type"', b'id"', b'ts"', b'kind"'
EXPIRES_KEY, REGION_KEY, WHERE_KEY = b'expires"', b'region"', b'where"'
BOX_KEY, CIRCLE_KEY = b'box"', b'circle"'
LON_KEY, LAT_KEY, RADIUS_KEY = b'lon"', b'lat"', b'radius_m"'
AND, OR = b" AND ", b" OR "
BY_AND, BY_OR, BY_BLANK = 1, 2, 3

FAILED = -1


class PlainChanges(NamedTuple):
    """The plain changes of a block, in line order.

    `subscribes` marks those that make a row; the columns after it have one entry a row. `figures`
    is the box, or the circle's lon, lat and radius. Literals are cut by `literal_offsets`.
    """

    line: Positions
    ts_us: npt.NDArray[np.int64]
    id_start: npt.NDArray[np.int64]
    id_end: npt.NDArray[np.int64]
    subscribes: npt.NDArray[np.bool_]
    expires_us: npt.NDArray[np.int64]
    region_kind: npt.NDArray[np.uint8]
    figures: npt.NDArray[np.float64]
    cover_mode: npt.NDArray[np.uint8]
    literal_offsets: npt.NDArray[np.int64]
    literal_term: npt.NDArray[np.uint64]
    literal_true: npt.NDArray[np.int16]
    literal_false: npt.NDArray[np.int16]


@inlined
def _key_at(raw: Bytes, at: int) -> tuple[int, int]:
    """The bit of the key whose inside begins at `at`, and the place after its quote; 0 unknown."""
    first = byte_at(raw, at)
    if first == ord("t"):
        if spells(raw, at, TYPE_KEY):
            return TYPE, at + len(TYPE_KEY)
        if spells(raw, at, TS_KEY):
            return TS, at + len(TS_KEY)
    elif first == ord("i"):
        if spells(raw, at, ID_KEY):
            return ID, at + len(ID_KEY)
    elif first == ord("k"):
        if spells(raw, at, KIND_KEY):
            return KIND, at + len(KIND_KEY)
    elif first == ord("r"):
        if spells(raw, at, REGION_KEY):
            return REGION, at + len(REGION_KEY)
    elif first == ord("w"):
        if spells(raw, at, WHERE_KEY):
            return WHERE, at + len(WHERE_KEY)
    elif first == ord("e") and spells(raw, at, EXPIRES_KEY):
        return EXPIRES, at + len(EXPIRES_KEY)
    return 0, at


@inlined
def _after_colon(raw: Bytes, at: int) -> int:
    """The start of the value whose colon comes at or after `at`; FAILED if there is none."""
    at = after_blanks(raw, at)
    if byte_at(raw, at) != ord(":"):
        return FAILED
    return after_blanks(raw, at + 1)


@kernel
def _region_at(raw: Bytes, at: int, figures: npt.NDArray[np.float64]) -> tuple[int, int]:
    """Read a box or circle that begins at `at` into `figures`: its kind and the place after it."""
    if byte_at(raw, at) != ord("{"):
        return 0, FAILED
    at = after_blanks(raw, at + 1)
    if byte_at(raw, at) != QUOTE:
        return 0, FAILED
    at += 1
    if spells(raw, at, BOX_KEY):
        kind = BOX
        at = _box_at(raw, _after_colon(raw, at + len(BOX_KEY)), figures)
    elif spells(raw, at, CIRCLE_KEY):
        kind = CIRCLE
        at = _circle_at(raw, _after_colon(raw, at + len(CIRCLE_KEY)), figures)
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
        at = _after_colon(raw, at)
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


@kernel
def _words_at(
    raw: Bytes,
    at: int,
    end: int,
    k0: np.uint64,
    k1: np.uint64,
    terms: npt.NDArray[np.uint64],
    first: int,
) -> tuple[int, int]:
    """Put the distinct terms of raw[at:end] at terms[first:]; their number (or FAILED), the joint.

    Words are lower-case ASCII, so each is its own only token.
    """
    count = words = joint = 0
    while True:
        start = at
        while at < end and _is_word_byte(byte_at(raw, at)):
            at += 1
        words += 1
        if at == start or words > MOST_WORDS:
            return FAILED, 0
        term = bytes_hash(raw, start, at, k0, k1)
        known = False
        for k in range(first, first + count):
            known = known or terms[k] == term
        if not known:
            terms[first + count] = term
            count += 1
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
def _change_of_line(
    raw: Bytes,
    start: int,
    k0: np.uint64,
    k1: np.uint64,
    figures: npt.NDArray[np.float64],
    terms: npt.NDArray[np.uint64],
    first: int,
) -> tuple[int, int, int, int, int, int, int, int, int]:
    """The line feed of the plain change that begins at `start`, and its fields; -1 for others.

    The fields: seen keys, time, id's start and end, expiry, region kind, terms, joint. The region's
    figures and the terms are written where they belong if the change turns out to be plain.
    """
    failed = (FAILED, 0, 0, 0, 0, 0, 0, 0, 0)
    ts_us = id_start = id_end = words = joint = 0
    expires_us = NEVER_US
    kind = EVERYWHERE
    comes = False
    seen = 0
    at = after_blanks(raw, start)
    if byte_at(raw, at) != ord("{"):
        return failed
    while True:
        at = after_blanks(raw, at + 1)
        if byte_at(raw, at) != QUOTE:
            return failed
        key, at = _key_at(raw, at + 1)
        if key == 0 or seen & key:
            return failed
        seen |= key
        at = _after_colon(raw, at)
        if at < 0:
            return failed
        if key == REGION:
            kind, at = _region_at(raw, at, figures)
            if at < 0:
                return failed
        else:
            if byte_at(raw, at) != QUOTE:
                return failed
            at += 1
            quote, characters = string_end(raw, at)
            if quote < 0:
                return failed
            if key == TYPE:
                comes = spells(raw, at, SUBSCRIBE)
                if not comes and not spells(raw, at, UNSUBSCRIBE):
                    return failed
            elif key == KIND:
                if not spells(raw, at, BOOLEAN):
                    return failed
            elif key == ID:
                if characters < 1 or characters > MOST_ID_CHARACTERS:
                    return failed
                id_start, id_end = at, quote
            elif key == WHERE:
                words, joint = _words_at(raw, at, quote, k0, k1, terms, first)
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
        at = after_blanks(raw, at)
        if byte_at(raw, at) != ord(","):
            break
    if byte_at(raw, at) != ord("}"):
        return failed
    if comes:
        if seen & SUBSCRIBE_KEYS != SUBSCRIBE_KEYS or not seen & ASKS:
            return failed
    elif seen != UNSUBSCRIBE_KEYS:
        return failed
    at = after_blanks(raw, at + 1)
    return at, seen, ts_us, id_start, id_end, expires_us, kind, words, joint


@kernel
def _scan_closed_lines(
    raw: Bytes,
    line_offsets: npt.NDArray[np.int64],
    lines: Positions,
    k0: np.uint64,
    k1: np.uint64,
    room: int,
) -> tuple[PlainChanges, Positions]:
    """`scan_changes`; `room` is enough for all terms."""
    size = len(lines)
    line_of = np.empty(size, np.uint32)
    ts_us = np.empty(size, np.int64)
    id_start = np.empty(size, np.int64)
    id_end = np.empty(size, np.int64)
    subscribes = np.empty(size, np.bool_)
    expires_us = np.empty(size, np.int64)
    region_kind = np.empty(size, np.uint8)
    figures = np.zeros((size + 1, 4), np.float64)
    cover_mode = np.empty(size, np.uint8)
    offsets = np.zeros(size + 1, np.int64)
    terms = np.empty(room, np.uint64)
    on_true = np.empty(room, np.int16)
    on_false = np.empty(room, np.int16)
    slow = np.empty(size, np.uint32)
    change = row = 0
    for k in range(size):
        line = np.int64(lines[k])
        start, last = line_offsets[line], line_offsets[line + 1] - 1
        first = offsets[row]
        seen = 0
        if last >= start and byte_at(raw, last) == LINE_FEED:
            end, seen, time_us, a, b, expires, kind, words, joint = _change_of_line(
                raw, start, k0, k1, figures[row], terms, first
            )
            if end != last:
                seen = 0
        if seen == 0:
            slow[k - change] = line
            continue
        line_of[change] = line
        ts_us[change] = time_us
        id_start[change] = a
        id_end[change] = b
        subscribes[change] = seen != UNSUBSCRIBE_KEYS
        if seen != UNSUBSCRIBE_KEYS:
            expires_us[row] = expires
            region_kind[row] = kind
            if words == 0:
                cover_mode[row] = COVER_ANY
            elif joint == BY_OR and words > 1:
                cover_mode[row] = COVER_ALL
            else:
                cover_mode[row] = COVER_ONE
            for w in range(words):
                onward = w + 1 if w + 1 < words else (REJECT if joint == BY_OR else ACCEPT)
                on_true[first + w] = ACCEPT if joint == BY_OR else onward
                on_false[first + w] = onward if joint == BY_OR else REJECT
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
        expires_us[:row],
        region_kind[:row],
        figures[:row],
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
) -> tuple[PlainChanges, Positions]:
    """The plain changes among `lines` of the block, terms hashed, and the numbers of the others.

    The last line of a log may lack its line feed; it is slow then.
    """
    at = lines.astype(np.int64)
    # Every word but the first has a blank before it. Pages that are not written to cost nothing.
    room = int((line_offsets[at + 1] - line_offsets[at]).sum()) // 2 + MOST_WORDS
    return _scan_closed_lines(read_only(raw), line_offsets, lines, k0, k1, room)
