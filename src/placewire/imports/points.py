"""Places in Elasticsearch's many spellings: points, corners and boxes."""

from __future__ import annotations

from typing import Any

from placewire.imports.areas import Box
from placewire.imports.numbers import degrees
from placewire.imports.reasons import Untranslatable, shown
from placewire.imports.shapes import ShapeReader, make_box
from placewire.imports.tiles import geohash_box
from placewire.imports.wellknown import read_wkt

CORNERS = {
    "top_left": ("north", "west"),
    "top_right": ("north", "east"),
    "bottom_left": ("south", "west"),
    "bottom_right": ("south", "east"),
}
SIDES = {"top": "north", "left": "west", "bottom": "south", "right": "east"}
SOUTH_WEST = ("south", "west")


def read_point(
    value: Any, where: str, shapes: ShapeReader, corner: tuple[str, str] = SOUTH_WEST
) -> tuple[float, float]:
    """A point as (lon, lat); a geohash is the corner of its square, the south-western as a rule."""
    if isinstance(value, dict):
        if value.keys() == {"lat", "lon"}:
            return degrees(value["lon"], 180.0, f"{where}.lon"), degrees(
                value["lat"], 90.0, f"{where}.lat"
            )
        if value.keys() == {"geohash"}:
            return read_point(value["geohash"], where, shapes, corner)
        if value.keys() == {"type", "coordinates"} and str(value["type"]).lower() == "point":
            return shapes.position(value["coordinates"], where)
    elif isinstance(value, list):
        return shapes.position(value, where)
    elif isinstance(value, str):
        if "," in value:
            lat, lon, *_ = value.split(",")
            return degrees(lon, 180.0, where), degrees(lat, 90.0, where)
        if "(" in value:
            shape = read_wkt(value, where)
            if shape["type"] == "point":
                return shapes.position(shape["coordinates"], where)
        else:
            square = geohash_box(value.lower(), where)
            north, west = corner
            return getattr(square, west), getattr(square, north)
    raise Untranslatable("an unreadable point", where, shown(value))


def read_box(value: Any, where: str, shapes: ShapeReader) -> Box:
    """A box by two corners, four sides or well-known text."""
    if not isinstance(value, dict):
        raise Untranslatable("a bounding box must be an object", where, shown(value))
    if value.keys() == {"wkt"}:
        shape = read_wkt(value["wkt"], where) if isinstance(value["wkt"], str) else {}
        if shape.get("type") != "envelope":
            raise Untranslatable("the text of a box must be BBOX (..)", where, shown(value["wkt"]))
        return shapes.envelope(shape["coordinates"], f"{where}.wkt")
    sides: dict[str, float] = {}
    for name, given in value.items():
        at = f"{where}.{name}"
        if name in CORNERS:
            lon, lat = read_point(given, at, shapes, CORNERS[name])
            north, west = CORNERS[name]
            sides |= {north: lat, west: lon}
        elif name in SIDES:
            side = SIDES[name]
            sides[side] = degrees(given, 90.0 if side in ("north", "south") else 180.0, at)
        else:
            raise Untranslatable("an unknown part of a bounding box", at)
    if len(sides) != 4:
        raise Untranslatable("a bounding box must have four sides", where, shown(value))
    return make_box(sides["west"], sides["south"], sides["east"], sides["north"], where)
