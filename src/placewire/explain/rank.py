"""How an object ranks for a `nearest` or `relevant` subscription."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from placewire.explain.context import Ground
from placewire.explain.object import Seen
from placewire.explain.reasons import mark_keywords, mark_literal
from placewire.explain.subscription import Subscribed
from placewire.kernels.space.circles import radii_to_limits
from placewire.kernels.space.regions import distance_m
from placewire.kinds.nearest.live_results import LiveResults
from placewire.kinds.nearest.match import NearColumns, NearTarget, scan_near
from placewire.kinds.nearest.results import no_neighbours
from placewire.kinds.relevant.kernels.buffers import ALL
from placewire.kinds.relevant.kernels.score import ALPHA, IDF, LAT, LON, NORM, REACH
from placewire.kinds.relevant.match import RelevanceBlock, scan_relevant
from placewire.kinds.relevant.results import BufferRule, LiveBuffers
from placewire.kinds.relevant.window import SlidingWindow
from placewire.model.expression import COVER_ONE
from placewire.model.subscriptions import NEVER_US, SubscriptionRows
from placewire.model.times import format_timestamp
from placewire.segments.segment import Segment, make_near_segment
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


MOST_NAMED = 5  # due times


def explain_trending(ground: Ground, subscribed: Subscribed, seen: Seen) -> dict[str, Any]:
    """The reports whose window the object's time is in, and what it adds to them."""
    rows = subscribed.rows
    begun_us, window_us, every_us = rows.literal_term.view(np.int64).tolist()
    told: dict[str, Any] = {
        "k": int(rows.k[0]),
        "adds_terms": sorted(seen.words.values()),
        "reports": None,
    }
    if seen.ts_us is None or (subscribed.ts_us is None and subscribed.place is None):
        return told
    first = max(1, -((begun_us - seen.ts_us) // every_us))
    last = (seen.ts_us + window_us - 1 - begun_us) // every_us
    expires_us = int(rows.expires_us[0])
    if expires_us != NEVER_US:
        last = min(last, (expires_us - 1 - begun_us) // every_us)
    due = [begun_us + n * every_us for n in range(first, min(last, first + MOST_NAMED - 1) + 1)]
    told["reports"] = max(0, last - first + 1)
    told["first_due"] = [format_timestamp(at) for at in due]
    now_us = ground.manifest.now_us if ground.manifest is not None else None
    if now_us is not None and last >= first:
        past = min(last, (now_us - 1 - begun_us) // every_us)
        told["past"] = max(0, past - first + 1)
        if last > past:
            told["next_due"] = format_timestamp(begun_us + max(first, past + 1) * every_us)
    return told
