"""What a query matches, as alternatives of an area and an expression, and their combinations.

A subscription has one region and one `where`; a query may mix places and words freely. So a query
becomes alternatives, of which an object must satisfy one, and each becomes a subscription. Most
queries are one alternative, and `simplify` keeps them so.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations
from math import comb
from typing import NamedTuple, TypeAlias

from placewire.importers.areas import EVERYWHERE, Area, complement, intersect, unite
from placewire.importers.report import Untranslatable
from placewire.model.expression import ALL, ANY, NONE, Absent, Form, Node, normal_form

MOST_ALTERNATIVES = 64
MOST_COMBINATIONS = 256


class Alternative(NamedTuple):
    """Matches objects in the area whose text satisfies the expression, if there is one."""

    area: Area
    text: Node | None


Alternatives: TypeAlias = tuple[Alternative, ...]

NOTHING: Alternatives = ()
EVERYTHING: Alternatives = (Alternative(EVERYWHERE, None),)


def from_text(node: Node) -> Alternatives:
    """Match any object whose text satisfies the expression."""
    return (Alternative(EVERYWHERE, node),)


def from_areas(areas: Sequence[Area]) -> Alternatives:
    """Match any object in one of the areas."""
    return simplify([Alternative(area, None) for area in areas])


def all_of(parts: Sequence[Alternatives]) -> Alternatives:
    """Match what all parts match."""
    return reduce(both, parts, EVERYTHING)


def both(first: Alternatives, second: Alternatives) -> Alternatives:
    """Match what both match."""
    if EVERYTHING in (first, second):
        return second if first == EVERYTHING else first
    if len(first) * len(second) > MOST_ALTERNATIVES**2:
        raise too_many()
    return simplify(
        [
            Alternative(area, join_texts(ALL, [a.text, b.text]))
            for a in first
            for b in second
            for area in intersect(a.area, b.area)
        ]
    )


def any_of(parts: Sequence[Alternatives]) -> Alternatives:
    """Match what at least one part matches."""
    return simplify([alternative for alternatives in parts for alternative in alternatives])


def negate(alternatives: Alternatives) -> Alternatives:
    """Match everything else."""
    parts = []
    for area, text in alternatives:
        others = [Alternative(rest, None) for rest in complement(area)]
        if text is not None:
            others.append(Alternative(EVERYWHERE, (NONE, (text,))))
        parts.append(tuple(others))
    return all_of(parts)


def at_least(count: int, parts: Sequence[Alternatives]) -> Alternatives:
    """Match what at least `count` parts match."""
    if count <= 0:
        return EVERYTHING
    if count == 1:
        return any_of(parts)
    if comb(len(parts), count) > MOST_COMBINATIONS:
        raise Untranslatable(
            f"a minimum_should_match has more than {MOST_COMBINATIONS} combinations",
            got=f"{count} of {len(parts)}",
        )
    return any_of([all_of(chosen) for chosen in combinations(parts, count)])


def simplify(alternatives: Sequence[Alternative]) -> Alternatives:
    """Match the same objects with as few alternatives as possible."""
    if len(alternatives) < 2:
        return tuple(alternatives)
    texts: dict[Area, list[Node | None]] = {}
    for area, text in alternatives:
        texts.setdefault(area, []).append(text)
    areas: dict[Node | None, list[Area]] = {}
    for area, found in texts.items():
        areas.setdefault(join_texts(ANY, found), []).append(area)
    simplified = tuple(
        Alternative(area, text) for text, found in areas.items() for area in unite(found)
    )
    if EVERYTHING[0] in simplified:
        return EVERYTHING
    if len(simplified) > MOST_ALTERNATIVES:
        raise too_many()
    return simplified


def join_texts(kind: str, texts: Sequence[Node | None]) -> Node | None:
    """Join expressions by ALL or ANY; None is an expression that any text satisfies."""
    nodes = dict.fromkeys(text for text in texts if text is not None)
    if not nodes or (kind == ANY and None in texts):
        return None
    parts: list[Node] = []
    for node in nodes:
        # Flatten a group within a group of the same kind, to keep nesting shallow.
        parts += node[1] if not isinstance(node, str) and node[0] == kind else (node,)
    return parts[0] if len(parts) == 1 else (kind, tuple(parts))


def to_where(node: Node) -> str:
    """Format the expression as a query string."""
    return format_form(normal_form(node))


def format_form(form: Form) -> str:
    if isinstance(form, str):
        return form
    if isinstance(form, Absent):
        return f"NOT {form.term}"
    parts = [
        format_form(part) if isinstance(part, str | Absent) else f"({format_form(part)})"
        for part in form.parts
    ]
    return (" AND " if form.every else " OR ").join(parts)


def too_many() -> Untranslatable:
    return Untranslatable(f"it would need more than {MOST_ALTERNATIVES} subscriptions")
