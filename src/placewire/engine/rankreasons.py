"""How an object ranks for a `nearest` or `relevant` subscription."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from placewire.engine.ground import Ground
from placewire.engine.nearing import NearColumns, NearTarget, scan_near
from placewire.engine.relating import RelevanceBlock, scan_relevant
from placewire.engine.seen import Seen
from placewire.engine.sliding import SlidingWindow
from placewire.engine.subscribed import Subscribed
from placewire.engine.wordreasons import mark_keywords, mark_literal
from placewire.kernels.balls import radii_to_limits
from placewire.kernels.buffers import ALL
from placewire.kernels.regions import distance_m
from placewire.kernels.relevance import ALPHA, IDF, LAT, LON, NORM, REACH
from placewire.model.expression import COVER_ONE
from placewire.model.subscriptions import NEVER_US, SubscriptionRows
from placewire.state.livebuffers import BufferRule, LiveBuffers
from placewire.state.neighbours import no_neighbours
from placewire.state.results import LiveResults
from placewire.state.segment import Segment, make_near_segment
from placewire.text.lexicon import weigh_terms

NANO = 1e9


def explain_nearest(ground: Ground, subscribed: Subscribed, seen: Seen) -> dict[str, Any]:
    """Distance and words, whether that makes a candidate, and how it stands in the result."""
    rows = subscribed.rows
    lon, lat, within_m = rows.shape.tolist()
    alone = lone_near(rows)
    found = scan_near(NearColumns(*seen.columns(0)).probe(np.arange(1)), near_target(alone))
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
    results = LiveResults(place.live.segment, list(place.live.entry.deltas), ground.state.file)
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


def lone_near(rows: SubscriptionRows) -> Segment:
    """A segment of one `nearest` row without results."""
    return make_near_segment(rows._replace(expires_us=np.array([NEVER_US])), no_neighbours(rows.k))


def near_target(segment: Segment) -> NearTarget:
    """What an object is held against there."""
    assert segment.balls is not None
    return NearTarget(segment, range(1), radii_to_limits(segment.balls.radius))


def explain_relevant(ground: Ground, subscribed: Subscribed, seen: Seen) -> dict[str, Any]:
    """The score and all that it is made of, the window, and how it stands in the result."""
    rows = subscribed.rows._replace(expires_us=np.array([NEVER_US]))
    shape = rows.shape.tolist()
    _, norm = weigh_terms(sorted(seen.words.values()), ground.lexicon)
    block = RelevanceBlock(*seen.columns(0), np.array([norm]))
    found = scan_relevant(block, rows, np.array([ALL], np.int32))
    terms = []
    for literal in range(rows.literal_term.size):
        marked, idf = mark_literal(subscribed, seen, literal), shape[IDF + literal]
        marked |= {"idf": idf, "u": idf / shape[NORM] if shape[NORM] else 0.0}
        if ground.lexicon is not None:
            # A word that it lacks weighs as one that no document has.
            marked["in_lexicon"] = idf != ground.lexicon.idf_of_frequency(0)
        if marked["holds"]:
            marked["v"] = idf / norm if norm else 0.0
            marked["adds"] = marked["u"] * marked["v"]
        terms.append(marked)
    distance = float(distance_m(shape[LON], shape[LAT], seen.lon, seen.lat))
    told: dict[str, Any] = {
        "k": int(rows.k[0]),
        "alpha": shape[ALPHA],
        "reach_m": shape[REACH],
        "distance_m": distance,
        "ssim": max(0.0, 1.0 - distance / shape[REACH]),
        "terms": terms,
        "tsim": sum(term.get("adds", 0.0) for term in terms),
        "score": int(found.nano[0]) / NANO if found.nano.size else None,
        "shares_a_term": bool(found.nano.size),
        "in_window": None,
    }
    if ground.manifest is None or ground.state is None:
        return told | {"candidate": told["shares_a_term"]}
    manifest = ground.manifest
    window = SlidingWindow(ground.settings, ground.state)
    horizon = window.horizon(manifest.store, manifest.next_seq, manifest.now_us)
    told["in_window"] = in_window(window, horizon, seen)
    told["candidate"] = told["shares_a_term"] and told["in_window"]
    place = subscribed.indexed
    if place is None or place.live.segment.buffers is None:
        return told
    # With room for what any rule keeps; the first k of a buffer are the same under each.
    rule = BufferRule("skyband", window.by_time)
    segment = place.live.segment
    buffers = LiveBuffers(
        place.live.segment.buffers,
        segment.rows.k,
        rule,
        horizon,
        place.live.entry.deltas,
        ground.state.file,
    ).buffers
    first = int(buffers.offsets[place.row])
    count = min(int(buffers.counts[place.row]), told["k"])
    held = buffers.seq[first : first + count].tolist()
    scores = (buffers.nano[first : first + count] / NANO).tolist()
    full = count == told["k"]
    told |= {"held": count, "kth_score": scores[-1] if full else None}
    if seen.seq in held:
        return told | {"standing": "in", "rank": held.index(seen.seq) + 1}
    if not told["candidate"]:
        return told
    seq = NEVER_US if seen.seq is None else seen.seq
    if not full or (told["score"], seq) > (scores[-1], held[-1]):
        return told | {"standing": "would enter"}
    return told | {"standing": "too low", "too_low_by": round(scores[-1] - told["score"], 9)}


def in_window(window: SlidingWindow, horizon: int, seen: Seen) -> bool:
    """Whether the object is in the sliding window; one that is in no log would arrive now."""
    if not window.by_time:
        return seen.seq is None or seen.seq > horizon
    if seen.ts_us is None:
        return True
    return seen.ts_us > horizon
