"""Facts and phrases of explanations that several kinds share: region, expression, postings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from placewire.kernels.jit import read_only
from placewire.kernels.space.regions import distance_m, region_containing_points
from placewire.kernels.text.hash_table import EMPTY
from placewire.kinds.boolean.kernels.match import objects_satisfying_rows
from placewire.kinds.boolean.kernels.postings import predicates_of
from placewire.kinds.boolean.match import make_probe
from placewire.model.arrays import U64
from placewire.model.expression import ALL, ANY, NONE, Node, Outline, outline_program
from placewire.model.regions import BOX, CIRCLE, EVERYWHERE
from placewire.model.subscriptions import NEVER_US, SubscriptionRows
from placewire.segments.segment import NONE_DEAD

if TYPE_CHECKING:
    from placewire.explainer.object import ExplainedObject
    from placewire.explainer.subscription import ExplainedSubscription

Point = list[float]
Leaf = Callable[[Any], dict[str, Any]]
MOST_WORDS = 6  # in a sentence; the JSON has all


def explain_region(rows: SubscriptionRows, obj: ExplainedObject) -> dict[str, Any]:
    """Describe the region of the row, and test exactly whether it contains the object."""
    kind, box, shape = int(rows.region_kind[0]), rows.box[0], rows.shape
    inside = region_containing_points(kind, box, shape, np.array([obj.lon]), np.array([obj.lat]))
    facts: dict[str, Any] = {"kind": "everywhere", "inside": bool(inside[0])}
    if kind == EVERYWHERE:
        return facts
    if kind == BOX:
        edges = box.tolist()
        return facts | {"kind": "box", "box": edges, "beyond": measure_beyond_box(edges, obj)}
    if kind == CIRCLE:
        lon, lat, radius_m = shape.tolist()
        away = float(distance_m(lon, lat, obj.lon, obj.lat))
        return facts | {
            "kind": "circle",
            "circle": {"lon": lon, "lat": lat, "radius_m": radius_m},
            "centre_m": away,
            "edge_m": abs(round(away - radius_m, 3)),
        }
    rings = read_rings(shape.tolist())
    return facts | {"kind": "polygon", "polygon": rings} | measure_edges(rings, obj)


def measure_beyond_box(box: list[float], obj: ExplainedObject) -> list[dict[str, Any]]:
    """Measure how far the object is past each side of a box; empty if it is inside."""
    west, south, east, north = box
    beyond = []
    if obj.lat > north:
        beyond.append(("north", obj.lat - north, (obj.lon, north)))
    elif obj.lat < south:
        beyond.append(("south", south - obj.lat, (obj.lon, south)))
    spanned = west <= obj.lon <= east if west <= east else obj.lon >= west or obj.lon <= east
    if not spanned:
        to_west, to_east = (west - obj.lon) % 360.0, (obj.lon - east) % 360.0
        if to_west <= to_east:
            beyond.append(("west", to_west, (west, obj.lat)))
        else:
            beyond.append(("east", to_east, (east, obj.lat)))
    return [
        {"side": side, "by_deg": by, "by_m": float(distance_m(obj.lon, obj.lat, *at))}
        for side, by, at in beyond
    ]


def read_rings(shape: list[float]) -> list[list[Point]]:
    """Read the rings of a polygon's shape."""
    rings, at = [], 0
    while at < len(shape):
        count = int(shape[at])
        flat = shape[at + 1 : at + 1 + 2 * count]
        rings.append([[*point] for point in zip(flat[::2], flat[1::2], strict=True)])
        at += 1 + 2 * count
    return rings


def measure_edges(rings: list[list[Point]], obj: ExplainedObject) -> dict[str, Any]:
    """Test whether the object is on an edge, count edges east of it, measure the nearest.

    The distance is approximate: to the point of an edge that is nearest in lon/lat.
    """
    x, y = obj.lon, obj.lat
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


def row_matches(rows: SubscriptionRows, obj: ExplainedObject, everywhere: bool = False) -> bool:
    """Whether the object matches the boolean row in the matching kernels, ignoring expiry."""
    rows = rows._replace(expires_us=np.array([NEVER_US]))
    if everywhere:
        rows = rows._replace(region_kind=np.array([EVERYWHERE], np.uint8))
    probe = make_probe(*obj.columns(0))
    found, *_ = objects_satisfying_rows(probe, predicates_of(rows), read_only(NONE_DEAD))
    return bool(found.size)


