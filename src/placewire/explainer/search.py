"""Explain the search for a pair: postings of the subscription, work for the object, workers."""

from __future__ import annotations

from typing import Any

import numpy as np

from placewire.explainer.context import ExplainContext, OpenSegment
from placewire.explainer.object import ExplainedObject
from placewire.explainer.subscription import ExplainedSubscription
from placewire.kernels.space.cells import MAX_LEVEL, codes_to_columns_rows
from placewire.kinds.boolean.kernels.postings import ANY_TERM
from placewire.kinds.explanation import MatchTrace, PostingRef
from placewire.model.kinds import TracedObject, kind_numbered
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.route.leaf_route import PlanRef, read_plan
from placewire.plans.route.worker_map import route_of_entry
from placewire.plans.sample.sample import SIDE
from placewire.segments.segment import NONE_DEAD, make_segment
from placewire.segments.thresholds import current_thresholds
from placewire.storage.layout import StateDir
from placewire.storage.manifest import LeafPlanEntry, SegmentEntry


def is_reached(posting: PostingRef, obj: ExplainedObject, code: int) -> bool:
    """Whether an object with cell code `code` at MAX_LEVEL reads a posting."""
    if not has_term(posting, obj):
        return False
    return posting.level is None or code >> (2 * (MAX_LEVEL - posting.level)) == posting.code


def has_term(posting: PostingRef, obj: ExplainedObject) -> bool:
    """Whether an object has the term of a posting."""
    return posting.term == int(ANY_TERM) or posting.term in obj.words


def describe_posting(
    posting: PostingRef, words: dict[int, str], obj: ExplainedObject, code: int
) -> dict[str, Any]:
    """Describe a posting for JSON, with its term unless it is for any text."""
    facts: dict[str, Any] = {"any_text": posting.term == int(ANY_TERM)}
    if not facts["any_text"]:
        facts["term"] = words.get(posting.term)
        facts["hash"] = f"{posting.term:016x}"
    facts |= {
        "object_has_term": has_term(posting, obj),
        "reached": is_reached(posting, obj, code),
    }
    if posting.level is not None:
        box = find_cell_box(posting)
        facts["cell"] = {"level": posting.level, "code": posting.code, "box": box}
    return facts


def find_cell_box(posting: PostingRef) -> list[float]:
    """West, south, east, north of a posting's cell."""
    assert posting.level is not None
    fine = np.array([posting.code << (2 * (MAX_LEVEL - posting.level))], np.uint32)
    columns, rows = codes_to_columns_rows(fine)
    shift, side = MAX_LEVEL - posting.level, 1 << posting.level
    column, row = int(columns[0]) >> shift, int(rows[0]) >> shift
    wide, high = 360.0 / side, 180.0 / side
    west, south = column * wide - 180.0, row * high - 90.0
    return [west, south, west + wide, south + high]


def make_lone_segment(subscription: ExplainedSubscription) -> OpenSegment:
    """Index the subscription alone in a segment of one row."""
    rows, kind = subscription.rows, kind_numbered(subscription.kind)
    segment = make_segment(kind.number, rows, kind.empty_results(rows))
    return OpenSegment(SegmentEntry("", 1, kind=kind.number), segment, NONE_DEAD)


def explain_cost(
    context: ExplainContext,
    subscription: ExplainedSubscription,
    obj: ExplainedObject,
    now_us: int,
) -> dict[str, Any] | None:
    """Count what the object costs among subscriptions of this kind; None if it has no index."""
    kind = kind_numbered(subscription.kind)
    if not kind.matched:
        return None
    segments = [one for one in context.segments if one.entry.kind == subscription.kind]
    if context.manifest is None:
        segments = [make_lone_segment(subscription)]
    traces = [trace_segment(context, opened, obj, now_us) for opened in segments]
    location = subscription.indexed
    found = location is not None and any(
        opened is location.opened and location.row in trace.rows
        for opened, trace in zip(segments, traces, strict=True)
    )
    code = int(obj.columns(0)[0][0])
    words = subscription.words | obj.words
    facts: dict[str, Any] = {
        "subscriptions": sum(one.entry.rows - one.entry.ended for one in segments),
        "segments": len(segments),
        "terms_probed": int(obj.terms.size) + kind.probes_any_text,
        "terms_posted": sum(trace.terms for trace in traces),
        "cells": sum(trace.cells for trace in traces),
        "candidates": sum(trace.candidates for trace in traces),
        "verified": sum(trace.verified for trace in traces),
        "matches": sum(len(trace.rows) for trace in traces),
        "posted": [
            describe_posting(posting, words, obj, code) for posting in find_postings(subscription)
        ],
    }
    facts["looked_at"] = any(posting["reached"] for posting in facts["posted"])
    if location is not None:
        facts["found"] = found
    return facts


