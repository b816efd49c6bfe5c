"""Areas and what can be made of them exactly: their union, their intersection, what is outside.

An area is whatever a region can be. A polygon's rings are even-odd, so rings of polygons that lie
apart are one polygon, and with a ring around the world it is everything outside. What these
functions cannot say exactly they do not say: they raise Untranslatable.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from placewire.imports.apartness import Ring, rings_apart
from placewire.imports.reasons import Untranslatable
from placewire.model.regions import circle_bounds

OUTSIDE_A_CIRCLE = "everything outside a circle is no region"
OVERLAPPING = "areas that are joined by AND overlap in part: the overlap is no region"


class Box(NamedTuple):
    """West > east crosses the antimeridian."""

    west: float
    south: float
    east: float
    north: float


class Circle(NamedTuple):
    lon: float
    lat: float
    radius_m: float


class Rings(NamedTuple):
    """The even-odd inside of some rings, or all that is outside.

    `loose` says that some of the edges belong to what is ruled out.
    """

    rings: tuple[Ring, ...]
    outside: bool = False
    loose: bool = False


Area: TypeAlias = Box | Circle | Rings

EVERYWHERE = Box(-180.0, -90.0, 180.0, 90.0)


def to_region(area: Area) -> dict[str, Any]:
    """The area as a subscription's region."""
    if isinstance(area, Box):
        return {"box": list(area)}
    if isinstance(area, Circle):
        return {"circle": area._asdict()}
    rings = (*box_rings(EVERYWHERE), *area.rings) if area.outside else area.rings
    return {"polygon": [[list(position) for position in ring] for ring in rings]}


def has_loose_edges(area: Area) -> bool:
    return isinstance(area, Rings) and (area.outside or area.loose)


def outside(area: Area) -> tuple[Area, ...]:
    """All that is not in the area; its edge is in both."""
    if area == EVERYWHERE:
        return ()
    if isinstance(area, Circle):
        raise Untranslatable(OUTSIDE_A_CIRCLE)
    if isinstance(area, Box):
        return (Rings(box_rings(area), outside=True),)
    return (area._replace(outside=not area.outside),)


def intersect(first: Area, second: Area) -> tuple[Area, ...]:
    """What is in both, as areas that lie apart or share an edge."""
    if first in (EVERYWHERE, second):
        return (second,)
    if second == EVERYWHERE:
        return (first,)
    if isinstance(first, Box) and isinstance(second, Box):
        return intersect_boxes(first, second)
    if isinstance(first, Circle) and isinstance(second, Circle) and first[:2] == second[:2]:
        return (min(first, second, key=lambda circle: circle.radius_m),)
    for area, ruled in ((first, second), (second, first)):
        if isinstance(ruled, Rings) and ruled.outside:
            return leave_out(area, ruled)
    if not touch(bounds(first), bounds(second)):
        return ()
    for area, other in ((first, second), (second, first)):
        if isinstance(area, Box) and contains(area, bounds(other)):
            return (other,)
    raise Untranslatable(OVERLAPPING)


def leave_out(area: Area, ruled: Rings) -> tuple[Area, ...]:
    """An area without what `ruled`, an outside, rules out."""
    hole = rings_bounds(ruled.rings)
    if isinstance(area, Rings) and area.outside:
        if touch(rings_bounds(area.rings), hole):
            raise Untranslatable(OVERLAPPING)
        return (Rings(area.rings + ruled.rings, outside=True),)
    if not touch(bounds(area), hole):
        return (area,)
    if isinstance(area, Box) and contains(area, hole):
        return (Rings(box_rings(area) + ruled.rings, loose=True),)
    raise Untranslatable(OVERLAPPING)


def intersect_boxes(first: Box, second: Box) -> tuple[Area, ...]:
    found = []
    for a in pieces(first):
        for b in pieces(second):
            both = Box(
                max(a.west, b.west),
                max(a.south, b.south),
                min(a.east, b.east),
                min(a.north, b.north),
            )
            if both.west <= both.east and both.south <= both.north:
                found.append(both)
    return unite(found)


