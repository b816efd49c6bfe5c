"""Read Tile38 fences from files, and the area that each one watches.

Accepted are lines as typed into its command line, the append-only file (RESP), and the JSON answers
of `HOOKS *` and `CHANS *`. Tile38 follows objects by their ids and reports when one enters or
leaves; Placewire reports each object that is inside. Anything else that a fence asks for is noted
or refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from placewire.importers import report
from placewire.importers.alternatives import Alternatives, from_areas
from placewire.importers.areas import Area, Box
from placewire.importers.json_files import (
    MOST_BYTES,
    Malformed,
    ReadProgress,
    Unreadable,
    decode,
    decode_from,
    open_file,
    read_lines,
    read_values,
)
from placewire.importers.report import NO_COUNTERPART, ImportNote, Untranslatable, shown
from placewire.importers.shapes import (
    ShapeReader,
    geohash_box,
    make_box,
    make_circle,
    point_box,
    quadkey_box,
    read_degrees,
    read_number,
    tile_box,
)

MOST_ARGUMENTS = 1 << 16
SEARCHES = ("NEARBY", "WITHIN", "INTERSECTS")
SETS = ("SETHOOK", "SETCHAN")
ENDS = ("DELHOOK", "DELCHAN")
WITHOUT_NAMES = ("PDELHOOK", "PDELCHAN", "FLUSHDB")

_PROMPT = re.compile(r"\S+:\d+> +")
_PLAIN = re.compile(r"\S+")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "a": "\a"}

DETECTIONS = {"inside", "outside", "enter", "exit", "cross"}
HALF_ROUND_M = 20_015_086.0  # Tile38 wraps longer distances around
OTHER_KEY = "a fence of another collection"

REFUSED_OPTIONS = (
    *("WHERE", "WHEREIN", "WHEREEVAL", "WHEREEVALSHA"),
    *("SPARSE", "BUFFER", "CLIP", "CURSOR"),
)
# Options that only change the messages, with the number of words that follow each.
OUTPUTS = {"COUNT": 0, "OBJECTS": 0, "POINTS": 0, "IDS": 0, "HASHES": 1}
OUTPUT_OPTIONS = {"LIMIT": 1, "NOFIELDS": 0, "DISTANCE": 0, "ASC": 0, "DESC": 0, **OUTPUTS}


class Fence(NamedTuple):
    """A fence, or its deletion, which has no words."""

    line: int
    name: str | None
    words: list[str]
    meta: dict[str, str]
    ttl_s: str | None = None


def read_fences(path: Path, progress: ReadProgress) -> Iterator[Fence | Unreadable]:
    """Yield every fence of a file and unreadable parts; skips other commands."""
    with open_file(path) as file:
        start = file.read(1)
        while start.isspace():
            start = file.read(1)
        file.seek(0)
        if start == b"*":
            for number, words in read_resp(file, progress):
                yield from read_command(number, words)
            return
        if start not in (b"{", b"["):
            for number, line in read_lines(file, progress):
                if isinstance(line, Unreadable):
                    yield line
                elif line and not line.startswith(b"#"):
                    yield from read_text(number, line)
            return
    for number, value in read_values(path, progress):
        yield from [value] if isinstance(value, Unreadable) else read_answer(number, value)


def read_text(number: int, line: bytes) -> Iterator[Fence | Unreadable]:
    """Read a line: a typed command or an answer of the server."""
    try:
        if line.startswith(b"{"):
            yield from read_answer(number, decode(line))
            return
        yield from read_command(number, split_words(line.decode("utf-8")))
    except UnicodeDecodeError as error:
        yield Unreadable(number, f"not UTF-8: byte 0x{line[error.start]:02x} at {error.start + 1}")
    except Malformed as error:
        yield Unreadable(number, str(error))


def split_words(line: str) -> list[str]:
    """Split a command into words: quoted, bare JSON, or plain."""
    prompt = _PROMPT.match(line)
    at = prompt.end() if prompt else 0
    words = []
    while at < len(line):
        character = line[at]
        if character.isspace():
            at += 1
        elif character in "\"'":
            word, at = read_quoted(line, at)
            words.append(word)
        else:
            end = json_end(line, at) if character == "{" else None
            end = _PLAIN.match(line, at).end() if end is None else end  # type: ignore[union-attr]
            words.append(line[at:end])
            at = end
    return words


def read_quoted(line: str, start: int) -> tuple[str, int]:
    """Read a quoted word and its end; a backslash escapes the next character."""
    found: list[str] = []
    quote, at = line[start], start + 1
    while at < len(line):
        if line[at] == quote:
            if at + 1 < len(line) and not line[at + 1].isspace():
                raise Malformed(f"a quote ends within a word, at character {at + 1}")
            return "".join(found), at + 1
        if line[at] == "\\" and at + 1 < len(line):
            at += 1
            escaped = line[at]
            found.append(_ESCAPES.get(escaped, escaped) if quote == '"' else escaped)
        else:
            found.append(line[at])
        at += 1
    raise Malformed(f"a quote is not closed, at character {start + 1}")


def json_end(line: str, start: int) -> int | None:
    """The end of the JSON at `start`, if a space or the end of the line follows."""
    try:
        _, end = decode_from(line, start)
    except Malformed:
        return None
    return end if end == len(line) or line[end].isspace() else None


def read_resp(
    file: BinaryIO, progress: ReadProgress
) -> Iterator[tuple[int, list[str] | Unreadable]]:
    """Yield the commands of an append-only file: `*3`, then `$5`, five bytes, and so on."""
    number = 0
    while header := file.readline(64):
        number += 1
        if not header.strip():
            continue
        words = []
        try:
            count = resp_number(header, b"*", MOST_ARGUMENTS)
            for _ in range(count):
                size = resp_number(file.readline(64), b"$", MOST_BYTES)
                body = file.read(size + 2)
                if len(body) != size + 2 or not body.endswith(b"\r\n"):
                    raise Malformed("a word is cut short")
                words.append(body[:-2].decode("utf-8", "surrogateescape"))
        except Malformed as error:
            yield number, Unreadable(number, f"command {number}: {error}; nothing after it is read")
            return
        progress(file.tell())
        yield number, words


def resp_number(line: bytes, sign: bytes, most: int) -> int:
    digits = line[1:].strip()
    if line[:1] != sign or not digits.isdigit() or len(digits) > 10 or int(digits) > most:
        raise Malformed(f"expected {sign.decode()} and a number, got {shown(line)}")
    return int(digits)


def read_answer(number: int, value: Any) -> Iterator[Fence | Unreadable]:
    """Yield the hooks or channels in an answer of the server; other answers have none."""
    found: Any = value
    if isinstance(value, dict):
        found = value.get("hooks", value.get("chans"))
        if found is None and "command" in value and "name" in value:
            found = [value]
        if found is None and "ok" in value:
            return
    if isinstance(found, list):
        for each in found:
            yield from read_hook(number, each)
    elif isinstance(value, dict):
        yield Unreadable(number, f"no hooks or chans in it, got {shown(value)}")
    else:
        yield Unreadable(number, f"an answer must be an object, got {shown(value)}")


def read_hook(number: int, value: Any) -> Iterator[Fence | Unreadable]:
    words = value.get("command") if isinstance(value, dict) else None
    name = value.get("name") if isinstance(value, dict) else None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        yield Unreadable(number, f"a hook must have a command, got {shown(value)}")
        return
    if not isinstance(name, str):
        yield Unreadable(number, f"a hook must have a name, got {shown(name)}")
        return
    meta = value.get("meta")
    ttl = value.get("ttl", -1)
    lasting = str(ttl) if isinstance(ttl, int | float) and ttl >= 0 else None
    pairs = meta if isinstance(meta, dict) else {}
    yield Fence(number, name, words, {str(key): str(each) for key, each in pairs.items()}, lasting)


def read_command(number: int, words: list[str] | Unreadable) -> Iterator[Fence | Unreadable]:
    """Yield the fence of a command, if it has one."""
    if isinstance(words, Unreadable):
        yield words
        return
    verb = words[0].upper() if words else ""
    if verb in (*SEARCHES, *SETS, *ENDS) and not all(map(is_text, words)):
        yield Unreadable(number, f"{verb} has a word that is not UTF-8")
    elif verb in SEARCHES:
        yield Fence(number, None, words, {})
    elif verb in ENDS and len(words) == 2:
        yield Fence(number, words[1], [], {})
    elif verb in WITHOUT_NAMES:
        yield Unreadable(number, f"{verb} is not followed: it ends fences without naming them")
    elif verb in SETS or verb in ENDS:
        yield read_set(number, verb, words)


def read_set(number: int, verb: str, words: list[str]) -> Fence | Unreadable:
    """Read `SETHOOK name endpoint [META key value] [EX seconds]` and its search.

    SETCHAN has no endpoint.
    """
    at = 3 if verb == "SETHOOK" else 2
    if len(words) <= at or verb in ENDS:
        return Unreadable(number, f"{verb} has too few or too many words, got {len(words)}")
    name, meta, ttl = words[1], {}, None
    while at < len(words):
        option = words[at].upper()
        if option == "META" and at + 2 < len(words):
            meta[words[at + 1]] = words[at + 2]
            at += 3
        elif option == "EX" and at + 1 < len(words):
            ttl = words[at + 1]
            at += 2
        else:
            break
    return Fence(number, name, words[at:], meta, ttl)


def is_text(word: str) -> bool:
    """Whether a word was UTF-8; bytes that were not are lone surrogates."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