def find_postings(subscription: ExplainedSubscription) -> list[PostingRef]:
    """Find the postings of the subscription, in its segment or in one that has it alone."""
    location = subscription.indexed
    if location is None:
        opened, row = make_lone_segment(subscription), 0
    else:
        opened, row = location
    kind = kind_numbered(subscription.kind)
    return [
        posting
        for part, index in enumerate(kind.parts(opened.segment))
        for posting in kind.find_postings(index, row, part)
    ]


def trace_segment(
    context: ExplainContext, opened: OpenSegment, obj: ExplainedObject, now_us: int
) -> MatchTrace:
    """Match the object with one segment as a worker does, and count the work."""
    kind = kind_numbered(opened.entry.kind)
    if context.state is None:
        thresholds = kind.open_thresholds(opened.segment)
    else:
        entries = [one.entry for one in context.segments]
        thresholds = current_thresholds(opened.entry, opened.segment, entries, context.state.file)
    return kind.trace_match(TracedObject(context, opened, obj, now_us, thresholds))


def explain_plan(
    context: ExplainContext, subscription: ExplainedSubscription, obj: ExplainedObject
) -> dict[str, Any] | None:
    """Explain the plan of the subscription's kind and its workers; None without a plan."""
    manifest, state = context.manifest, context.state
    if manifest is None or state is None:
        return None
    plan = manifest.plans.get(kind_numbered(subscription.kind).name)
    if plan is None:
        return None
    root = str(state.root)
    facts: dict[str, Any] = {
        "name": plan.name,
        "version": plan.version,
        "workers": plan.workers,
    }
    if isinstance(plan, LeafPlanEntry):
        if not plan.file:
            return facts
        file, live, previous, at = plan.file, plan.live, plan.previous, subscription.indexed
        if previous is not None and at is not None and at.opened.entry.name in previous.segments:
            facts |= {"name": previous.method, "version": previous.version}
            file, live = previous.file, previous.live
        leaves = read_plan(state.file(file)).leaves
        leaf_ref = PlanRef(plan.workers, leaves.summary, file, live)
        return facts | explain_leaf(leaf_ref, root, subscription, obj)
    ref = route_of_entry(plan, root)
    if ref is None:
        return facts
    route = ref.open(root)
    codes, _, _, _, offsets, terms = obj.columns(0)
    facts["object_goes_to"] = sorted(
        share.worker for share in route.cut(Objects(codes, offsets, terms))
    )
    parts = {post.part for post in find_postings(subscription)} if subscription.indexed else set()
    if not plan.leaves:
        facts["subscription_is_at"] = sorted(part % plan.workers for part in parts)
    return facts


def explain_leaf(
    ref: PlanRef, root: str, subscription: ExplainedSubscription, obj: ExplainedObject
) -> dict[str, Any]:
    """Find the leaf of the object, the workers it is sent to, and those that match the pair."""
    route = ref.open(root)
    codes, _, _, _, offsets, terms = obj.columns(0)
    at = int(np.searchsorted(route.tables.range_start, codes[0], "right")) - 1
    leaf = int(route.tables.range_leaf[at])
    owners = route.own(Objects(codes, offsets, terms))
    worker = {int(term): int(who) for term, who in zip(terms, owners.of_pair, strict=True)}
    worker[int(ANY_TERM)] = int(owners.alone[0])
    if owners.of_object[0] >= 0:  # one worker has all of them
        worker = {term: int(owners.of_object[0]) for term in worker}
    code = int(codes[0])
    met = {worker[post.term] for post in find_postings(subscription) if is_reached(post, obj, code)}
    west, south, east, north = read_plan(StateDir.at(root).file(ref.file)).leaves.box[leaf].tolist()
    across, down = 360 / SIDE, 180 / SIDE
    return {
        "leaf": leaf,
        "leaf_box": [
            west * across - 180,
            south * down - 90,
            east * across - 180,
            north * down - 90,
        ],
        "object_goes_to": sorted({who for who in worker.values() if who >= 0}),
        "pair_meets_at": sorted(who for who in met if who >= 0),
    }
