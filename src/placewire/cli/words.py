"""Words for what commands show: subscriptions, distances, places and texts as a person says it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from placewire.model.times import parse_duration

METRES_A_KM = 1000.0
SECOND_US = 1_000_000
UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def asked(event: dict[str, Any]) -> str:
    """What a `subscribe` event asks for."""
    if event["kind"] == "boolean":
        where = event.get("where", "")
        return where if isinstance(where, str) else json.dumps(where, ensure_ascii=False)
    k = event["k"]
    if event["kind"] == "trending":
        every = f", every {lasting(event['every'])}" if "every" in event else ""
        return f"the {k} most frequent words {around(event)}{every}"
    point = place(event["lon"], event["lat"])
    if event["kind"] == "relevant":
        reach = f", reach {far(event['reach_m'])}" if "reach_m" in event else ""
        best = f"the {f'{k} ' if k > 1 else ''}most relevant near {point}{reach}"
        return f"{best}: {', '.join(event['keywords'])}"
    words = (" AND " if event.get("mode") == "all" else " OR ").join(event["keywords"])
    within = f", within {far(event['within_m'])}" if "within_m" in event else ""
    return f"the {f'{k} ' if k > 1 else ''}nearest to {point}{within}: {words}"


def measured(measure: float, scored: bool) -> str:
    """Why an object is in a result: how far it is, or how well it suits."""
    return f"{measure:.3f}" if scored else far(measure)


def counted(terms: Sequence[Sequence[Any]]) -> str:
    """Terms with their counts: coffee 12, free 7."""
    return ", ".join(f"{term} {count:,}" for term, count in terms) or "no words"


def around(event: dict[str, Any]) -> str:
    """Where a region is, roughly."""
    region = event.get("region")
    if region is None:
        return "of the world"
    if "circle" in region:
        circle = region["circle"]
        return f"within {far(circle['radius_m'])} of {place(circle['lon'], circle['lat'])}"
    if "box" in region:
        west, south, east, north = region["box"]
        return f"from {place(west, south)} to {place(east, north)}"
    return f"about {place(*region['polygon'][0][0])}"


def lasting(duration: str) -> str:
    """A duration in its largest unit that it is whole in: PT10M is 10 minutes."""
    seconds = parse_duration(duration) // SECOND_US
    for size, unit in UNITS:
        if seconds >= size and seconds % size == 0:
            return f"{seconds // size:,} {unit}s" if seconds > size else f"1 {unit}"
    return "less than a second"


def far(distance_m: float) -> str:
    """A distance, as exact as anybody cares: 812 m, 4.2 km, 1,735 km."""
    if round(distance_m) < METRES_A_KM:
        return f"{distance_m:.0f} m"
    km = distance_m / METRES_A_KM
    figure = f"{km:.1f}".removesuffix(".0") if km < 9.95 else f"{km:,.0f}"
    return f"{figure} km"


def place(lon: float, lat: float) -> str:
    return f"({lon:.3f}, {lat:.3f})"


def quoted(text: str) -> str:
    """A text on one line, without what makes a terminal's columns uncertain."""
    kept = "".join(c if c.isprintable() else " " for c in text if c != "\ufe0f")
    return f'"{" ".join(kept.split())}"'
