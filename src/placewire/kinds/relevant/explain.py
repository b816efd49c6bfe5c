"""Explain pairs of the kind `relevant`: the score and its parts, and the place in the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from placewire.kernels.space.regions import distance_m
from placewire.kinds.explanation import Looked, Post, mark_literal, terms_by_number
from placewire.kinds.relevant.index import GroupIndex
from placewire.kinds.relevant.kernels.buffers import ALL
from placewire.kinds.relevant.kernels.groups import CELLS, CELLS_SKIPPED, LOOKED, VERIFIED
from placewire.kinds.relevant.match import RelevanceBlock, find_relevant, scan_relevant
from placewire.kinds.relevant.results import BufferRule, RelevantResults
from placewire.kinds.relevant.rows import read_weights
from placewire.model.subscriptions import NEVER_US
from placewire.objects.window import SlidingWindow
from placewire.text.lexicon import weigh_terms

if TYPE_CHECKING:
    from placewire.explain.context import ExplainContext, Live
    from placewire.explain.object import Seen
    from placewire.explain.subscription import Subscribed

NANO = 1e9


def explain_relevant(ground: ExplainContext, subscribed: Subscribed, seen: Seen) -> dict[str, Any]:
    """The score and all that it is made of, the window, and how it stands in the result."""
    rows = subscribed.rows._replace(expires_us=np.array([NEVER_US]))
    weights = read_weights(rows)
    lon, lat, alpha, reach_m, row_norm = (float(column[0]) for column in weights[:5])
    _, norm = weigh_terms(sorted(seen.words.values()), ground.lexicon)
    block = RelevanceBlock(*seen.columns(0), np.array([norm]))
    found = scan_relevant(block, rows, np.array([ALL], np.int32))
    terms = []
    for literal, idf in enumerate(weights.idf.tolist()):
        marked = mark_literal(subscribed, seen, literal)
        marked |= {"idf": idf, "u": idf / row_norm if row_norm else 0.0}
        if ground.lexicon is not None:
            # A word that it lacks weighs as one that no document has.
            marked["in_lexicon"] = idf != ground.lexicon.idf_of_frequency(0)
        if marked["holds"]:
            marked["v"] = idf / norm if norm else 0.0
            marked["adds"] = marked["u"] * marked["v"]
        terms.append(marked)
    distance = float(distance_m(lon, lat, seen.lon, seen.lat))
    told: dict[str, Any] = {
        "k": int(rows.k[0]),
        "alpha": alpha,
        "reach_m": reach_m,
        "distance_m": distance,
        "ssim": max(0.0, 1.0 - distance / reach_m),
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
    if place is None or place.live.segment.held is None:
        return told
    # With room for what any rule keeps; the first k of a buffer are the same under each.
    rule = BufferRule("skyband", window.by_time)
    segment = place.live.segment
    buffers = RelevantResults(
        segment.held,
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


def posts_in_groups(index: GroupIndex, row: int, part: int = 0) -> list[Post]:
    """The postings of a `relevant` row: of its terms that can bring an object to its threshold."""
    at = np.flatnonzero(index.posting_row == row)
    cells = np.searchsorted(index.cell_offsets, at, "right") - 1
    numbers = np.unique(np.searchsorted(index.term_cells, cells, "right") - 1)
    terms = terms_by_number(index.term_table)
    return [Post(terms[number], None, 0, part) for number in numbers.tolist()]


def look_relevant(
    ground: ExplainContext, live: Live, seen: Seen, now_us: int, theta: Any
) -> Looked:
    """Match the object with one segment, as a worker does."""
    segment = live.segment
    norm = weigh_terms(sorted(seen.words.values()), ground.lexicon)[1]
    block = RelevanceBlock(*seen.columns(now_us), np.array([norm]))
    groups = segment.index.groups
    parts_found = [find_relevant(block, segment.rows, index, theta, live.dead) for index in groups]
    counters = np.sum([part.counters for part in parts_found], axis=0)
    known = sum(len(set(seen.words) & set(index.term_table[::2].tolist())) for index in groups)
    rows = np.unique(np.concatenate([part.row for part in parts_found])).tolist()
    met = int(counters[CELLS] - counters[CELLS_SKIPPED])
    return Looked(known, met, int(counters[LOOKED]), int(counters[VERIFIED]), rows)
