"""Areas and their exact union, intersection and complement.

An area is anything that a region can be. The rings of a polygon are even-odd, so the rings of
disjoint polygons form one polygon, and a ring around the world turns a polygon into its
complement. A result that no region can express raises Untranslatable.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from placewire.importers.report import Untranslatable
from placewire.model.regions import circle_bounds

Ring: TypeAlias = tuple[tuple[float, float], ...]

MOST_PAIRS = 4_000_000  # of edges; with more of them, polygons count as touching without a test
SLACK = 1e-12  # degrees squared: a point this near to a line counts as on it
OUTSIDE_A_CIRCLE = "everything outside a circle is no region"
OVERLAPPING = "areas that are joined by AND overlap in part: the overlap is no region"


class Box(NamedTuple):
    """A box in degrees; west > east crosses the antimeridian."""

    west: float
    south: float
    east: float
    north: float


class Circle(NamedTuple):
    """A circle by its centre in degrees and its radius."""

    lon: float
    lat: float
    radius_m: float


class Rings(NamedTuple):
    """The even-odd inside of rings, or everything outside.

    `excluded_edges` means that some edges belong to an excluded area.
    """

    rings: tuple[Ring, ...]
    outside: bool = False
    excluded_edges: bool = False


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


def has_excluded_edges(area: Area) -> bool:
    return isinstance(area, Rings) and (area.outside or area.excluded_edges)


def complement(area: Area) -> tuple[Area, ...]:
    """Everything outside the area; both include the edge."""
    if area == EVERYWHERE:
        return ()
    if isinstance(area, Circle):
        raise Untranslatable(OUTSIDE_A_CIRCLE)
    if isinstance(area, Box):
        return (Rings(box_rings(area), outside=True),)
    return (area._replace(outside=not area.outside),)


def intersect(first: Area, second: Area) -> tuple[Area, ...]:
    """The intersection, as areas that are disjoint or share an edge."""
    if first in (EVERYWHERE, second):
        return (second,)
    if second == EVERYWHERE:
        return (first,)
    if isinstance(first, Box) and isinstance(second, Box):
        return intersect_boxes(first, second)
    if isinstance(first, Circle) and isinstance(second, Circle) and first[:2] == second[:2]:
        return (min(first, second, key=lambda circle: circle.radius_m),)
    for area, excluded in ((first, second), (second, first)):
        if isinstance(excluded, Rings) and excluded.outside:
            return subtract(area, excluded)
    if not touch(bounds(first), bounds(second)):
        return ()
    for area, other in ((first, second), (second, first)):
        if isinstance(area, Box) and contains(area, bounds(other)):
            return (other,)
    raise Untranslatable(OVERLAPPING)


def subtract(area: Area, excluded: Rings) -> tuple[Area, ...]:
    """An area without the rings of `excluded`, which is an outside."""
    hole = rings_bounds(excluded.rings)
    if isinstance(area, Rings) and area.outside:
        if touch(rings_bounds(area.rings), hole):
            raise Untranslatable(OVERLAPPING)
        return (Rings(area.rings + excluded.rings, outside=True),)
    if not touch(bounds(area), hole):
        return (area,)
    if isinstance(area, Box) and contains(area, hole):
        return (Rings(box_rings(area) + excluded.rings, excluded_edges=True),)
    raise Untranslatable(OVERLAPPING)


def intersect_boxes(first: Box, second: Box) -> tuple[Area, ...]:
    found = []
    for a in split_at_antimeridian(first):
        for b in split_at_antimeridian(second):
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
    """The union in as few areas as possible."""
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
        if isinstance(area, Circle) or has_excluded_edges(area):
            others.append(area)
        else:
            flat.append(area)
    return (*merge_disjoint(flat), *others)


def join_at_antimeridian(areas: list[Area]) -> list[Area]:
    """Replace two boxes that meet at the antimeridian with one that crosses it."""
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


def merge_disjoint(areas: list[Box | Rings]) -> list[Area]:
    """Merge disjoint boxes and polygons into one polygon; keep the others."""
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
            group_of[other] for other in near.tolist() if not are_disjoint(rings[row], rings[other])
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


def split_at_antimeridian(box: Box) -> list[Box]:
    """A box as boxes that do not cross the antimeridian."""
    if box.west <= box.east:
        return [box]
    west, south, east, north = box
    return [Box(west, south, 180.0, north), Box(-180.0, south, east, north)]


def box_rings(box: Box) -> tuple[Ring, ...]:
    return tuple(
        ((west, south), (east, south), (east, north), (west, north), (west, south))
        for west, south, east, north in split_at_antimeridian(box)
    )


def rings_bounds(rings: tuple[Ring, ...]) -> Box:
    lons = [lon for ring in rings for lon, _ in ring]
    lats = [lat for ring in rings for _, lat in ring]
    return Box(min(lons), min(lats), max(lons), max(lats))


def bounds(area: Area) -> Box:
    if isinstance(area, Box):
        return area
    if isinstance(area, Circle):
        return Box(*circle_bounds(*area))
    return EVERYWHERE if area.outside else rings_bounds(area.rings)


def touch(first: Box, second: Box) -> bool:
    """Whether two boxes have a point in common."""
    return any(
        a.west <= b.east and b.west <= a.east and a.south <= b.north and b.south <= a.north
        for a in split_at_antimeridian(first)
        for b in split_at_antimeridian(second)
    )


def contains(box: Box, other: Box) -> bool:
    """Whether a box contains all of another one."""
    return all(
        any(
            a.west <= b.west and b.east <= a.east and a.south <= b.south and b.north <= a.north
            for a in split_at_antimeridian(box)
        )
        for b in split_at_antimeridian(other)
    )


def are_disjoint(first: tuple[Ring, ...], second: tuple[Ring, ...]) -> bool:
    """Whether two polygons certainly have no point in common."""
    edges, others = ring_edges(first), ring_edges(second)
    near, other_near = edges_near(edges, others), edges_near(others, edges)
    if len(near) * len(other_near) > MOST_PAIRS:
        return False
    if len(near) and len(other_near) and any_touch(near, other_near):
        return False
    return not any(in_rings(ring[0], others) for ring in first) and not any(
        in_rings(ring[0], edges) for ring in second
    )


def ring_edges(rings: tuple[Ring, ...]) -> NDArray[np.float64]:
    """The edges of rings as rows of x, y, x, y."""
    found = []
    for ring in rings:
        positions = np.array(ring)
        found.append(np.hstack([positions[:-1], positions[1:]]))
    return np.vstack(found)


def edges_near(edges: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """The edges whose bounding boxes touch the bounding box of the others."""
    west, east = others[:, 0::2].min(), others[:, 0::2].max()
    south, north = others[:, 1::2].min(), others[:, 1::2].max()
    xs, ys = edges[:, 0::2], edges[:, 1::2]
    near = (
        (xs.min(axis=1) <= east)
        & (xs.max(axis=1) >= west)
        & (ys.min(axis=1) <= north)
        & (ys.max(axis=1) >= south)
    )
    kept: NDArray[np.float64] = edges[near]
    return kept


def any_touch(edges: NDArray[np.float64], others: NDArray[np.float64]) -> bool:
    """Whether any two edges cross or touch: each has ends on both sides of the other, or on it."""
    ax, ay, bx, by = edges.T[:, :, None]
    cx, cy, dx, dy = others.T[:, None, :]
    boxes = (
        (np.minimum(ax, bx) <= np.maximum(cx, dx))
        & (np.maximum(ax, bx) >= np.minimum(cx, dx))
        & (np.minimum(ay, by) <= np.maximum(cy, dy))
        & (np.maximum(ay, by) >= np.minimum(cy, dy))
    )
    c_side = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    d_side = (bx - ax) * (dy - ay) - (by - ay) * (dx - ax)
    a_side = (dx - cx) * (ay - cy) - (dy - cy) * (ax - cx)
    b_side = (dx - cx) * (by - cy) - (dy - cy) * (bx - cx)
    meet = ~same_side(c_side, d_side) & ~same_side(a_side, b_side)
    return bool((boxes & meet).any())


def same_side(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.bool_]:
    return ((first > SLACK) & (second > SLACK)) | ((first < -SLACK) & (second < -SLACK))


def in_rings(point: tuple[float, float], edges: NDArray[np.float64]) -> bool:
    """Whether a point that is on no edge is inside, by the even-odd rule."""
    x, y = point
    ax, ay, bx, by = edges[(edges[:, 1] > y) != (edges[:, 3] > y)].T
    return bool(np.count_nonzero(x < (bx - ax) * (y - ay) / (by - ay) + ax) % 2)
