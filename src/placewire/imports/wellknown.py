"""Well-known text, as `POLYGON ((..))` and `BBOX (..)`, into the shapes that GeoJSON has."""

from __future__ import annotations

import re
from typing import Any

from placewire.imports.reasons import Untranslatable, shown

MOST_NESTED = 8
DEPTHS = {"POINT": 0, "LINESTRING": 1, "MULTIPOINT": 1, "POLYGON": 2, "MULTILINESTRING": 2}
DEPTHS["MULTIPOLYGON"] = 3

_HEAD = re.compile(r"\s*([A-Za-z]+)\s*(?:[Zz]\s*)?\(")
_LEXEME = re.compile(r"\s*([(),]|[^\s(),]+)")


def read_wkt(text: str, where: str) -> dict[str, Any]:
    """A shape; raises Untranslatable."""
    head = _HEAD.match(text)
    if head is None:
        raise Untranslatable("unreadable well-known text", where, shown(text))
    try:
        return to_shape(head.group(1).upper(), nested(text[head.end() - 1 :], where), where)
    except LookupError:  # parentheses with nothing in them
        raise Untranslatable("unreadable well-known text", where, shown(text)) from None


def to_shape(name: str, body: list[Any], where: str) -> dict[str, Any]:
    """What the name makes of the numbers."""
    if name in ("BBOX", "ENVELOPE"):
        if len(body) != 4:
            raise Untranslatable("a box must have four numbers", where, str(len(body)))
        west, east, north, south = (part[0] if isinstance(part, list) else part for part in body)
        return {"type": "envelope", "coordinates": [[west, north], [east, south]]}
    if name not in DEPTHS:
        raise Untranslatable("well-known text of an unknown type", where, shown(name))
    if name == "MULTIPOINT":  # each point may have parentheses of its own
        body = [part[0] if isinstance(part[0], list) else part for part in body]
    return {"type": name.lower(), "coordinates": body[0] if DEPTHS[name] == 0 else body}


def nested(text: str, where: str) -> list[Any]:
    """Parentheses as lists; numbers side by side are one position."""
    stack: list[list[Any]] = []
    position: list[float] | None = None
    at = 0
    while (match := _LEXEME.match(text, at)) is not None:
        lexeme, at = match.group(1), match.end()
        if lexeme == "(":
            if len(stack) == MOST_NESTED:
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
