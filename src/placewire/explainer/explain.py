"""Explain why an object did or did not match a subscription, and say so in one sentence.

The subscription must have been live when the object arrived; its kind explains the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from placewire.explainer.context import ExplainContext, open_context, open_manifest_segments
from placewire.explainer.object import ExplainedObject, find_object, read_given_object
from placewire.explainer.search import explain_cost, explain_plan
from placewire.explainer.subscription import (
    ExplainedSubscription,
    IdChange,
    RowLocation,
    SubscriptionHistory,
    describe_forgotten,
    find_changes,
    find_complete_from,
    find_first_seq,
    find_locations,
    find_past_subscription,
    find_subscription,
    judge_period,
    read_given_subscription,
    read_manifests,
)
from placewire.kinds.explanation import (
    MOST_WORDS,
    describe_none,
    format_metres,
    join_words,
    quote_term,
)
from placewire.model.errors import InvalidEvent
from placewire.model.kinds import ExplainedPair, kind_named, kind_numbered, name_of_kind
from placewire.model.settings import Settings
from placewire.model.subscriptions import NEVER_US
from placewire.model.times import format_timestamp
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest, retry_reading


def explain(
    state: StateDir | None,
    object: dict[str, Any] | int | str,
    subscription: dict[str, Any] | str | SubscriptionHistory,
    settings: Settings | None = None,
) -> dict[str, Any]:
    """Explain a pair as a JSON-ready dict (docs/how-to/explain.md).

    The object is an event, a seq or an id; the subscription an event, an id, or the history of
    an id. Seqs and ids need a state, whose settings then apply. Raises InvalidEvent for malformed
    input, NotRetained for what the state does not have, Unusable for a state or setting.
    """

    def explain_once() -> dict[str, Any]:
        return explain_pair(open_context(state, settings), object, subscription)

    return explain_once() if state is None else retry_reading(explain_once)


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
    pair = ExplainedPair(context, subscription, obj)
    suits = kind_numbered(subscription.kind).explain(pair, explanation)
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


def write_verdict(explanation: dict[str, Any]) -> str:
    """Write the verdict, reasons against a match first."""
    kind, matches = kind_named(explanation["subscription"]["kind"]), explanation["matches"]
    interval = explanation["interval"]
    head = "Cannot be told" if matches is None else kind.verdicts[0 if matches else 1]
    bad: list[str] = []
    good: list[str] = []
    if not interval["live"]:
        bad.append(f"the subscription was not live, {interval['why']}")
    if interval["live"] is None:
        return f"{head}: whether the subscription was live: {interval['why']}."
    if "where" in explanation and explanation["where"] is not None:
        tree, holds = explanation["where"]["tree"], explanation["where"]["holds"]
        said = describe_tree(tree, holds)
        (good if holds else bad).append(f"the object {said}")
    if "region" in explanation:
        region = explanation["region"]
        if region["kind"] != "everywhere" or explanation.get("where") is None:
            (good if region["inside"] else bad).append(describe_region(region))
    kind.add_reasons(explanation, good, bad)
    return f"{head}: {'; '.join([*bad, *good])}."


def describe_region(region: dict[str, Any]) -> str:
    """Say where the object is relative to the region."""
    kind, inside = region["kind"], region["inside"]
    if kind == "everywhere":
        return "any place suits"
    if kind == "circle":
        centre = f"{format_metres(region['centre_m'])} from its centre"
        if inside:
            return f"it is inside the circle, {centre}"
        return f"it is {format_metres(region['edge_m'])} outside the circle, {centre}"
    if kind == "box":
        if inside:
            return "it is inside the box"
        sides = [
            f"{one['side']} of the box by {format_metres(one['by_m'])}" for one in region["beyond"]
        ]
        return "it is " + " and ".join(sides)
    if region["on_edge"]:
        return "it is on an edge of the polygon, which counts as inside"
    where = "inside" if inside else "outside"
    return f"it is {where} the polygon, about {format_metres(region['edge_m'])} from its edge"


def describe_tree(node: dict[str, Any], holds: bool) -> str:
    """Say which words of an expression the object has or lacks, so that it holds or does not."""
    said = list(dict.fromkeys(list_reasons(node, holds)))
    if len(said) > MOST_WORDS:
        return "has the words that are asked" if holds else "does not have the words that are asked"
    parts = []
    for verb in ("has ", "lacks "):
        plain = [one for one in said if one.startswith(f"{verb}'") and one.endswith("'")]
        if plain:
            parts.append(verb + join_words([one.removeprefix(verb) for one in plain]))
        said = [one for one in said if one not in plain]
    return " and ".join([*parts, *said])


def list_reasons(node: dict[str, Any], holds: bool) -> list[str]:
    """List the reasons why a node holds or does not."""
    if "term" in node:
        return [f"has {quote_term(node)}" if holds else f"lacks {quote_term(node)}"]
    kind = next(kind for kind in ("all", "any", "none") if kind in node)
    children = node[kind]
    if kind == "any" and not holds and len(children) > 1 and all("term" in c for c in children):
        return [describe_none([quote_term(child) for child in children])]
    wanted = {"all": holds, "any": holds, "none": not holds}[kind]
    # A conjunction fails because of the children that fail; a disjunction holds by those that hold.
    said = []
    for child in children:
        if child["holds"] == wanted:
            if kind == "none" and not holds and "term" in child:
                said.append(f"has {quote_term(child)}, which is excluded")
            else:
                said += list_reasons(child, wanted)
    return said


class EvaluationTime(NamedTuple):
    """The event at which a pair is evaluated: its seq and clock, None where unknown.

    `now_us` is a lower bound of the clock at that event, `latest_us` an upper bound.
    """

    seq: int | None
    now_us: int | None
    latest_us: int | None


class LifetimeVerdict(NamedTuple):
    """Whether a subscription was live, why, and facts for JSON; `live` is None if unknown."""

    live: bool | None
    why: str
    facts: dict[str, Any]


def find_evaluation_time(
    context: ExplainContext, obj: ExplainedObject, kind: int
) -> EvaluationTime:
    """Find the event at which the subscription has to be live.

    It is the object's own event, or the state's next one for an object that is in no log. Kinds
    that look back over a window are evaluated at the next event, too.
    """
    if context.manifest is None:
        return EvaluationTime(None, obj.ts_us, obj.ts_us)
    now_us = context.manifest.now_us
    if obj.seq is None or kind_numbered(kind).looks_back:
        times = [t for t in (now_us, obj.ts_us) if t is not None]
        then_us = max(times) if times else None
        return EvaluationTime(context.manifest.next_seq, then_us, then_us)
    # Events of other types move the clock, too, so retained objects give only a lower bound.
    least = obj.ts_us
    for section in context.sections:
        before = section.retained.ts_us[section.retained.seq <= obj.seq]
        if before.size:
            least = max(least or 0, int(before.max()))
    return EvaluationTime(obj.seq, least, now_us)


def move_after_period(
    at_event: EvaluationTime, subscription: ExplainedSubscription, obj: ExplainedObject
) -> EvaluationTime:
    """Move the evaluation of an object that is in no log past a known period."""
    period = subscription.period
    if period is None or obj.seq is not None:
        return at_event
    return at_event._replace(seq=max(at_event.seq or 0, period.begin_seq + 1, period.end_seq or 0))


def judge_lifetime(
    context: ExplainContext, subscription: ExplainedSubscription, at_event: EvaluationTime
) -> LifetimeVerdict:
    """Judge whether the subscription is live at an event."""
    expires_us = int(subscription.rows.expires_us[0])
    location = subscription.location
    facts: dict[str, Any] = {
        "from_seq": location.begin_seq if location is not None else None,
        "ended_by_seq": None,
        "expires": None if expires_us == NEVER_US else format_timestamp(expires_us),
        "at_seq": at_event.seq,
        "now": None if at_event.now_us is None else format_timestamp(at_event.now_us),
        "now_is_exact": at_event.now_us == at_event.latest_us,
    }
    period = subscription.period
    known = ""
    if period is not None:
        facts["from_seq"], facts["ended_by_seq"] = period.begin_seq, period.end_seq
        assert at_event.seq is not None
        live, known = judge_period(period, subscription.since, at_event.seq)
        if not live:
            return LifetimeVerdict(live, known, facts)
    elif location is not None and at_event.seq is not None:
        if at_event.seq <= location.begin_seq:
            assert context.state is not None
            since = find_complete_from(read_manifests(context.state))
            if at_event.seq < since:
                return LifetimeVerdict(None, describe_forgotten(location.begin_seq, since), facts)
            why = f"it was not yet subscribed: it began at seq {location.begin_seq}"
            return LifetimeVerdict(False, why, facts)
        over = find_end(context, subscription, location, facts, at_event.seq)
        if over is not None:
            return LifetimeVerdict(*over, facts)
    if expires_us != NEVER_US and at_event.now_us is not None:
        at = format_timestamp(expires_us)
        if expires_us <= at_event.now_us:
            return LifetimeVerdict(False, f"it expired at {at}", facts)
        assert at_event.latest_us is not None
        if expires_us <= at_event.latest_us:
            why = f"it expires at {at}, after all that is known to have come before the object"
            return LifetimeVerdict(True, why, facts)
    if known:
        return LifetimeVerdict(True, known, facts)
    if location is None:
        return LifetimeVerdict(
            True, "it is taken to have been subscribed just before the object", facts
        )
    return LifetimeVerdict(True, f"it has been live since seq {location.begin_seq}", facts)


def find_end(
    context: ExplainContext,
    subscription: ExplainedSubscription,
    location: RowLocation,
    facts: dict[str, Any],
    seq: int,
) -> tuple[bool | None, str] | None:
    """Judge an ended subscription at `seq`; None for one that has not ended."""
    if not location.ended:
        return None
    assert context.state is not None
    assert subscription.id is not None
    manifests = read_manifests(context.state)
    later = [
        other.begin_seq for other in subscription.others if other.begin_seq > location.begin_seq
    ]
    found = find_change(context.state, manifests, subscription.id, location.begin_seq)
    if found is not None:
        end = found.seq
        facts["ended_by_seq"] = end
        did = "ended" if found.rows is None else "replaced"
        if seq >= end:
            return False, f"it was {did} by event {end}"
        return True, f"it was live from seq {location.begin_seq} until event {end} {did} it"
    # It had ended by the oldest known commit.
    last = min([*later, manifests[0].next_seq - 1])
    facts["ended_after_seq"], facts["ended_by_seq_at_most"] = location.begin_seq, last
    if seq > last:
        return False, f"it was ended or replaced by an event up to {last}"
    return (
        None,
        f"it ended between seq {location.begin_seq} and {last}, the state has forgotten when",
    )


def find_change(
    state: StateDir, manifests: Sequence[Manifest], name: str, begin_seq: int
) -> IdChange | None:
    """Find the event that ended the subscription of an id that began at `begin_seq`.

    None unless the retained blocks reach back to its begin or to a commit at which it was live;
    otherwise an earlier event may have ended it.
    """
    first, after = find_first_seq(manifests), begin_seq
    if first is None or first > begin_seq:
        oldest = open_manifest_segments(state, manifests[0].segments)
        live = [p for p in find_locations(oldest, name) if not p.ended]
        if begin_seq not in [location.begin_seq for location in live]:
            return None
        after = manifests[0].next_seq - 1
    changes = find_changes(state, manifests, name)
    return next((change for change in changes if change.seq > after), None)
