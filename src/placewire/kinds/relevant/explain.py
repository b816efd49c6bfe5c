"""Explain pairs of the kind `relevant`: the score and its parts, the window, rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from placewire.kernels.space.regions import distance_m
from placewire.kinds.explanation import (
    MatchTrace,
    PostingRef,
    describe_keywords,
    format_ordinal,
    mark_literal,
    terms_by_number,
)
from placewire.kinds.relevant.kernels.buffers import ALL
from placewire.kinds.relevant.kernels.groups import (
    CELLS,
    CELLS_SKIPPED,
    LOOKED,
    VERIFIED,
    GroupIndex,
)
from placewire.kinds.relevant.kernels.score import RelevanceBlock
from placewire.kinds.relevant.match import find_relevant, scan_relevant
from placewire.kinds.relevant.results import BufferRule, RelevantResults
from placewire.kinds.relevant.rows import relevant_columns
from placewire.model.subscriptions import NEVER_US
from placewire.objects.window import SlidingWindow
from placewire.text.words import weigh_terms

if TYPE_CHECKING:
    from placewire.explainer.context import ExplainContext, OpenSegment
    from placewire.explainer.object import ExplainedObject
    from placewire.explainer.subscription import ExplainedSubscription

NANO = 1e9


def explain_relevant(
    context: ExplainContext, subscription: ExplainedSubscription, obj: ExplainedObject
) -> dict[str, Any]:
    """Explain the score and its parts, whether the object is in the window, and its rank."""
    rows = subscription.rows._replace(expires_us=np.array([NEVER_US]))
    own = relevant_columns(rows)
    lon, lat, alpha, reach_m, row_norm = own.weights[0].tolist()
    _, norm = weigh_terms(sorted(obj.words.values()), context.lexicon)
    block = RelevanceBlock(*obj.columns(0), np.array([norm]))
    found = scan_relevant(block, rows, np.array([ALL], np.int32))
    terms = []
    for literal, idf in enumerate(own.literal_idf.tolist()):
        marked = mark_literal(subscription, obj, literal)
        marked |= {"idf": idf, "u": idf / row_norm if row_norm else 0.0}
        if context.lexicon is not None:
            # A word outside the lexicon weighs as one that no document has.
            marked["in_lexicon"] = idf != context.lexicon.idf_of_frequency(0)
        if marked["holds"]:
            marked["v"] = idf / norm if norm else 0.0
            marked["adds"] = marked["u"] * marked["v"]
        terms.append(marked)
    distance = float(distance_m(lon, lat, obj.lon, obj.lat))
    facts: dict[str, Any] = {
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
    if context.manifest is None or context.state is None:
        return facts | {"candidate": facts["shares_a_term"]}
    manifest = context.manifest
    window = SlidingWindow(context.settings, context.state)
    horizon = window.horizon(manifest.store, manifest.next_seq, manifest.now_us)
    facts["in_window"] = in_window(window, horizon, obj)
    facts["candidate"] = facts["shares_a_term"] and facts["in_window"]
    location = subscription.indexed
    if location is None or location.opened.segment.held is None:
        return facts
    # `skyband` buffers have room for those of every rule; their first k are the same.
    rule = BufferRule("skyband", window.by_time)
    segment = location.opened.segment
    buffers = RelevantResults(
        segment.held,
        segment.rows.k,
        rule,
        horizon,
        location.opened.entry.deltas,
        context.state.file,
    ).buffers
    first = int(buffers.offsets[location.row])
    count = min(int(buffers.counts[location.row]), facts["k"])
    held = buffers.seq[first : first + count].tolist()
    scores = (buffers.nano[first : first + count] / NANO).tolist()
    full = count == facts["k"]
    facts |= {"held": count, "kth_score": scores[-1] if full else None}
    if obj.seq in held:
        return facts | {"standing": "in", "rank": held.index(obj.seq) + 1}
    if not facts["candidate"]:
        return facts
    seq = NEVER_US if obj.seq is None else obj.seq
    if not full or (facts["score"], seq) > (scores[-1], held[-1]):
        return facts | {"standing": "would enter"}
    return facts | {"standing": "too low", "too_low_by": round(scores[-1] - facts["score"], 9)}


def in_window(window: SlidingWindow, horizon: int, obj: ExplainedObject) -> bool:
    """Return true if the object is in the sliding window; one that is in no log arrives now."""
    if not window.by_time:
        return obj.seq is None or obj.seq > horizon
    if obj.ts_us is None:
        return True
    return obj.ts_us > horizon


def find_group_postings(index: GroupIndex, row: int, part: int = 0) -> list[PostingRef]:
    """Find the postings of a row: one for each term that can reach its threshold."""
    at = np.flatnonzero(index.posting_row == row)
    cells = np.searchsorted(index.cell_offsets, at, "right") - 1
    numbers = np.unique(np.searchsorted(index.term_cells, cells, "right") - 1)
    terms = terms_by_number(index.term_table)
    return [PostingRef(terms[number], None, 0, part) for number in numbers.tolist()]


def trace_relevant(
    context: ExplainContext, opened: OpenSegment, obj: ExplainedObject, now_us: int, theta: Any
) -> MatchTrace:
    """Match the object with one segment as a worker does, and count the work."""
    segment = opened.segment
    norm = weigh_terms(sorted(obj.words.values()), context.lexicon)[1]
    block = RelevanceBlock(*obj.columns(now_us), np.array([norm]))
    groups = segment.index.groups
    parts_found = [
        find_relevant(block, segment.rows, index, theta, opened.dead) for index in groups
    ]
    counters = np.sum([part.counters for part in parts_found], axis=0)
    known = sum(len(set(obj.words) & set(index.term_table[::2].tolist())) for index in groups)
    rows = np.unique(np.concatenate([part.row for part in parts_found])).tolist()
    met = int(counters[CELLS] - counters[CELLS_SKIPPED])
    return MatchTrace(known, met, int(counters[LOOKED]), int(counters[VERIFIED]), rows)


def add_relevant_reasons(facts: dict[str, Any], good: list[str], bad: list[str]) -> None:
    """Add reasons about keywords, score, window and rank."""
    said = f"the object {describe_keywords(facts['terms'], False)}"
    (good if facts["shares_a_term"] else bad).append(said)
    if facts["in_window"] is False:
        bad.append("it is not in the sliding window any more")
    if facts["score"] is not None:
        good.append(f"its score is {facts['score']:.9g}")
    standing = facts.get("standing")
    if standing == "in":
        good.append(f"it is in the result, {format_ordinal(facts['rank'])} of {facts['held']}")
    elif standing == "would enter":
        room = f"the result has {facts['held']} of {facts['k']}"
        if facts["kth_score"] is not None:
            room = f"the {format_ordinal(facts['k'])} has {facts['kth_score']:.9g}"
        good.append(f"it would enter the result: {room}")
    elif standing == "too low":
        good.append(
            f"too low to be in the result: the {format_ordinal(facts['k'])} has"
            f" {facts['kth_score']:.9g}"
        )
