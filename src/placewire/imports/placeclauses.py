"""Clauses about places: geo_bounding_box, geo_distance, geo_shape, geo_polygon."""

from __future__ import annotations

from typing import Any

from placewire.imports.areas import Circle
from placewire.imports.clauses import NO_COUNTERPART, ClauseReader, QueryReader
from placewire.imports.meaning import Meaning, negated, of_areas
from placewire.imports.numbers import metres
from placewire.imports.points import read_box, read_point
from placewire.imports.reasons import Untranslatable, shown
from placewire.imports.wellknown import read_wkt

# What is out of range is refused anyway, and distances are great-circle.
WITHOUT_EFFECT = ("validation_method", "ignore_unmapped", "ignore_malformed", "coerce")


def read_geo_bounding_box(reader: QueryReader, body: dict[str, Any], where: str) -> Meaning:
    field, value, at = reader.one_field(body, where, (*WITHOUT_EFFECT, "type"))
    reader.need_place(field, at)
    return of_areas([read_box(value, at, reader.shapes)])


def read_geo_distance(reader: QueryReader, body: dict[str, Any], where: str) -> Meaning:
    own = ("distance", "unit", "distance_type")
    field, value, at = reader.one_field(body, where, (*WITHOUT_EFFECT, *own))
    reader.need_place(field, at)
    if str(body.get("distance_type", "arc")).lower() not in ("arc", "sloppy_arc"):
        raise Untranslatable(
            "a distance must be along the arc",
            f"{where}.distance_type",
            shown(body["distance_type"]),
        )
    radius_m = metres(body.get("distance"), f"{where}.distance", body.get("unit", "m"))
    return of_areas([Circle(*read_point(value, at, reader.shapes), radius_m)])


def read_geo_shape(reader: QueryReader, body: dict[str, Any], where: str) -> Meaning:
    """An object is a point: it is within a shape exactly if it intersects it."""
    field, value, at = reader.one_field(body, where, ("ignore_unmapped",))
    reader.need_place(field, at)
    if not isinstance(value, dict):
        raise Untranslatable("geo_shape must have a shape", at, shown(value))
    if "indexed_shape" in value:
        raise Untranslatable("an indexed shape is not in this file", f"{at}.indexed_shape")
    reader.check(value, at, ("shape", "relation", "strategy"))
    relation = str(value.get("relation", "intersects")).lower()
    if relation not in ("intersects", "within", "disjoint"):
        raise Untranslatable(f"this relation {NO_COUNTERPART}", f"{at}.relation", shown(relation))
    shape = value.get("shape")
    if isinstance(shape, str):
        shape = read_wkt(shape, f"{at}.shape")
    meaning = of_areas(reader.shapes.read(shape, f"{at}.shape"))
    return negated(meaning) if relation == "disjoint" else meaning


def read_geo_polygon(reader: QueryReader, body: dict[str, Any], where: str) -> Meaning:
    """The older way to write a polygon: a list of points, closed or not."""
    field, value, at = reader.one_field(body, where, WITHOUT_EFFECT)
    reader.need_place(field, at)
    points = value.get("points") if isinstance(value, dict) else None
    if not isinstance(points, list) or len(points) < 3:
        raise Untranslatable("geo_polygon must have three points or more", at, shown(points))
    ring = [
        list(read_point(point, f"{at}.points[{n}]", reader.shapes))
        for n, point in enumerate(points)
    ]
    if ring[0] != ring[-1]:
        ring.append(ring[0])
    return of_areas([reader.shapes.polygon([ring], f"{at}.points")])


OF_PLACES: dict[str, ClauseReader] = {
    "geo_bounding_box": read_geo_bounding_box,
    "geo_distance": read_geo_distance,
    "geo_shape": read_geo_shape,
    "geo_polygon": read_geo_polygon,
}
