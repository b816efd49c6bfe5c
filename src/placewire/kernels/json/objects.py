"""Read plain objects from a block of JSON Lines in one pass over its bytes.

Nearly every line of a log is an object event with six known keys, no escapes and no `data`. Such a
line is *plain*: it is decoded here, and every rule of the format is checked. All other lines are
*slow*: the strict decoder reads them and reports the errors.

Reading stops at the first invalid byte. A line feed is never valid inside an object, so a line that
ends in one needs no other bounds check.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from placewire.kernels.bytes import Bytes, byte_at, zero_bytes
from placewire.kernels.jit import kernel, subkernel
from placewire.kernels.json.numbers import number_at_byte
from placewire.kernels.json.strings import QUOTE, skip_blanks, starts_with, string_end
from placewire.kernels.json.timestamps import timestamp_of_bytes
from placewire.model.events import MOST_ID_CHARACTERS, MOST_TEXT_BYTES

Positions = npt.NDArray[np.uint32]

LINE_FEED = 0x0A

EVERY_LINE_FEED = np.uint64(0x0A0A0A0A0A0A0A0A)

# One bit for each key that a plain object has.
TYPE, ID, TS, LON, LAT, TEXT = 1, 2, 4, 8, 16, 32
ALL_KEYS = TYPE | ID | TS | LON | LAT | TEXT

OBJECT = b'object"'

NOT_PLAIN = (-1, 0, 0.0, 0.0, 0, 0, 0, 0)


class PlainObjects(NamedTuple):
    """The plain objects of a block, in line order; id and text are byte ranges of the block."""

    line: Positions
    ts_us: npt.NDArray[np.int64]
    lon: npt.NDArray[np.float64]
    lat: npt.NDArray[np.float64]
    id_start: Positions
    id_end: Positions
    text_start: Positions
    text_end: Positions


@subkernel
def _key_at(raw: Bytes, at: int) -> tuple[int, int]:
    """Return the bit of the key that begins at `at` (0 if unknown) and its closing quote."""
    first = byte_at(raw, at)
    if first == ord("t"):
        second = byte_at(raw, at + 1)
        if second == ord("s"):
            return TS, at + 2
        if (
            second == ord("y")
            and byte_at(raw, at + 2) == ord("p")
            and byte_at(raw, at + 3) == ord("e")
        ):
            return TYPE, at + 4
        if (
            second == ord("e")
            and byte_at(raw, at + 2) == ord("x")
            and byte_at(raw, at + 3) == ord("t")
        ):
            return TEXT, at + 4
    elif first == ord("l"):
        second = byte_at(raw, at + 1)
        if second == ord("o") and byte_at(raw, at + 2) == ord("n"):
            return LON, at + 3
        if second == ord("a") and byte_at(raw, at + 2) == ord("t"):
            return LAT, at + 3
    elif first == ord("i") and byte_at(raw, at + 1) == ord("d"):
        return ID, at + 2
    return 0, at


@subkernel
def _object_of_line(raw: Bytes, start: int) -> tuple[int, int, float, float, int, int, int, int]:
    """Read the object at `start`; return where its line feed is (-1 if slow) and its fields."""
    ts_us = id_start = id_end = text_start = text_end = 0
    lon = lat = 0.0
    at = skip_blanks(raw, start)
    if byte_at(raw, at) != ord("{"):
        return NOT_PLAIN
    seen = 0
    while True:
        at = skip_blanks(raw, at + 1)
        if byte_at(raw, at) != QUOTE:
            return NOT_PLAIN
        key, at = _key_at(raw, at + 1)
        if key == 0 or seen & key or byte_at(raw, at) != QUOTE:
            return NOT_PLAIN
        seen |= key
        at = skip_blanks(raw, at + 1)
        if byte_at(raw, at) != ord(":"):
            return NOT_PLAIN
        at = skip_blanks(raw, at + 1)

        if key & (LON | LAT):
            at, value = number_at_byte(raw, at)
            limit = 180.0 if key == LON else 90.0
            if at < 0 or value < -limit or value > limit:
                return NOT_PLAIN
            if key == LON:
                lon = value
            else:
                lat = value
        else:
            if byte_at(raw, at) != QUOTE:
                return NOT_PLAIN
            inside = at + 1
            if key == TYPE:
                if not starts_with(raw, inside, OBJECT):
                    return NOT_PLAIN
                quote = inside + 6
            else:
                quote, characters = string_end(raw, inside)
                if quote < 0:
                    return NOT_PLAIN
                if key == TS:
                    valid, ts_us = timestamp_of_bytes(raw, inside, quote)
                    if not valid:
                        return NOT_PLAIN
                elif key == ID:
                    if characters < 1 or characters > MOST_ID_CHARACTERS:
                        return NOT_PLAIN
                    id_start = inside
                    id_end = quote
                else:
                    if quote - inside > MOST_TEXT_BYTES:
                        return NOT_PLAIN
                    text_start = inside
                    text_end = quote
            at = quote + 1

        at = skip_blanks(raw, at)
        if byte_at(raw, at) != ord(","):
            break
    if byte_at(raw, at) != ord("}") or seen != ALL_KEYS:
        return NOT_PLAIN
    at = skip_blanks(raw, at + 1)
    return at, ts_us, lon, lat, id_start, id_end, text_start, text_end


@kernel
def _scan_closed_lines(
    raw: Bytes, line_offsets: npt.NDArray[np.int64]
) -> tuple[PlainObjects, Positions]:
    """Implement `scan_objects`; treat lines that do not end in a line feed as slow."""
    lines = len(line_offsets) - 1
    line_of = np.empty(lines, dtype=np.uint32)
    ts_us = np.empty(lines, dtype=np.int64)
    lon = np.empty(lines, dtype=np.float64)
    lat = np.empty(lines, dtype=np.float64)
    id_start = np.empty(lines, dtype=np.uint32)
    id_end = np.empty(lines, dtype=np.uint32)
    text_start = np.empty(lines, dtype=np.uint32)
    text_end = np.empty(lines, dtype=np.uint32)
    slow = np.empty(lines, dtype=np.uint32)
    row = 0
    for line in range(lines):
        start, last = line_offsets[line], line_offsets[line + 1] - 1
        plain = False
        if last >= start and byte_at(raw, last) == LINE_FEED:
            fields = _object_of_line(raw, start)
            plain = fields[0] == last
        if plain:
            line_of[row] = line
            _, ts_us[row], lon[row], lat[row] = fields[:4]
            id_start[row], id_end[row], text_start[row], text_end[row] = fields[4:]
            row += 1
        else:
            slow[line - row] = line
    objects = PlainObjects(
        line_of[:row],
        ts_us[:row],
        lon[:row],
        lat[:row],
        id_start[:row],
        id_end[:row],
        text_start[:row],
        text_end[:row],
    )
    return objects, slow[: lines - row]


def scan_objects(raw: Bytes, line_offsets: npt.NDArray[np.int64]) -> tuple[PlainObjects, Positions]:
    """Return the plain objects of a block (under 2 GiB) and the numbers of its slow lines."""
    if len(raw) and raw[-1] != LINE_FEED and line_offsets[-1] == len(raw):
        # Once per log, at its end: copying the block costs less than a bounds check at every byte.
        raw = np.append(raw, np.uint8(LINE_FEED))
        line_offsets = line_offsets.copy()
        line_offsets[-1] += 1
    # The same read-only view for every caller, so that the kernel is compiled for one type.
    raw = raw.view()
    raw.flags.writeable = False
    return _scan_closed_lines(raw, line_offsets)


@kernel
def count_lines(raw: Bytes) -> int:
    """Count the lines of a block; the last line may lack its line feed."""
    size = len(raw)
    whole = size - size % 128
    count = 0
    for base in range(0, whole, 128):
        # A sum of at most 128 fits in a byte, so the compiler can add whole registers of bytes.
        feeds = np.uint8(0)
        for at in range(base, base + 128):
            feeds = np.uint8(feeds + np.uint8(raw[at] == LINE_FEED))
        count += int(np.int64(feeds))
    for at in range(whole, size):
        count += int(np.int64(raw[at] == LINE_FEED))
    if size > 0 and raw[size - 1] != LINE_FEED:
        count += 1
    return count


@kernel
def find_lines(raw: Bytes) -> npt.NDArray[np.int64]:
    """Return where each line begins and, last, the block's length: i64[lines + 1].

    Line i is raw[offsets[i] : offsets[i + 1]] with its line feed, which the last line may lack.
    """
    size = len(raw)
    line_offsets = np.empty(count_lines(raw) + 1, dtype=np.int64)
    line_offsets[0] = 0
    head = min(size, -raw.ctypes.data % 8)  # the bytes before the first aligned word
    words = raw[head : size - (size - head) % 8].view(np.uint64)
    found = 0
    for at in range(head):
        if raw[at] == LINE_FEED:
            found += 1
            line_offsets[found] = at + 1
    for word in range(len(words)):
        if zero_bytes(words[word] ^ EVERY_LINE_FEED):
            base = head + 8 * word
            for at in range(base, base + 8):
                if raw[at] == LINE_FEED:
                    found += 1
                    line_offsets[found] = at + 1
    for at in range(head + 8 * len(words), size):
        if raw[at] == LINE_FEED:
            found += 1
            line_offsets[found] = at + 1
    line_offsets[-1] = size
    return line_offsets
