"""Read places as areas: GeoJSON shapes, well-known text, points, boxes, geohashes and tiles.

Elasticsearch and Tile38 add circles and envelopes to GeoJSON, and Elasticsearch takes points and
boxes in many spellings.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable
from typing import Any, TypeGuard

from placewire.importers.areas import Area, Box, Circle, Rings, rings_bounds
from placewire.importers.report import HEIGHT, Untranslatable, shown

# Elasticsearch uses the first of these suffixes that matches: "mi" must come before "m".
UNITS = (
    ("in", 0.0254), ("inch", 0.0254), ("yd", 0.9144), ("yards", 0.9144),
    ("ft", 0.3048), ("feet", 0.3048), ("km", 1000.0), ("kilometers", 1000.0),
    ("NM", 1852.0), ("nmi", 1852.0), ("nauticalmiles", 1852.0),
    ("mm", 0.001), ("millimeters", 0.001), ("cm", 0.01), ("centimeters", 0.01),
    ("mi", 1609.344), ("miles", 1609.344), ("m", 1.0), ("meters", 1.0),
)  # fmt: skip
_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*", re.A)
BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz"
MOST_GEOHASH_CHARACTERS = 12
MOST_ZOOM = 38
MERCATOR_LAT = 85.05112878
MOST_WKT_DEPTH = 8
WKT_DEPTHS = {
    **{"POINT": 0, "LINESTRING": 1, "MULTIPOINT": 1},
    **{"POLYGON": 2, "MULTILINESTRING": 2, "MULTIPOLYGON": 3},
}

_WKT_HEAD = re.compile(r"\s*([A-Za-z]+)\s*(?:[Zz]\s*)?\(")
_WKT_LEXEME = re.compile(r"\s*([(),]|[^\s(),]+)")
NO_AREA = "a line has no area"
TOO_WIDE = "a polygon 180 degrees wide or wider may cross the antimeridian, or not"
MOST_SHAPE_DEPTH = 16

AddNote = Callable[[str, str], None]
CORNERS = {
    "top_left": ("north", "west"),
    "top_right": ("north", "east"),
    "bottom_left": ("south", "west"),
    "bottom_right": ("south", "east"),
}
SIDES = {"top": "north", "left": "west", "bottom": "south", "right": "east"}
SOUTH_WEST = ("south", "west")


def is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_number(value: Any, what: str, where: str) -> float:
    """Read a finite number or its text."""
    found = math.nan
    if is_number(value):
        with contextlib.suppress(OverflowError):
            found = float(value)
    elif isinstance(value, str) and len(value) <= 64 and _NUMBER.fullmatch(value):
        found = float(value)
    if not math.isfinite(found):
        raise Untranslatable(f"{what} must be a number", where, shown(value))
    return found


def read_degrees(value: Any, limit: float, where: str) -> float:
    """Read a longitude or latitude."""
    found = read_number(value, "a coordinate", where)
    if not -limit <= found <= limit:
        raise Untranslatable("a coordinate is out of range", where, str(found))
    return found


def read_distance(value: Any, where: str, unit: Any = "m") -> float:
    """Read a distance of Elasticsearch: 200, "200", "1.5km"; `unit` applies to bare numbers."""
    usual = dict(UNITS).get(unit) if isinstance(unit, str) else None
    if usual is None:
        raise Untranslatable("an unknown unit of distance", where, shown(unit))
    if isinstance(value, str):
        for name, size in UNITS:
            if value.endswith(name):
                value, usual = value[: -len(name)], size
                break
    found = read_number(value, "a distance", where) * usual
    if not found > 0.0 or math.isinf(found):
        raise Untranslatable("a distance must be above zero", where, str(found))
    return found


def geohash_box(geohash: str, where: str) -> Box:
    """The box of a geohash: its bits halve longitude and latitude in turn."""
    low, high = [-180.0, -90.0], [180.0, 90.0]
    axis = 0
    if not 1 <= len(geohash) <= MOST_GEOHASH_CHARACTERS or not set(geohash) <= set(BASE32):
        raise Untranslatable("not a geohash", where, shown(geohash))
    for character in geohash:
        number = BASE32.index(character)
        for bit in (16, 8, 4, 2, 1):
            middle = (low[axis] + high[axis]) / 2.0
            (low if number & bit else high)[axis] = middle
            axis = 1 - axis
    return Box(low[0], low[1], high[0], high[1])


def tile_box(x: int, y: int, zoom: int, where: str) -> Box:
    """The box of a map tile, as Tile38 computes it: the outermost tiles end at the map's edge."""
    if not 0 <= zoom <= MOST_ZOOM or not 0 <= x < 1 << zoom or not 0 <= y < 1 << zoom:
        raise Untranslatable("not a tile", where, f"x {x}, y {y}, z {zoom}")
    last = (1 << zoom) - 1
    return Box(
        -180.0 if x == 0 else 360.0 * (x / (last + 1) - 0.5),
        -MERCATOR_LAT if y == last else mercator_lat(y + 1, last + 1),
        180.0 if x == last else 360.0 * ((x + 1) / (last + 1) - 0.5),
        MERCATOR_LAT if y == 0 else mercator_lat(y, last + 1),
    )


