"""Explain pairs of the kind `nearest`: distance, words, and the place in the result."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from placewire.kernels.space.circles import radii_to_limits
from placewire.kernels.space.regions import distance_m
from placewire.kinds.boolean.explain import meet
from placewire.kinds.candidates import ObjectBlock, Target
from placewire.kinds.explanation import Looked, mark_keywords
from placewire.kinds.nearest.match import find_near, probe_some, scan_near
from placewire.kinds.nearest.results import NearestResults, no_neighbours
from placewire.kinds.nearest.rows import read_points
from placewire.model.expression import COVER_ONE
from placewire.model.subscriptions import NEVER_US
from placewire.segments.segment import make_segment

if TYPE_CHECKING:
    from placewire.explain.context import ExplainContext, Live
    from placewire.explain.object import Seen
    from placewire.explain.subscription import Subscribed


def explain_nearest(ground: ExplainContext, subscribed: Subscribed, seen: Seen) -> dict[str, Any]:
    """Distance and words, whether that makes a candidate, and how it stands in the result."""
    rows = subscribed.rows
    lon, lat, within_m = (float(column[0]) for column in read_points(rows))
    alone = make_segment(
        subscribed.kind, rows._replace(expires_us=np.array([NEVER_US])), no_neighbours(rows.k)
    )
    limits = radii_to_limits(alone.index.radius)
    probe = probe_some(ObjectBlock(*seen.columns(0)), np.arange(1))
    found = scan_near(probe, Target(alone, thresholds=limits))
    every = rows.cover_mode[0] == COVER_ONE and rows.literal_term.size > 1
    told = {
        "k": int(rows.k[0]),
        "mode": "all" if every else "any",
        "keywords": mark_keywords(subscribed, seen),
        "distance_m": float(distance_m(lon, lat, seen.lon, seen.lat)),
        "within_m": within_m if math.isfinite(within_m) else None,
        "candidate": bool(found.object.size),
    }
    place = subscribed.indexed
    if place is None or ground.state is None:
        return told
    segment, deltas = place.live.segment, place.live.entry.deltas
    within = read_points(segment.rows).within_m
    results = NearestResults(segment.held, segment.index.radius, within, deltas, ground.state.file)
    first = int(results.neighbours.offsets[place.row])
    count = int(results.neighbours.counts[place.row])
    held = results.neighbours.seq[first : first + count].tolist()
    distances = results.neighbours.distance[first : first + count].tolist()
    full = count == told["k"]
    told |= {"held": count, "kth_m": distances[-1] if full else None}
    if seen.seq in held:
        return told | {"standing": "in", "rank": held.index(seen.seq) + 1}
    if not told["candidate"]:
        return told
    seq = NEVER_US if seen.seq is None else seen.seq
    if not full or (told["distance_m"], seq) < (distances[-1], held[-1]):
        return told | {"standing": "would enter"}
    return told | {
        "standing": "too far",
        "too_far_by_m": round(told["distance_m"] - distances[-1], 3),
    }


def look_nearest(live: Live, seen: Seen, now_us: int, limits: Any) -> Looked:
    """Match the object with one segment, as a worker does."""
    segment = live.segment
    probe = probe_some(ObjectBlock(*seen.columns(now_us)), np.arange(1))
    parts = range(segment.index.partition.parts)
    found = find_near(probe, Target(segment, live.dead, parts, limits))
    counts = np.sum([meet(probe, index) for index in segment.index.parts], axis=0)
    rows = np.unique(found.row).tolist()
    return Looked(int(counts[0]), int(counts[2]), found.candidates, len(found.row), rows)
