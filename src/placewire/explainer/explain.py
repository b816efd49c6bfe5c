"""Explaining: why an object did or did not match a subscription, by the engine's own code."""

from __future__ import annotations

from typing import Any

from placewire.explainer.context import ExplainContext, open_context
from placewire.explainer.cost import explain_cost
from placewire.explainer.history import History
from placewire.explainer.lifetime import judge_interval, moment_of, moment_of_period
from placewire.explainer.object import Seen, find_object, give_object
from placewire.explainer.plan import explain_plan
from placewire.explainer.subscription import (
    Subscribed,
    find_subscription,
    give_subscription,
    recall_subscription,
)
from placewire.explainer.verdict import quoted, say_verdict
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.kinds import kind_named, kind_numbered, name_of_kind
from placewire.model.settings import Settings
from placewire.model.times import format_timestamp
from placewire.storage.layout import StateDir

TRIES = 5  # a writer may sweep a file between our reading of a manifest and our mapping of it


def explain(
    state: StateDir | None,
    object: dict[str, Any] | int | str,
    subscription: dict[str, Any] | str | History,
    settings: Settings | None = None,
) -> dict[str, Any]:
    """Explain a pair; what comes out can be written as JSON (docs/explain.md).

    The object is an event's JSON, a seq or an id; the subscription an event's JSON, an id, or
    what an id is known to have been. Seqs and ids need a state, whose settings hold then. Raises
    InvalidEvent for what is malformed, NotKept for what the state does not have, Unusable for a
    state or a setting.
    """
    for left in range(TRIES, 0, -1):
        try:
            return explain_pair(open_context(state, settings), object, subscription)
        except Unusable:
            if state is None or left == 1:
                raise
    raise AssertionError("unreachable")


def explain_pair(
    ground: ExplainContext,
    object: dict[str, Any] | int | str,
    subscription: dict[str, Any] | str | History,
) -> dict[str, Any]:
    """The same, of a state that is open."""
    seen = read_object(ground, object)
    subscribed = read_subscription(ground, subscription, seen)
    moment = moment_of(ground, seen, subscribed.kind)
    moment = moment_of_period(moment, subscribed, seen)
    interval = judge_interval(ground, subscribed, moment)
    told: dict[str, Any] = {
        "verdict": "",
        "matches": None,
        "object": tell_object(seen),
        "subscription": tell_subscription(subscribed),
        "interval": {"live": interval.live, "why": interval.why, **interval.facts},
    }
    suits = kind_numbered(subscribed.kind).explain(ground, subscribed, seen, told)
    # Another subscription of the id, which is forgotten, may have been what the object met.
    told["matches"] = None if interval.live is None else suits and interval.live
    cost = explain_cost(ground, subscribed, seen, moment.now_us or 0)
    if cost is not None:
        told["cost"] = cost | {"why": say_looked(cost, told)}
    plan = explain_plan(ground, subscribed, seen)
    if plan is not None:
        told["plan"] = plan
    told["verdict"] = say_verdict(told)
    return told


def read_object(ground: ExplainContext, object: dict[str, Any] | int | str) -> Seen:
    if isinstance(object, dict):
        return give_object(ground, object)
    if isinstance(object, bool) or not isinstance(object, int | str):
        raise InvalidEvent(f"object: must be JSON, a seq or an id, got {object!r}")
    return find_object(ground, object)


def read_subscription(
    ground: ExplainContext, given: dict[str, Any] | str | History, seen: Seen
) -> Subscribed:
    if isinstance(given, History):
        return recall_subscription(ground, given, seen)
    if isinstance(given, dict):
        return give_subscription(ground, given, seen)
    if not isinstance(given, str):
        raise InvalidEvent(f"subscription: must be JSON or an id, got {given!r}")
    return find_subscription(ground, given, seen)


def tell_object(seen: Seen) -> dict[str, Any]:
    return {
        "id": seen.id,
        "seq": seen.seq,
        "ts": None if seen.ts_us is None else format_timestamp(seen.ts_us),
        "lon": seen.lon,
        "lat": seen.lat,
        "terms": sorted(seen.words.values()),
        "namesakes": seen.namesakes,
    }


def tell_subscription(subscribed: Subscribed) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": subscribed.id,
        "kind": name_of_kind(subscribed.kind),
        "in_state": subscribed.place is not None,
    }
    if subscribed.differs:
        told["note"] = "the state's subscription of this id is another one; this one is not in it"
    return told


def say_looked(cost: dict[str, Any], told: dict[str, Any]) -> str:
    """What became of the subscription when the object came by."""
    is_ = "is" if "found" in cost else "would be"
    posted = cost["posted"]
    if not posted:
        return "never looked at: no object could reach its result by any of its terms"
    if not cost["looked_at"]:
        lacking = [post for post in posted if not post["object_has_term"]]
        names = list(dict.fromkeys(quoted(post) for post in lacking))
        if len(lacking) == len(posted):
            which = "which the object lacks" if len(names) == 1 else "all of which the object lacks"
            return f"never looked at: it {is_} posted under {', '.join(names)}, {which}"
        cells = sum(post["object_has_term"] for post in posted)
        where = "a cell that does" if cells == 1 else f"{cells} cells that do"
        return f"never looked at: it {is_} posted in {where} not have the object's place"
    if told["matches"]:
        if cost.get("found", True):
            return "looked at, and found"
        missed = kind_named(told["subscription"]["kind"]).left_out
        return f"looked at, and left out: {missed}"
    for part in ("region", "where"):
        if told.get(part) is not None and not told[part].get("inside", told[part].get("holds")):
            test = "the region test" if part == "region" else "its other words"
            return f"looked at, refused by {test}"
    if not told["interval"]["live"]:
        return f"looked at, refused: {told['interval']['why']}"
    return "looked at, refused"