def mercator_lat(y: int, size: int) -> float:
    """The latitude of the northern edge of row y."""
    return 90.0 - 360.0 * math.atan(math.exp(-(0.5 - y / size) * 2.0 * math.pi)) / math.pi


def quadkey_box(key: str, where: str) -> Box:
    """The box of the tile that a quadkey names."""
    if not 1 <= len(key) <= MOST_ZOOM or not set(key) <= set("0123"):
        raise Untranslatable("not a quadkey", where, shown(key))
    x = int("".join(str(int(digit) & 1) for digit in key), 2)
    y = int("".join(str(int(digit) >> 1) for digit in key), 2)
    return tile_box(x, y, len(key), where)


def read_wkt(text: str, where: str) -> dict[str, Any]:
    """Read well-known text, `POLYGON ((..))` or `BBOX (..)`, as a GeoJSON shape."""
    head = _WKT_HEAD.match(text)
    if head is None:
        raise Untranslatable("unreadable well-known text", where, shown(text))
    try:
        return wkt_shape(
            head.group(1).upper(), read_parentheses(text[head.end() - 1 :], where), where
        )
    except LookupError:  # empty parentheses
        raise Untranslatable("unreadable well-known text", where, shown(text)) from None


def wkt_shape(name: str, body: list[Any], where: str) -> dict[str, Any]:
    """The GeoJSON shape of a type name and its numbers."""
    if name in ("BBOX", "ENVELOPE"):
        if len(body) != 4:
            raise Untranslatable("a box must have four numbers", where, str(len(body)))
        west, east, north, south = (part[0] if isinstance(part, list) else part for part in body)
        return {"type": "envelope", "coordinates": [[west, north], [east, south]]}
    if name not in WKT_DEPTHS:
        raise Untranslatable("well-known text of an unknown type", where, shown(name))
    if name == "MULTIPOINT":  # each point may be in parentheses
        body = [part[0] if isinstance(part[0], list) else part for part in body]
    return {"type": name.lower(), "coordinates": body[0] if WKT_DEPTHS[name] == 0 else body}


def read_parentheses(text: str, where: str) -> list[Any]:
    """Read parentheses as lists; adjacent numbers form one position."""
    stack: list[list[Any]] = []
    position: list[float] | None = None
    at = 0
    while (match := _WKT_LEXEME.match(text, at)) is not None:
        lexeme, at = match.group(1), match.end()
        if lexeme == "(":
            if len(stack) == MOST_WKT_DEPTH:
                break
            stack.append([])
            position = None
        elif lexeme == ",":
            position = None
        elif lexeme == ")":
            done = stack.pop()
            position = None
            if not stack:
                if text[at:].strip():
                    break
                return done
            stack[-1].append(done)
        else:
            try:
                value = float(lexeme)
            except ValueError:
                break
            if position is None:
                position = []
                stack[-1].append(position)
            position.append(value)
    raise Untranslatable("unreadable well-known text", where, shown(text))


