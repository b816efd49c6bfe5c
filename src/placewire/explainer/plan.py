"""Explain how the plan of a state routes a pair: the leaf of the object, the workers."""

from __future__ import annotations

from typing import Any

import numpy as np

from placewire.explainer.context import ExplainContext
from placewire.explainer.cost import find_postings, is_reached
from placewire.explainer.object import ExplainedObject
from placewire.explainer.subscription import ExplainedSubscription
from placewire.kinds.boolean.kernels.postings import ANY_TERM
from placewire.model.kinds import kind_numbered
from placewire.plans.ref import PlanRef, read_plan, route_of_entry
from placewire.plans.sample.sample import SIDE
from placewire.storage.layout import StateDir
from placewire.storage.manifest import LeafPlanEntry


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
    facts["object_goes_to"] = sorted(share.worker for share in route.cut(codes, offsets, terms))
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
    owners = route.own(codes, offsets, terms)
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
