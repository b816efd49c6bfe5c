"""Numbers in queries: degrees, distances with units, and how many of some clauses must match."""

from __future__ import annotations

import contextlib
import math
import re
from typing import Any, TypeGuard

import numpy as np

from placewire.imports.reasons import Untranslatable, shown

# Elasticsearch takes the first of these that ends the text: "mi" must come before "m".
UNITS = (
    ("in", 0.0254), ("inch", 0.0254), ("yd", 0.9144), ("yards", 0.9144),
    ("ft", 0.3048), ("feet", 0.3048), ("km", 1000.0), ("kilometers", 1000.0),
    ("NM", 1852.0), ("nmi", 1852.0), ("nauticalmiles", 1852.0),
    ("mm", 0.001), ("millimeters", 0.001), ("cm", 0.01), ("centimeters", 0.01),
    ("mi", 1609.344), ("miles", 1609.344), ("m", 1.0), ("meters", 1.0),
)  # fmt: skip

_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*", re.A)


def is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def number(value: Any, what: str, where: str) -> float:
    """A finite number, or a text that is one."""
    found = math.nan
    if is_number(value):
        with contextlib.suppress(OverflowError):
            found = float(value)
    elif isinstance(value, str) and len(value) <= 64 and _NUMBER.fullmatch(value):
        found = float(value)
    if not math.isfinite(found):
        raise Untranslatable(f"{what} must be a number", where, shown(value))
    return found


def degrees(value: Any, limit: float, where: str) -> float:
    """A longitude or latitude."""
    found = number(value, "a coordinate", where)
    if not -limit <= found <= limit:
        raise Untranslatable("a coordinate is out of range", where, str(found))
    return found


def metres(value: Any, where: str, unit: Any = "m") -> float:
    """A distance as Elasticsearch writes it: 200, "200", "1.5km"; `unit` is a bare number's."""
    usual = dict(UNITS).get(unit) if isinstance(unit, str) else None
    if usual is None:
        raise Untranslatable("an unknown unit of distance", where, shown(unit))
    if isinstance(value, str):
        for name, size in UNITS:
            if value.endswith(name):
                value, usual = value[: -len(name)], size
                break
    found = number(value, "a distance", where) * usual
    if not found > 0.0 or math.isinf(found):
        raise Untranslatable("a distance must be above zero", where, str(found))
    return found


def how_many(spec: Any, clauses: int, where: str) -> int:
    """How many of the clauses a minimum_should_match asks for, as Elasticsearch counts."""
    text = str(spec).strip() if isinstance(spec, int | str) and not isinstance(spec, bool) else "?"
    try:
        if "<" not in text:
            return simple_count(text, clauses)
        result = clauses
        for part in re.sub(r"\s*<\s*", "<", text).split():
            bound, count = part.split("<")
            if clauses <= int(bound):
                return result
            result = simple_count(count, clauses)
    except (ValueError, OverflowError):
        raise Untranslatable("an unreadable minimum_should_match", where, shown(spec)) from None
    return result


def simple_count(text: str, clauses: int) -> int:
    """`3`, `-2`, `75%` or `-25%`; percentages are cut in 32-bit floats."""
    if text.endswith("%"):
        share = int(np.float32(clauses * int(text[:-1])) * (np.float32(1) / np.float32(100)))
        return max(clauses + share if share < 0 else share, 0)
    count = int(text)
    return max(clauses + count if count < 0 else count, 0)