class ShapeReader:
    """Reads a shape as areas; a point is in the shape if it is in one of them."""

    def __init__(self, radius: Callable[[Any, str], float], wide: bool, add_note: AddNote) -> None:
        self.radius = radius  # reads a circle's radius
        self.wide = wide  # whether polygons of any width are planar
        self.add_note = add_note

    def read(self, shape: Any, where: str, depth: int = 0) -> list[Area]:
        """The areas of a shape; raises Untranslatable."""
        if not isinstance(shape, dict) or not isinstance(shape.get("type"), str):
            raise Untranslatable("a shape must be an object with a type", where, shown(shape))
        if depth > MOST_SHAPE_DEPTH:
            raise Untranslatable("shapes are nested too deeply", where)
        shape_type = shape["type"].lower()
        if shape_type in ("feature", "featurecollection", "geometrycollection"):
            return self.read_collection(shape_type, shape, where, depth)
        body, at = shape.get("coordinates"), f"{where}.coordinates"
        if shape_type == "polygon":
            return [self.polygon(body, at)]
        if shape_type == "multipolygon":
            return [
                self.polygon(part, f"{at}[{n}]") for n, part in enumerate(require_list(body, at))
            ]
        if shape_type == "envelope":
            return [self.envelope(body, at)]
        if shape_type == "circle":
            lon, lat = self.position(body, at)
            return [make_circle(lon, lat, self.radius(shape.get("radius"), f"{where}.radius"))]
        if shape_type == "point":
            return [point_box(*self.position(body, at))]
        if shape_type == "multipoint":
            points = enumerate(require_list(body, at))
            return [point_box(*self.position(part, f"{at}[{n}]")) for n, part in points]
        if shape_type in ("linestring", "multilinestring"):
            raise Untranslatable(NO_AREA, where)
        raise Untranslatable("a shape of an unknown type", where, shown(shape["type"]))

    def read_collection(
        self, shape_type: str, shape: dict[str, Any], where: str, depth: int
    ) -> list[Area]:
        """Read nested shapes; a feature that is a point with a radius is a circle of Tile38."""
        if shape_type == "feature":
            geometry, properties = shape.get("geometry"), shape.get("properties")
            if isinstance(properties, dict) and properties.get("type") == "Circle":
                if not isinstance(geometry, dict) or geometry.get("type") != "Point":
                    raise Untranslatable("a circle must have a point", where, shown(geometry))
                lon, lat = self.position(geometry.get("coordinates"), f"{where}.geometry")
                radius = properties.get("radius")
                unit = {"m": 1.0, "": 1.0, "km": 1000.0}.get(
                    str(properties.get("radius_units", ""))
                )
                if not is_number(radius) or unit is None:
                    raise Untranslatable("a circle's radius", where, shown(properties))
                return [make_circle(lon, lat, float(radius) * unit)]
            return self.read(geometry, f"{where}.geometry", depth + 1)
        name = "features" if shape_type == "featurecollection" else "geometries"
        at = f"{where}.{name}"
        parts = enumerate(require_list(shape.get(name), at))
        return [area for n, part in parts for area in self.read(part, f"{at}[{n}]", depth + 1)]

    def polygon(self, body: Any, where: str) -> Rings:
        rings = []
        for n, ring in enumerate(require_list(body, where)):
            at = f"{where}[{n}]"
            positions = [
                self.position(place, f"{at}[{p}]") for p, place in enumerate(require_list(ring, at))
            ]
            if len(positions) < 4 or positions[0] != positions[-1]:
                raise Untranslatable(
                    "a ring must be closed and have 4 positions or more", at, f"{len(positions)}"
                )
            rings.append(tuple(positions))
        box = rings_bounds(tuple(rings))
        if not self.wide and box.east - box.west >= 180.0:
            raise Untranslatable(TOO_WIDE, where, f"{box.west} to {box.east}")
        return Rings(tuple(rings))

    def envelope(self, body: Any, where: str) -> Box:
        """`[[west, north], [east, south]]`."""
        corners = require_list(body, where)
        if len(corners) != 2:
            raise Untranslatable("an envelope must have two corners", where, str(len(corners)))
        (west, north), (east, south) = (
            self.position(corner, f"{where}[{n}]") for n, corner in enumerate(corners)
        )
        return make_box(west, south, east, north, where)

    def position(self, body: Any, where: str) -> tuple[float, float]:
        if not isinstance(body, list) or len(body) not in (2, 3):
            raise Untranslatable("a position must be [lon, lat]", where, shown(body))
        if len(body) == 3:
            self.add_note(HEIGHT, where)
        return read_degrees(body[0], 180.0, where), read_degrees(body[1], 90.0, where)


def require_list(body: Any, where: str) -> list[Any]:
    if not isinstance(body, list) or not body:
        raise Untranslatable("coordinates must be a list", where, shown(body))
    return body


def make_box(west: float, south: float, east: float, north: float, where: str) -> Box:
    if south > north:
        raise Untranslatable("a box's top is below its bottom", where, f"{north} and {south}")
    return Box(west, south, east, north)


def make_circle(lon: float, lat: float, radius_m: float) -> Area:
    return Circle(lon, lat, radius_m) if radius_m > 0.0 else point_box(lon, lat)


def point_box(lon: float, lat: float) -> Box:
    return Box(lon, lat, lon, lat)


def read_point(
    value: Any, where: str, shapes: ShapeReader, corner: tuple[str, str] = SOUTH_WEST
) -> tuple[float, float]:
    """Read a point as (lon, lat); a geohash gives a corner of its box, by default south-west."""
    if isinstance(value, dict):
        if value.keys() == {"lat", "lon"}:
            return read_degrees(value["lon"], 180.0, f"{where}.lon"), read_degrees(
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
            return read_degrees(lon, 180.0, where), read_degrees(lat, 90.0, where)
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
    """Read a box given by two corners, four sides or well-known text."""
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
            sides[side] = read_degrees(given, 90.0 if side in ("north", "south") else 180.0, at)
        else:
            raise Untranslatable("an unknown part of a bounding box", at)
    if len(sides) != 4:
        raise Untranslatable("a bounding box must have four sides", where, shown(value))
    return make_box(sides["west"], sides["south"], sides["east"], sides["north"], where)
