"""Words for what a run shows: subscriptions, distances, places and texts as a person says them."""

from __future__ import annotations

import json
from typing import Any

METRES_A_KM = 1000.0


def asked(event: dict[str, Any]) -> str:
    """What a `subscribe` event asks for."""
    if event["kind"] == "boolean":
        where = event.get("where", "")
        return where if isinstance(where, str) else json.dumps(where, ensure_ascii=False)
    k = event["k"]
    words = (" AND " if event.get("mode") == "all" else " OR ").join(event["keywords"])
    within = f", within {far(event['within_m'])}" if "within_m" in event else ""
    point = place(event["lon"], event["lat"])
    return f"the {f'{k} ' if k > 1 else ''}nearest to {point}{within}: {words}"


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
