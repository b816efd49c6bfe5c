"""Explain why an object did or did not match a subscription, by the code that matches them."""

from __future__ import annotations

from typing import Any

from placewire.explainer.context import ExplainContext, open_context
from placewire.explainer.cost import explain_cost
from placewire.explainer.history import SubscriptionHistory
from placewire.explainer.lifetime import find_evaluation_time, judge_lifetime, move_after_period
from placewire.explainer.object import ExplainedObject, find_object, read_given_object
from placewire.explainer.plan import explain_plan
from placewire.explainer.subscription import (
    ExplainedSubscription,
    find_past_subscription,
    find_subscription,
    read_given_subscription,
)
from placewire.explainer.verdict import write_verdict
from placewire.kinds.phrases import quote_term
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.kinds import kind_named, kind_numbered, name_of_kind
from placewire.model.settings import Settings
from placewire.model.times import format_timestamp
from placewire.storage.layout import StateDir

TRIES = 5  # a writer may delete a file after the manifest is read and before it is mapped


def explain(
    state: StateDir | None,
    object: dict[str, Any] | int | str,
    subscription: dict[str, Any] | str | SubscriptionHistory,
    settings: Settings | None = None,
) -> dict[str, Any]:
    """Explain a pair as a JSON-ready dict (docs/explain.md).

    The object is an event, a seq or an id; the subscription an event, an id, or the history of
    an id. Seqs and ids need a state, whose settings then apply. Raises InvalidEvent for malformed
    input, NotRetained for what the state does not have, Unusable for a state or setting.
    """
    for left in range(TRIES, 0, -1):
        try:
            return explain_pair(open_context(state, settings), object, subscription)
        except Unusable:
            if state is None or left == 1:
                raise
    raise AssertionError("unreachable")


def explain_pair(
    context: ExplainContext,
    given_object: dict[str, Any] | int | str,
    given_subscription: dict[str, Any] | str | SubscriptionHistory,
) -> dict[str, Any]:
    """Explain a pair in an open context."""
    obj = read_object(context, given_object)
    subscription = read_subscription(context, given_subscription, obj)
    at_event = find_evaluation_time(context, obj, subscription.kind)
    at_event = move_after_period(at_event, subscription, obj)
    interval = judge_lifetime(context, subscription, at_event)
    explanation: dict[str, Any] = {
        "verdict": "",
        "matches": None,
        "object": describe_object(obj),
        "subscription": describe_subscription(subscription),
        "interval": {"live": interval.live, "why": interval.why, **interval.facts},
    }
    suits = kind_numbered(subscription.kind).explain(context, subscription, obj, explanation)
    # The object may have matched an earlier subscription of the id that is forgotten.
    explanation["matches"] = None if interval.live is None else suits and interval.live
    cost = explain_cost(context, subscription, obj, at_event.now_us or 0)
    if cost is not None:
        explanation["cost"] = cost | {"why": describe_search(cost, explanation)}
    plan = explain_plan(context, subscription, obj)
    if plan is not None:
        explanation["plan"] = plan
    explanation["verdict"] = write_verdict(explanation)
    return explanation


def read_object(context: ExplainContext, object: dict[str, Any] | int | str) -> ExplainedObject:
    if isinstance(object, dict):
        return read_given_object(context, object)
    if isinstance(object, bool) or not isinstance(object, int | str):
        raise InvalidEvent(f"object: must be JSON, a seq or an id, got {object!r}")
    return find_object(context, object)


def read_subscription(
    context: ExplainContext, given: dict[str, Any] | str | SubscriptionHistory, obj: ExplainedObject
) -> ExplainedSubscription:
    if isinstance(given, SubscriptionHistory):
        return find_past_subscription(context, given, obj)
    if isinstance(given, dict):
        return read_given_subscription(context, given, obj)
    if not isinstance(given, str):
        raise InvalidEvent(f"subscription: must be JSON or an id, got {given!r}")
    return find_subscription(context, given, obj)


def describe_object(obj: ExplainedObject) -> dict[str, Any]:
    return {
        "id": obj.id,
        "seq": obj.seq,
        "ts": None if obj.ts_us is None else format_timestamp(obj.ts_us),
        "lon": obj.lon,
        "lat": obj.lat,
        "terms": sorted(obj.words.values()),
        "namesakes": obj.namesakes,
    }


def describe_subscription(subscription: ExplainedSubscription) -> dict[str, Any]:
    explanation: dict[str, Any] = {
        "id": subscription.id,
        "kind": name_of_kind(subscription.kind),
        "in_state": subscription.location is not None,
    }
    if subscription.differs:
        explanation["note"] = (
            "the state's subscription of this id is another one; this one is not in it"
        )
    return explanation


def describe_search(cost: dict[str, Any], explanation: dict[str, Any]) -> str:
    """Say whether the search for the object reached the subscription, and what came of it."""
    is_ = "is" if "found" in cost else "would be"
    posted = cost["posted"]
    if not posted:
        return "never looked at: no object could reach its result by any of its terms"
    if not cost["looked_at"]:
        lacking = [post for post in posted if not post["object_has_term"]]
        names = list(dict.fromkeys(quote_term(post) for post in lacking))
        if len(lacking) == len(posted):
            which = "which the object lacks" if len(names) == 1 else "all of which the object lacks"
            return f"never looked at: it {is_} posted under {', '.join(names)}, {which}"
        cells = sum(post["object_has_term"] for post in posted)
        where = "a cell that does" if cells == 1 else f"{cells} cells that do"
        return f"never looked at: it {is_} posted in {where} not have the object's place"
    if explanation["matches"]:
        if cost.get("found", True):
            return "looked at, and found"
        missed = kind_named(explanation["subscription"]["kind"]).left_out
        return f"looked at, and left out: {missed}"
    for part in ("region", "where"):
        if explanation.get(part) is not None and not explanation[part].get(
            "inside", explanation[part].get("holds")
        ):
            test = "the region test" if part == "region" else "its other words"
            return f"looked at, refused by {test}"
    if not explanation["interval"]["live"]:
        return f"looked at, refused: {explanation['interval']['why']}"
    return "looked at, refused"
