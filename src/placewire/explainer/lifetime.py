"""Judge whether a subscription was live when an object arrived, and why not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from placewire.explainer.context import ExplainContext, open_manifest_segments
from placewire.explainer.object import ExplainedObject
from placewire.explainer.subscription import (
    ExplainedSubscription,
    IdChange,
    RowLocation,
    describe_forgotten,
    find_changes,
    find_complete_from,
    find_first_seq,
    find_locations,
    judge_period,
    read_manifests,
)
from placewire.model.kinds import kind_numbered
from placewire.model.subscriptions import NEVER_US
from placewire.model.times import format_timestamp
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest


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
