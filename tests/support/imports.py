"""Translate queries and fences, and find objects by the subscriptions they become."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

import placewire
from placewire.importers import ImportOptions, ImportOutcome, import_fences, import_queries

TS = "2026-03-01T12:00:00Z"
WORDS = ["coffee", "free", "sale", "jazz", "rain", "tram"]


def options(**given: Any) -> ImportOptions:
    usual: dict[str, Any] = {"text_fields": ["message"], "place_fields": ["location"]}
    return ImportOptions(ts=TS, **{**usual, **given})


def translate(path: Path, text: str | bytes, **given: Any) -> list[ImportOutcome]:
    """What becomes of a file of percolator documents."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return list(import_queries(path, options(**given)))


def translate_fences(path: Path, text: str | bytes, **given: Any) -> list[ImportOutcome]:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return list(import_fences(path, options(**given)))


def translate_one(file: Path, query: Any, **given: Any) -> ImportOutcome:
    (outcome,) = translate(file, json.dumps({"_id": "q", "_source": {"query": query}}), **given)
    return outcome


def notes_of(outcome: ImportOutcome) -> list[str]:
    assert outcome.refusal is None, str(outcome.refusal)
    return [note.what for note in outcome.notes]


# Clauses of words


def text(query: Any) -> dict[str, Any]:
    return {"match": {"message": query}}


SQUARE = [[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]


# Files


QUERY = {"match": {"message": "coffee"}}


# The same objects


class Thing(NamedTuple):
    """An object: its words and its place."""

    words: frozenset[str]
    lon: float
    lat: float


Test = Callable[[Thing], bool]


def metres_between(lon: float, lat: float, thing: Thing) -> float:
    """Haversine on the sphere that Lucene has."""
    p, q = math.radians(lat), math.radians(thing.lat)
    h = math.sin((q - p) / 2) ** 2
    h += math.cos(p) * math.cos(q) * math.sin(math.radians(thing.lon - lon) / 2) ** 2
    return 2 * 6371008.7714 * math.asin(min(1.0, math.sqrt(h)))


def in_box(west: float, south: float, east: float, north: float, thing: Thing) -> bool:
    across = thing.lon >= west or thing.lon <= east
    return south <= thing.lat <= north and (across if west > east else west <= thing.lon <= east)


def in_ring(ring: Sequence[Sequence[float]], x: float, y: float) -> bool:
    """By the angle that the ring turns about the point; points are never on an edge here."""
    turned = 0.0
    for (ax, ay), (bx, by) in pairwise(ring):
        a, b = math.atan2(ay - y, ax - x), math.atan2(by - y, bx - x)
        turned += math.remainder(b - a, 2 * math.pi)
    return abs(turned) > math.pi


WHOLE = st.integers(-6, 6)
NUMBERS = st.integers(1, 4)


# Off every edge: corners are whole degrees, and so are the triangles'.
THINGS = st.builds(
    Thing,
    st.frozensets(st.sampled_from(WORDS), max_size=4),
    st.integers(-7, 7).map(lambda n: n + 0.3127) | st.sampled_from([179.5137, -179.4871]),
    st.integers(-7, 7).map(lambda n: n + 0.4391),
)


def found_by(events: list[dict[str, Any]], things: list[Thing]) -> set[tuple[str, str]]:
    """Which subscription, by the id of its query, has which object."""
    objects = [
        {"type": "object", "id": str(n), "ts": TS, "lon": thing.lon, "lat": thing.lat,
         "text": " ".join(sorted(thing.words)).upper()}
        for n, thing in enumerate(things)
    ]  # fmt: skip
    outcome = placewire.run([*events, *objects])
    assert outcome.dead_letters == []
    return {(m["subscription"].split("#")[0], m["object"]) for m in outcome.results}
