"""Explain pairs of the kind `nearest`: distance, keywords, rank."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from placewire.kernels.jit import read_only
from placewire.kernels.space.circles import radii_to_limits
from placewire.kernels.space.regions import distance_m
from placewire.kinds.boolean.explain import count_probe
from placewire.kinds.candidates import ObjectBlock, Target
from placewire.kinds.explanation import (
    MatchTrace,
    describe_keywords,
    format_metres,
    format_ordinal,
    mark_keywords,
)
from placewire.kinds.nearest.match import find_near, probe_some, scan_near
from placewire.kinds.nearest.results import NearestResults, no_neighbours
from placewire.kinds.nearest.rows import nearest_columns
from placewire.model.expression import COVER_ONE
from placewire.model.subscriptions import NEVER_US
from placewire.segments.segment import make_segment

if TYPE_CHECKING:
    from placewire.explainer.context import ExplainContext, OpenSegment
    from placewire.explainer.object import ExplainedObject
    from placewire.explainer.subscription import ExplainedSubscription


def explain_nearest(
    context: ExplainContext, subscription: ExplainedSubscription, obj: ExplainedObject
) -> dict[str, Any]:
    """Explain distance and keywords, whether the object is a candidate, and its rank."""
    rows = subscription.rows
    lon, lat, within_m = nearest_columns(rows).circle[0].tolist()
    alone = make_segment(
        subscription.kind, rows._replace(expires_us=np.array([NEVER_US])), no_neighbours(rows.k)
    )
    limits = radii_to_limits(read_only(alone.index.radius))
    probe = probe_some(ObjectBlock(*obj.columns(0)), np.arange(1))
    found = scan_near(probe, Target(alone, thresholds=limits))
    every = rows.cover_mode[0] == COVER_ONE and rows.literal_term.size > 1
    facts = {
        "k": int(rows.k[0]),
        "mode": "all" if every else "any",
        "keywords": mark_keywords(subscription, obj),
        "distance_m": float(distance_m(lon, lat, obj.lon, obj.lat)),
        "within_m": within_m if math.isfinite(within_m) else None,
        "candidate": bool(found.object.size),
    }
    location = subscription.indexed
    if location is None or context.state is None:
        return facts
    segment, deltas = location.opened.segment, location.opened.entry.deltas
    within = nearest_columns(segment.rows).within_m
    results = NearestResults(segment.held, segment.index.radius, within, deltas, context.state.file)
    first = int(results.neighbours.offsets[location.row])
    count = int(results.neighbours.counts[location.row])
    held = results.neighbours.seq[first : first + count].tolist()
    distances = results.neighbours.distance[first : first + count].tolist()
    full = count == facts["k"]
    facts |= {"held": count, "kth_m": distances[-1] if full else None}
    if obj.seq in held:
        return facts | {"standing": "in", "rank": held.index(obj.seq) + 1}
    if not facts["candidate"]:
        return facts
    seq = NEVER_US if obj.seq is None else obj.seq
    if not full or (facts["distance_m"], seq) < (distances[-1], held[-1]):
        return facts | {"standing": "would enter"}
    return facts | {
        "standing": "too far",
        "too_far_by_m": round(facts["distance_m"] - distances[-1], 3),
    }


def trace_nearest(
    opened: OpenSegment, obj: ExplainedObject, now_us: int, limits: Any
) -> MatchTrace:
    """Match the object with one segment as a worker does, and count the work."""
    segment = opened.segment
    probe = probe_some(ObjectBlock(*obj.columns(now_us)), np.arange(1))
    parts = range(segment.index.partition.parts)
    found = find_near(probe, Target(segment, opened.dead, parts, limits))
    counts = np.sum([count_probe(probe, index) for index in segment.index.parts], axis=0)
    rows = np.unique(found.row).tolist()
    return MatchTrace(int(counts[0]), int(counts[2]), found.candidates, len(found.row), rows)


def add_nearest_reasons(facts: dict[str, Any], good: list[str], bad: list[str]) -> None:
    """Add reasons about keywords, distance and rank."""
    words = describe_keywords(facts["keywords"], facts["mode"] == "all")
    suits = (all if facts["mode"] == "all" else any)(one["holds"] for one in facts["keywords"])
    (good if suits else bad).append(f"the object {words}")
    away = f"it is {format_metres(facts['distance_m'])} away"
    if facts["within_m"] is not None and facts["distance_m"] > facts["within_m"]:
        bad.append(f"{away}, farther than within_m, {format_metres(facts['within_m'])}")
    else:
        good.append(away)
    standing = facts.get("standing")
    if standing == "in":
        good.append(f"it is in the result, {format_ordinal(facts['rank'])} of {facts['held']}")
    elif standing == "would enter":
        room = f"the result has {facts['held']} of {facts['k']}"
        if facts["kth_m"] is not None:
            room = f"the {format_ordinal(facts['k'])} is {format_metres(facts['kth_m'])} away"
        good.append(f"it would enter the result: {room}")
    elif standing == "too far":
        by = format_metres(facts["too_far_by_m"])
        good.append(
            f"too far to be in the result: the {format_ordinal(facts['k'])} is"
            f" {format_metres(facts['kth_m'])} away, {by} nearer"
        )