class FenceReader:
    """Reads fences; `notes` are those of the last fence."""

    def __init__(self, key: str | None) -> None:
        self.key = key  # the collection whose objects are the stream
        self.shapes = ShapeReader(self.radius, wide=True, add_note=self.add_note)
        self.notes: list[ImportNote] = []
        self.words: list[str] = []
        self.at = 0

    def read(self, fence: Fence) -> Alternatives:
        """Read a fence as alternatives; raises Untranslatable."""
        self.notes = []
        self.words, self.at = fence.words, 0
        verb = self.take("a search").upper()
        if verb not in SEARCHES:
            raise Untranslatable("a fence must be NEARBY, WITHIN or INTERSECTS", got=shown(verb))
        key = self.take("a key")
        if self.key is not None and key != self.key:
            raise Untranslatable(OTHER_KEY, verb, shown(key))
        is_fence = self.options(verb) or fence.name is not None
        if not is_fence:
            raise Untranslatable("a search without FENCE is not a fence", verb)
        areas = self.area(verb)
        if self.at < len(self.words):
            rest = self.words[self.at]
            raise Untranslatable("words after the area", verb, shown(rest))
        return from_areas(areas)

    def add_note(self, what: str, where: str) -> None:
        if all(note.what != what for note in self.notes):
            self.notes.append(ImportNote(what, where))

    def take(self, what: str) -> str:
        """Take the next word."""
        if self.at >= len(self.words):
            raise Untranslatable("a fence is cut short", got=f"no {what}")
        self.at += 1
        return self.words[self.at - 1]

    def options(self, verb: str) -> bool:
        """Read the options between the key and the area; returns whether FENCE is one of them."""
        is_fence = False
        detected: set[str] | None = None
        while self.at < len(self.words):
            option = self.words[self.at].upper()
            if option == "BOUNDS" and not self.is_output():
                break
            if option == "FENCE":
                is_fence = True
            elif option == "DETECT":
                word = self.option_value()
                detected = {part.strip() for part in word.lower().split(",")}
                if not detected <= DETECTIONS:
                    raise Untranslatable("an unknown DETECT", verb, shown(word))
            elif option == "MATCH":
                if (word := self.option_value()) != "*":
                    raise Untranslatable(
                        f"MATCH, a choice by id, {NO_COUNTERPART}", verb, shown(word)
                    )
            elif option == "COMMANDS":
                if "set" not in self.option_value().lower().split(","):
                    raise Untranslatable(f"COMMANDS without set {NO_COUNTERPART}", verb)
            elif option == "NODWELL":
                self.add_note(report.IGNORED, option)
            elif option in REFUSED_OPTIONS:
                raise Untranslatable(f"{option} {NO_COUNTERPART}", verb)
            elif option == "BOUNDS" or option in OUTPUT_OPTIONS:
                self.add_note(report.IGNORED, option)
                self.at += OUTPUT_OPTIONS.get(option, 0)
                self.require_word()
            else:
                break
            self.at += 1
        self.note_detected(detected, verb)
        return is_fence

    def is_output(self) -> bool:
        """Whether BOUNDS is an output format: then no number follows it."""
        try:
            float(self.words[self.at + 1])
        except (IndexError, ValueError):
            return True
        return False

    def option_value(self) -> str:
        """Move to the word after an option."""
        self.at += 1
        self.require_word()
        return self.words[self.at]

    def require_word(self) -> None:
        if self.at >= len(self.words):
            raise Untranslatable("a fence is cut short", got=shown(self.words[-1]))

    def note_detected(self, detected: set[str] | None, verb: str) -> None:
        if detected is None:
            self.add_note(report.ONLY_INSIDE, verb)
            return
        if not detected & {"inside", "enter"}:
            wanted = ", ".join(sorted(detected))
            raise Untranslatable(
                f"DETECT without inside or enter {NO_COUNTERPART}", "DETECT", wanted
            )
        if "inside" not in detected:
            self.add_note(report.EVERY_INSIDE, "DETECT")
        if len(detected) > 1:
            self.add_note(report.ONLY_INSIDE, "DETECT")

    def area(self, verb: str) -> list[Area]:
        area = self.take("an area").upper()
        if verb == "NEARBY":
            if area == "ROAM":
                raise Untranslatable(f"ROAM, objects near each other, {NO_COUNTERPART}", verb)
            if area != "POINT":
                raise Untranslatable("an unknown area", verb, shown(area))
            lat, lon = self.position(area)
            if self.at >= len(self.words):
                raise Untranslatable("NEARBY without a distance watches everything", verb)
            return [self.circle(lon, lat, area)]
        if area == "POINT":
            lat, lon = self.position(area)
            return [point_box(lon, lat)]
        if area == "CIRCLE":
            lat, lon = self.position(area)
            return [self.circle(lon, lat, area)]
        if area == "BOUNDS":
            south, west = self.position(area)
            north, east = self.position(area)
            return [self.box(west, south, east, north)]
        if area == "HASH":
            return [geohash_box(self.take("a geohash"), area)]
        if area == "QUADKEY":
            return [quadkey_box(self.take("a quadkey"), area)]
        if area in ("TILE", "MVT"):
            x, y, zoom = (self.whole(area) for _ in range(3))
            return [tile_box(x, y, zoom, area)]
        if area == "OBJECT":
            return self.shapes.read(self.json("an object"), area)
        if area == "GET":
            raise Untranslatable(
                "an area that is an object of the server is not in this file", area
            )
        if area == "SECTOR":
            raise Untranslatable(f"SECTOR {NO_COUNTERPART}", verb)
        raise Untranslatable("an unknown area", verb, shown(area))

    def position(self, where: str) -> tuple[float, float]:
        """Read a latitude, then a longitude."""
        lat = read_degrees(self.take("a latitude"), 90.0, where)
        return lat, read_degrees(self.take("a longitude"), 180.0, where)

    def circle(self, lon: float, lat: float, where: str) -> Area:
        return make_circle(lon, lat, self.radius(self.take("a distance"), where))

    def box(self, west: float, south: float, east: float, north: float) -> Box:
        if west > east:
            raise Untranslatable("bounds whose west is beyond their east are empty", "BOUNDS",
                                 f"{west} and {east}")  # fmt: skip
        return make_box(west, south, east, north, "BOUNDS")

    def radius(self, value: Any, where: str) -> float:
        metres = read_number(value, "a distance", where)
        if not 0.0 <= metres <= HALF_ROUND_M:
            raise Untranslatable("a distance must reach at most half round the earth", where,
                                 str(metres))  # fmt: skip
        return metres

    def whole(self, where: str) -> int:
        word = self.take("a number")
        if not word.isascii() or not word.isdigit() or len(word) > 15:
            raise Untranslatable("a tile has whole numbers", where, shown(word))
        return int(word)

    def json(self, what: str) -> Any:
        try:
            return decode(self.take(what).encode())
        except Malformed as error:
            raise Untranslatable("unreadable GeoJSON", "OBJECT", str(error)) from None
