"""Format values for people: subscriptions, regions, distances, durations, counts and lag."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from placewire.model.times import SECOND_US, parse_duration

if TYPE_CHECKING:
    from placewire.storage.notes import Lag, SourceLag

METRES_PER_KM = 1000.0
UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def format_subscription(event: dict[str, Any]) -> str:
    """Say what a `subscribe` event subscribes to, and where."""
    if event["kind"] == "boolean":
        where = event.get("where", "")
        words = where if isinstance(where, str) else json.dumps(where, ensure_ascii=False)
        region = format_region(event) if "region" in event else ""
        return " ".join(part for part in (words or "any text", region) if part)
    k = event["k"]
    if event["kind"] == "trending":
        every = f", every {format_duration(event['every'])}" if "every" in event else ""
        return f"the {k} most frequent words {format_region(event)}{every}"
    point = format_point(event["lon"], event["lat"])
    if event["kind"] == "relevant":
        reach = f", reach {format_distance(event['reach_m'])}" if "reach_m" in event else ""
        best = f"the {f'{k} ' if k > 1 else ''}most relevant near {point}{reach}"
        return f"{best}: {', '.join(event['keywords'])}"
    words = (" AND " if event.get("mode") == "all" else " OR ").join(event["keywords"])
    within = f", within {format_distance(event['within_m'])}" if "within_m" in event else ""
    return f"the {f'{k} ' if k > 1 else ''}nearest to {point}{within}: {words}"


def format_region(event: dict[str, Any]) -> str:
    """Say roughly where the region of a `subscribe` event is."""
    region = event.get("region")
    if region is None:
        return "of the world"
    if "circle" in region:
        circle = region["circle"]
        centre = format_point(circle["lon"], circle["lat"])
        return f"within {format_distance(circle['radius_m'])} of {centre}"
    if "box" in region:
        west, south, east, north = region["box"]
        return f"from {format_point(west, south)} to {format_point(east, north)}"
    return f"about {format_point(*region['polygon'][0][0])}"


def format_terms(terms: Sequence[Sequence[Any]]) -> str:
    """Format terms with their counts: coffee 12, free 7."""
    return ", ".join(f"{term} {count:,}" for term, count in terms) or "no words"


def format_score(score: float) -> str:
    """Format the score of a relevant object."""
    return f"{score:.3f}"


def format_distance(distance_m: float) -> str:
    """Format a distance to two digits or whole units: 812 m, 4.2 km, 1,735 km."""
    if round(distance_m) < METRES_PER_KM:
        return f"{distance_m:.0f} m"
    km = distance_m / METRES_PER_KM
    figure = f"{km:.1f}".removesuffix(".0") if km < 9.95 else f"{km:,.0f}"
    return f"{figure} km"


def format_point(lon: float, lat: float) -> str:
    """Format a position."""
    return f"({lon:.3f}, {lat:.3f})"


def format_duration(duration: str) -> str:
    """Format an ISO 8601 duration in the largest unit that divides it: PT10M is 10 minutes."""
    seconds = parse_duration(duration) // SECOND_US
    for size, unit in UNITS:
        if seconds >= size and seconds % size == 0:
            return f"{seconds // size:,} {unit}s" if seconds > size else f"1 {unit}"
    return "less than a second"


def format_figure(value: float) -> str:
    """Format a number for a table, in about four characters."""
    if value < 100:
        return f"{value:.2f}" if value < 10 else f"{value:.1f}"
    return f"{value:.0f}" if value < 1e5 else f"{value:.0e}"


def count_noun(number: int, one: str, many: str = "") -> str:
    """Format a count with its noun: 1 leaf, 1,200 leaves."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def quote_text(text: str) -> str:
    """Quote a text on one line, without characters of uncertain width on a terminal."""
    kept = "".join(c if c.isprintable() else " " for c in text if c != "\ufe0f")
    return f'"{" ".join(kept.split())}"'


def format_lag(lag: Lag) -> str:
    """Format the lag of every source and sink on one line."""
    parts = [f"{source.source}: {format_source_lag(source)}" for source in lag.sources]
    parts += [
        f"sink {name} lacks {count_noun(batches, 'batch', 'batches')}"
        for name, batches in lag.sinks.items()
        if batches
    ]
    return "; ".join(parts)


def format_source_lag(source: SourceLag) -> str:
    """Format the lag of one source."""
    if source.messages is not None:
        worst = max(source.partitions, key=source.partitions.__getitem__, default=None)
        several = len(source.partitions) > 1 and source.messages and worst is not None
        most = f", most in {worst}: {source.partitions[worst]:,}" if several and worst else ""
        return f"{count_noun(source.messages, 'message')} behind{most}"
    if source.files is not None:
        size = f", {source.bytes:,} bytes" if source.files and source.bytes is not None else ""
        files = f"{count_noun(source.files, 'file')} waiting{size}"
        more = source.versions
        return f"{files}, then {count_noun(more, 'version')}" if more else files
    return f"newest taken is of {source.taken}" if source.taken else "does not tell"


def format_request(asked: dict[str, Any]) -> str:
    """Format a rebalance request that is not in force yet."""
    what = " and ".join(f"{name} {asked[name]}" for name in ("plan", "workers") if name in asked)
    are = "are asked for: they are" if len(asked) > 1 else "is asked for: it is"
    return f"{what} {are} taken up with the next batch, in force with the one after"
