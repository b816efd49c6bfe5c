"""Shapes as GeoJSON writes them, with the circles and envelopes of Elasticsearch and Tile38."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from placewire.imports.areas import Area, Box, Circle, Rings, rings_bounds
from placewire.imports.numbers import degrees, is_number
from placewire.imports.reasons import HEIGHT, Untranslatable, shown

NO_AREA = "a line has no area"
TOO_WIDE = "a polygon 180 degrees wide or wider may cross the antimeridian, or not"
MOST_NESTED = 16

Tell = Callable[[str, str], None]


class ShapeReader:
    """Reads shapes into areas, of which a point must be in one."""

    def __init__(self, radius: Callable[[Any, str], float], wide: bool, tell: Tell) -> None:
        self.radius = radius  # how a circle's radius is written
        self.wide = wide  # whether polygons are planar however wide they are
        self.tell = tell

    def read(self, shape: Any, where: str, depth: int = 0) -> list[Area]:
        """The areas of a shape; raises Untranslatable."""
        if not isinstance(shape, dict) or not isinstance(shape.get("type"), str):
            raise Untranslatable("a shape must be an object with a type", where, shown(shape))
        if depth > MOST_NESTED:
            raise Untranslatable("shapes are nested too deeply", where)
        kind = shape["type"].lower()
        if kind in ("feature", "featurecollection", "geometrycollection"):
            return self.read_collection(kind, shape, where, depth)
        body, at = shape.get("coordinates"), f"{where}.coordinates"
        if kind == "polygon":
            return [self.polygon(body, at)]
        if kind == "multipolygon":
            return [self.polygon(part, f"{at}[{n}]") for n, part in enumerate(listed(body, at))]
        if kind == "envelope":
            return [self.envelope(body, at)]
        if kind == "circle":
            lon, lat = self.position(body, at)
            return [make_circle(lon, lat, self.radius(shape.get("radius"), f"{where}.radius"))]
        if kind == "point":
            return [spot(*self.position(body, at))]
        if kind == "multipoint":
            spots = enumerate(listed(body, at))
            return [spot(*self.position(part, f"{at}[{n}]")) for n, part in spots]
        if kind in ("linestring", "multilinestring"):
            raise Untranslatable(NO_AREA, where)
        raise Untranslatable("a shape of an unknown type", where, shown(shape["type"]))

    def read_collection(
        self, kind: str, shape: dict[str, Any], where: str, depth: int
    ) -> list[Area]:
        """Shapes in shapes; a feature that is a point with a radius is Tile38's circle."""
        if kind == "feature":
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
        name = "features" if kind == "featurecollection" else "geometries"
        at = f"{where}.{name}"
        parts = enumerate(listed(shape.get(name), at))
        return [area for n, part in parts for area in self.read(part, f"{at}[{n}]", depth + 1)]

    def polygon(self, body: Any, where: str) -> Rings:
        rings = []
        for n, ring in enumerate(listed(body, where)):
            at = f"{where}[{n}]"
            positions = [
                self.position(place, f"{at}[{p}]") for p, place in enumerate(listed(ring, at))
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
        corners = listed(body, where)
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
            self.tell(HEIGHT, where)
        return degrees(body[0], 180.0, where), degrees(body[1], 90.0, where)


def listed(body: Any, where: str) -> list[Any]:
    if not isinstance(body, list) or not body:
        raise Untranslatable("coordinates must be a list", where, shown(body))
    return body


def make_box(west: float, south: float, east: float, north: float, where: str) -> Box:
    if south > north:
        raise Untranslatable("a box's top is below its bottom", where, f"{north} and {south}")
    return Box(west, south, east, north)


def make_circle(lon: float, lat: float, radius_m: float) -> Area:
    return Circle(lon, lat, radius_m) if radius_m > 0.0 else spot(lon, lat)


def spot(lon: float, lat: float) -> Box:
    """A single point."""
    return Box(lon, lat, lon, lat)
