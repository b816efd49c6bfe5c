"""Read a Tile38 fence as the area that it watches.

Tile38 follows objects by their ids and reports when one enters or leaves; Placewire reports each
object that is inside. Anything else that a fence asks for is noted or refused.
"""

from __future__ import annotations

from typing import Any

from placewire.importers.alternatives import Alternatives, from_areas
from placewire.importers.areas import Area, Box
from placewire.importers.json_files import Malformed, decode
from placewire.importers.report import (
    EVERY_INSIDE,
    IGNORED,
    NO_COUNTERPART,
    ONLY_INSIDE,
    ImportNote,
    Untranslatable,
    shown,
)
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
from placewire.importers.tile38_commands import SEARCHES, Fence

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
            raise Untranslatable("a search without FENCE does not stand", verb)
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
                self.add_note(IGNORED, option)
            elif option in REFUSED_OPTIONS:
                raise Untranslatable(f"{option} {NO_COUNTERPART}", verb)
            elif option == "BOUNDS" or option in OUTPUT_OPTIONS:
                self.add_note(IGNORED, option)
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
            self.add_note(ONLY_INSIDE, verb)
        elif "inside" in detected:
            if len(detected) > 1:
                self.add_note(ONLY_INSIDE, "DETECT")
        elif "enter" in detected:
            self.add_note(EVERY_INSIDE, "DETECT")
            if len(detected) > 1:
                self.add_note(ONLY_INSIDE, "DETECT")
        else:
            wanted = ", ".join(sorted(detected))
            raise Untranslatable(
                f"DETECT without inside or enter {NO_COUNTERPART}", "DETECT", wanted
            )

    def area(self, verb: str) -> list[Area]:
        """Read the area of a fence."""
        kind = self.take("an area").upper()
        if verb == "NEARBY":
            if kind == "ROAM":
                raise Untranslatable(f"ROAM, objects near each other, {NO_COUNTERPART}", verb)
            if kind != "POINT":
                raise Untranslatable("an unknown area", verb, shown(kind))
            lat, lon = self.position(kind)
            if self.at >= len(self.words):
                raise Untranslatable("NEARBY without a distance watches everything", verb)
            return [self.circle(lon, lat, kind)]
        if kind == "POINT":
            lat, lon = self.position(kind)
            return [point_box(lon, lat)]
        if kind == "CIRCLE":
            lat, lon = self.position(kind)
            return [self.circle(lon, lat, kind)]
        if kind == "BOUNDS":
            south, west = self.position(kind)
            north, east = self.position(kind)
            return [self.box(west, south, east, north)]
        if kind == "HASH":
            return [geohash_box(self.take("a geohash"), kind)]
        if kind == "QUADKEY":
            return [quadkey_box(self.take("a quadkey"), kind)]
        if kind in ("TILE", "MVT"):
            x, y, zoom = (self.whole(kind) for _ in range(3))
            return [tile_box(x, y, zoom, kind)]
        if kind == "OBJECT":
            return self.shapes.read(self.json("an object"), kind)
        if kind == "GET":
            raise Untranslatable(
                "an area that is an object of the server is not in this file", kind
            )
        if kind == "SECTOR":
            raise Untranslatable(f"SECTOR {NO_COUNTERPART}", verb)
        raise Untranslatable("an unknown area", verb, shown(kind))

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