def explain_where(
    subscription: ExplainedSubscription, obj: ExplainedObject
) -> dict[str, Any] | None:
    """Evaluate the expression as a tree; None if any text matches.

    The tree is as written if the subscription was given as JSON, otherwise in normal form.
    """
    rows = subscription.rows
    if rows.literal_term.size == 0:
        return None
    holds = row_matches(rows, obj, everywhere=True)
    if subscription.node is not None:
        have = set(obj.words.values())
        tree = mark_tree(subscription.node, lambda word: {"term": word, "holds": word in have})
    else:
        outline = outline_program(rows.literal_true.tolist(), rows.literal_false.tolist())
        assert outline is not None
        tree = mark_tree(outline, lambda literal: mark_literal(subscription, obj, literal))
    return {"holds": holds, "as_written": subscription.node is not None, "tree": tree}


def mark_literal(
    subscription: ExplainedSubscription, obj: ExplainedObject, literal: int
) -> dict[str, Any]:
    """Mark whether the object has a term of the row; the term's word may be unknown."""
    term = int(subscription.rows.literal_term[literal])
    marked: dict[str, Any] = {"term": subscription.words.get(term), "holds": term in obj.words}
    if marked["term"] is None:
        marked["hash"] = f"{term:016x}"
    return marked


def mark_tree(node: Node | Outline, leaf: Leaf) -> dict[str, Any]:
    """Mark for every node of a tree whether it holds."""
    if not isinstance(node, tuple):
        return leaf(node)
    kind, children = node
    marked = [mark_tree(child, leaf) for child in children]
    held = [child["holds"] for child in marked]
    holds = {ALL: all(held), ANY: any(held), NONE: not any(held)}[kind]
    return {kind: marked, "holds": holds}


def mark_keywords(
    subscription: ExplainedSubscription, obj: ExplainedObject
) -> list[dict[str, Any]]:
    """Mark for each keyword of a row whether the object has it."""
    literals = range(subscription.rows.literal_term.size)
    marked = [mark_literal(subscription, obj, literal) for literal in literals]
    return sorted(marked, key=lambda one: one["term"] or "\U0010ffff")


class PostingRef(NamedTuple):
    """A posting: its term, its cell (level is None without cells), and its part of the index."""

    term: int | None  # None: for any text
    level: int | None
    code: int
    part: int = 0


class MatchTrace(NamedTuple):
    """The work of matching one object with a segment, and the rows that it matched.

    Counts terms with postings, cells visited, postings read and exact tests.
    """

    terms: int
    cells: int
    candidates: int
    verified: int
    rows: list[int]


def terms_by_number(table: U64) -> dict[int, int]:
    """Map term numbers of a hash table to hashes."""
    filled = np.flatnonzero(table[1::2] != EMPTY)
    return dict(zip(table[2 * filled + 1].tolist(), table[2 * filled].tolist(), strict=True))


def describe_keywords(keywords: Sequence[dict[str, Any]], every: bool) -> str:
    """Describe which keywords an object has or lacks."""
    has = [quote_term(one) for one in keywords if one["holds"]]
    lacks = [quote_term(one) for one in keywords if not one["holds"]]
    if every and lacks:
        return f"lacks {join_shortened(lacks)}"
    if has:
        return f"has {join_shortened(has)}"
    return describe_none(lacks) if len(lacks) > 1 else f"lacks {lacks[0]}"


def describe_none(words: list[str]) -> str:
    """State that an object has none of some words."""
    if len(words) == 2:
        return f"has neither {words[0]} nor {words[1]}"
    return f"has none of {join_shortened(words, ', ')}"


def join_shortened(words: list[str], joint: str = " and ") -> str:
    """Join words into a phrase; replace those past MOST_WORDS by their number."""
    if len(words) <= MOST_WORDS:
        return joint.join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
    return f"{', '.join(words[:MOST_WORDS])} and {len(words) - MOST_WORDS} more"


def join_words(words: list[str]) -> str:
    """Join words into a phrase."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def quote_term(leaf: dict[str, Any]) -> str:
    """Quote the word of a term, or show its hash if no retained object has the word."""
    if leaf["term"] is not None:
        return f"'{leaf['term']}'"
    return f"#{leaf['hash'][:8]} (a word that no retained object has)"


def format_metres(value: float) -> str:
    """Format a distance with few digits."""
    if value < 10:
        return f"{value:.3f}".rstrip("0").rstrip(".") + " m"
    if value < 1_000:
        return f"{value:.0f} m"
    return f"{value / 1_000:.1f} km" if value < 100_000 else f"{value / 1_000:,.0f} km"


def format_ordinal(number: int) -> str:
    """Format a rank: 1st, 2nd, 3rd, 4th."""
    if 10 < number % 100 < 20:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
