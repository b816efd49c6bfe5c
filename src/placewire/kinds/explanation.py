"""Explain what a pair of object and subscription has in common: place, words, postings."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.space.regions import distance_m, region_containing_points
from placewire.kernels.text.hash_table import EMPTY
from placewire.kinds.boolean.scan import scan_rows
from placewire.model.expression import ALL, ANY, NONE, Node, Outline, outline_program
from placewire.model.regions import BOX, CIRCLE, EVERYWHERE
from placewire.model.subscriptions import NEVER_US, SubscriptionRows
from placewire.segments.segment import NONE_DEAD

if TYPE_CHECKING:
    from placewire.explainer.object import Seen
    from placewire.explainer.subscription import Subscribed

Point = list[float]


def explain_region(rows: SubscriptionRows, seen: Seen) -> dict[str, Any]:
    """The region of the one row, and what the exact test says of the object."""
    kind, box, shape = int(rows.region_kind[0]), rows.box[0], rows.shape
    inside = region_containing_points(kind, box, shape, np.array([seen.lon]), np.array([seen.lat]))
    told: dict[str, Any] = {"kind": "everywhere", "inside": bool(inside[0])}
    if kind == EVERYWHERE:
        return told
    if kind == BOX:
        edges = box.tolist()
        return told | {"kind": "box", "box": edges, "beyond": beyond_box(edges, seen)}
    if kind == CIRCLE:
        lon, lat, radius_m = shape.tolist()
        away = float(distance_m(lon, lat, seen.lon, seen.lat))
        return told | {
            "kind": "circle",
            "circle": {"lon": lon, "lat": lat, "radius_m": radius_m},
            "centre_m": away,
            "edge_m": abs(round(away - radius_m, 3)),
        }
    rings = read_rings(shape.tolist())
    return told | {"kind": "polygon", "polygon": rings} | look_at_edges(rings, seen)


def beyond_box(box: list[float], seen: Seen) -> list[dict[str, Any]]:
    """The sides of a box that the object is beyond, and by how much; none if it is inside."""
    west, south, east, north = box
    beyond = []
    if seen.lat > north:
        beyond.append(("north", seen.lat - north, (seen.lon, north)))
    elif seen.lat < south:
        beyond.append(("south", south - seen.lat, (seen.lon, south)))
    spanned = west <= seen.lon <= east if west <= east else seen.lon >= west or seen.lon <= east
    if not spanned:
        to_west, to_east = (west - seen.lon) % 360.0, (seen.lon - east) % 360.0
        if to_west <= to_east:
            beyond.append(("west", to_west, (west, seen.lat)))
        else:
            beyond.append(("east", to_east, (east, seen.lat)))
    return [
        {"side": side, "by_deg": by, "by_m": float(distance_m(seen.lon, seen.lat, *at))}
        for side, by, at in beyond
    ]


def read_rings(shape: list[float]) -> list[list[Point]]:
    """The rings of a polygon's shape."""
    rings, at = [], 0
    while at < len(shape):
        count = int(shape[at])
        flat = shape[at + 1 : at + 1 + 2 * count]
        rings.append([[*point] for point in zip(flat[::2], flat[1::2], strict=True)])
        at += 1 + 2 * count
    return rings


def look_at_edges(rings: list[list[Point]], seen: Seen) -> dict[str, Any]:
    """Whether the object is on an edge, how many it crosses eastwards, how far the nearest is.

    The distance is to the nearest point of an edge in lon/lat, about.
    """
    x, y = seen.lon, seen.lat
    on_edge, crossed, nearest = False, 0, math.inf
    flatten = max(math.cos(math.radians(y)), 1e-9)
    for ring in rings:
        for (ax, ay), (bx, by) in pairwise(ring):
            on_edge |= (
                (bx - ax) * (y - ay) == (by - ay) * (x - ax)
                and min(ax, bx) <= x <= max(ax, bx)
                and min(ay, by) <= y <= max(ay, by)
            )
            if (ay > y) != (by > y) and x < (bx - ax) * (y - ay) / (by - ay) + ax:
                crossed += 1
            dx, dy = (bx - ax) * flatten, by - ay
            along = (x - ax) * flatten * dx + (y - ay) * dy
            length = dx * dx + dy * dy
            share = min(max(along / length, 0.0), 1.0) if length else 0.0
            foot = ax + share * (bx - ax), ay + share * (by - ay)
            nearest = min(nearest, float(distance_m(x, y, *foot)))
    return {"on_edge": on_edge, "edges_crossed": crossed, "edge_m": nearest}


