"""What a query means: alternatives, each an area and an expression, and how they combine.

A subscription has one region and one `where`; a query may mix places and words as it likes. So a
query is read into alternatives, of which an object must satisfy one, and each becomes a
subscription. Most queries are one alternative, and `tidy` keeps them so.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations
from math import comb
from typing import NamedTuple, TypeAlias

from placewire.imports.areas import EVERYWHERE, Area, intersect, outside, unite
from placewire.imports.reasons import Untranslatable
from placewire.model.expression import ALL, ANY, NONE, Absent, Form, Node, normal_form

MOST_ALTERNATIVES = 64
MOST_COMBINATIONS = 256


class Alternative(NamedTuple):
    """An object fits if it is in the area and its text satisfies the expression, if any."""

    area: Area
    text: Node | None


Meaning: TypeAlias = tuple[Alternative, ...]

NOTHING: Meaning = ()
EVERYTHING: Meaning = (Alternative(EVERYWHERE, None),)


def of_text(node: Node) -> Meaning:
    return (Alternative(EVERYWHERE, node),)


def of_areas(areas: Sequence[Area]) -> Meaning:
    """Whatever is in one of the areas."""
    return tidy([Alternative(area, None) for area in areas])


def every(meanings: Sequence[Meaning]) -> Meaning:
    """What satisfies all of them."""
    return reduce(both, meanings, EVERYTHING)


def both(first: Meaning, second: Meaning) -> Meaning:
    """What satisfies the two."""
    if EVERYTHING in (first, second):
        return second if first == EVERYTHING else first
    if len(first) * len(second) > MOST_ALTERNATIVES**2:
        raise too_many()
    return tidy(
        [
            Alternative(area, join(ALL, [a.text, b.text]))
            for a in first
            for b in second
            for area in intersect(a.area, b.area)
        ]
    )


def some(meanings: Sequence[Meaning]) -> Meaning:
    """What satisfies at least one of them."""
    return tidy([alternative for meaning in meanings for alternative in meaning])


def negated(meaning: Meaning) -> Meaning:
    """What does not satisfy it."""
    parts = []
    for area, text in meaning:
        others = [Alternative(rest, None) for rest in outside(area)]
        if text is not None:
            others.append(Alternative(EVERYWHERE, (NONE, (text,))))
        parts.append(tuple(others))
    return every(parts)


def at_least(count: int, meanings: Sequence[Meaning]) -> Meaning:
    """What satisfies so many of them."""
    if count <= 0:
        return EVERYTHING
    if count == 1:
        return some(meanings)
    if comb(len(meanings), count) > MOST_COMBINATIONS:
        raise Untranslatable(
            f"a minimum_should_match has more than {MOST_COMBINATIONS} combinations",
            got=f"{count} of {len(meanings)}",
        )
    return some([every(chosen) for chosen in combinations(meanings, count)])


def tidy(alternatives: Sequence[Alternative]) -> Meaning:
    """The same objects in as few alternatives as can be."""
    if len(alternatives) < 2:
        return tuple(alternatives)
    texts: dict[Area, list[Node | None]] = {}
    for area, text in alternatives:
        texts.setdefault(area, []).append(text)
    areas: dict[Node | None, list[Area]] = {}
    for area, found in texts.items():
        areas.setdefault(join(ANY, found), []).append(area)
    tidied = tuple(
        Alternative(area, text) for text, found in areas.items() for area in unite(found)
    )
    if EVERYTHING[0] in tidied:
        return EVERYTHING
    if len(tidied) > MOST_ALTERNATIVES:
        raise too_many()
    return tidied


def join(kind: str, texts: Sequence[Node | None]) -> Node | None:
    """All or any of some expressions; None is satisfied by any text."""
    nodes = dict.fromkeys(text for text in texts if text is not None)
    if not nodes or (kind == ANY and None in texts):
        return None
    parts: list[Node] = []
    for node in nodes:
        # A run within a run of the same kind is one run: nesting stays as shallow as it can.
        parts += node[1] if not isinstance(node, str) and node[0] == kind else (node,)
    return parts[0] if len(parts) == 1 else (kind, tuple(parts))


def to_where(node: Node) -> str:
    """The expression as a query string."""
    return write(normal_form(node))


def write(form: Form) -> str:
    if isinstance(form, str):
        return form
    if isinstance(form, Absent):
        return f"NOT {form.term}"
    parts = [f"({write(part)})" if is_run(part) else write(part) for part in form.parts]
    return (" AND " if form.every else " OR ").join(parts)


def is_run(form: Form) -> bool:
    return not isinstance(form, str | Absent)


def too_many() -> Untranslatable:
    return Untranslatable(f"it would need more than {MOST_ALTERNATIVES} subscriptions")