def unite(areas: Iterable[Area]) -> tuple[Area, ...]:
    """The same points in as few areas as can be."""
    kept = join_at_antimeridian(list(dict.fromkeys(areas)))
    if EVERYWHERE in kept:
        return (EVERYWHERE,)
    if len(kept) > 1:
        boxes = [area for area in kept if isinstance(area, Box)]
        kept = [
            area
            for area in kept
            if not any(box != area and contains(box, bounds(area)) for box in boxes)
        ]
    if len(kept) < 2:
        return tuple(kept)
    others: list[Area] = []
    flat: list[Box | Rings] = []
    for area in kept:
        if isinstance(area, Circle) or has_loose_edges(area):
            others.append(area)
        else:
            flat.append(area)
    return (*join_apart(flat), *others)


def join_at_antimeridian(areas: list[Area]) -> list[Area]:
    """Two boxes that meet at the antimeridian become one that crosses it."""
    boxes = [area for area in areas if isinstance(area, Box)]
    for east in boxes:
        for west in boxes:
            if (
                east.west > west.east
                and (east.east, west.west) == (180.0, -180.0)
                and (east.south, east.north) == (west.south, west.north)
            ):
                rest = [area for area in areas if area not in (east, west)]
                return [*rest, Box(east.west, east.south, west.east, east.north)]
    return areas


def join_apart(areas: list[Box | Rings]) -> list[Area]:
    """Boxes and polygons that lie apart become one polygon; others stay as they are."""
    if len(areas) < 2:
        return list(areas)
    rings = [box_rings(area) if isinstance(area, Box) else area.rings for area in areas]
    edges = np.array([rings_bounds(each) for each in rings])
    groups: list[list[int]] = []
    group_of: dict[int, int] = {}
    for row in range(len(areas)):
        west, south, east, north = edges[row]
        near = np.flatnonzero(
            (edges[:row, 0] <= east)
            & (edges[:row, 2] >= west)
            & (edges[:row, 1] <= north)
            & (edges[:row, 3] >= south)
        )
        taken = {
            group_of[other] for other in near.tolist() if not rings_apart(rings[row], rings[other])
        }
        group = next(number for number in range(len(groups) + 1) if number not in taken)
        if group == len(groups):
            groups.append([])
        groups[group].append(row)
        group_of[row] = group
    return [
        areas[rows[0]]
        if len(rows) == 1
        else Rings(tuple(ring for row in rows for ring in rings[row]))
        for rows in groups
    ]


def pieces(box: Box) -> list[Box]:
    """A box as boxes that do not cross the antimeridian."""
    if box.west <= box.east:
        return [box]
    west, south, east, north = box
    return [Box(west, south, 180.0, north), Box(-180.0, south, east, north)]


def box_rings(box: Box) -> tuple[Ring, ...]:
    return tuple(
        ((west, south), (east, south), (east, north), (west, north), (west, south))
        for west, south, east, north in pieces(box)
    )


def rings_bounds(rings: tuple[Ring, ...]) -> Box:
    lons = [lon for ring in rings for lon, _ in ring]
    lats = [lat for ring in rings for _, lat in ring]
    return Box(min(lons), min(lats), max(lons), max(lats))


def bounds(area: Area) -> Box:
    """A box around the area."""
    if isinstance(area, Box):
        return area
    if isinstance(area, Circle):
        return Box(*circle_bounds(*area))
    return EVERYWHERE if area.outside else rings_bounds(area.rings)


def touch(first: Box, second: Box) -> bool:
    """Whether two boxes have a point in common."""
    return any(
        a.west <= b.east and b.west <= a.east and a.south <= b.north and b.south <= a.north
        for a in pieces(first)
        for b in pieces(second)
    )


def contains(box: Box, other: Box) -> bool:
    """Whether a box has all of another one in it."""
    return all(
        any(
            a.west <= b.west and b.east <= a.east and a.south <= b.south and b.north <= a.north
            for a in pieces(box)
        )
        for b in pieces(other)
    )