Leaf = Callable[[Any], dict[str, Any]]


def fits(rows: SubscriptionRows, seen: Seen, everywhere: bool = False) -> bool:
    """Whether the object suits the one boolean row, by the kernels of matching; time apart."""
    rows = rows._replace(expires_us=np.array([NEVER_US]))
    if everywhere:
        rows = rows._replace(region_kind=np.array([EVERYWHERE], np.uint8))
    columns = seen.columns(0)[1:]
    return bool(scan_rows(*columns, rows, NONE_DEAD)[0].size)


def explain_where(subscribed: Subscribed, seen: Seen) -> dict[str, Any] | None:
    """The expression as a tree of what holds; None if any text suits.

    It is as it was written if it was given, or else as the state keeps it, in its normal form.
    """
    rows = subscribed.rows
    if rows.literal_term.size == 0:
        return None
    holds = fits(rows, seen, everywhere=True)
    if subscribed.node is not None:
        have = set(seen.words.values())
        tree = mark(subscribed.node, lambda word: {"term": word, "holds": word in have})
    else:
        outline = outline_program(rows.literal_true.tolist(), rows.literal_false.tolist())
        assert outline is not None
        tree = mark(outline, lambda literal: mark_literal(subscribed, seen, literal))
    return {"holds": holds, "as_written": subscribed.node is not None, "tree": tree}


def mark_literal(subscribed: Subscribed, seen: Seen, literal: int) -> dict[str, Any]:
    """A term of a row; its word is None if no retained object has it."""
    term = int(subscribed.rows.literal_term[literal])
    marked: dict[str, Any] = {"term": subscribed.words.get(term), "holds": term in seen.words}
    if marked["term"] is None:
        marked["hash"] = f"{term:016x}"
    return marked


def mark(node: Node | Outline, leaf: Leaf) -> dict[str, Any]:
    """A tree with what holds at every node."""
    if not isinstance(node, tuple):
        return leaf(node)
    kind, children = node
    marked = [mark(child, leaf) for child in children]
    held = [child["holds"] for child in marked]
    holds = {ALL: all(held), ANY: any(held), NONE: not any(held)}[kind]
    return {kind: marked, "holds": holds}


def mark_keywords(subscribed: Subscribed, seen: Seen) -> list[dict[str, Any]]:
    """The keywords of a `nearest` or `relevant` row, each there or not."""
    literals = range(subscribed.rows.literal_term.size)
    marked = [mark_literal(subscribed, seen, literal) for literal in literals]
    return sorted(marked, key=lambda one: one["term"] or "\U0010ffff")


class Post(NamedTuple):
    """A posting: its term, its cell (None where a term's list has no cells), its part."""

    term: int
    level: int | None
    code: int
    part: int = 0


class Looked(NamedTuple):
    """What was done: terms that have postings, cells met, postings looked at, exact tests, pairs.

    `rows` are the pairs' rows in the segment.
    """

    terms: int
    cells: int
    candidates: int
    verified: int
    rows: list[int]


def terms_by_number(table: NDArray[np.uint64]) -> dict[int, int]:
    """The hashes of a table by their numbers."""
    filled = np.flatnonzero(table[1::2] != EMPTY)
    return dict(zip(table[2 * filled + 1].tolist(), table[2 * filled].tolist(), strict=True))
