"""The interval of a subscription against an object: whether it was live at it, and why not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from placewire.explainer.context import ExplainContext, open_live
from placewire.explainer.history import (
    Change,
    changes_of_id,
    first_seq_of,
    judge_period,
    known_since,
    last_manifests,
    say_forgotten,
)
from placewire.explainer.object import Seen
from placewire.explainer.subscription import RowLocation, Subscribed, find_places
from placewire.model.kinds import kind_numbered
from placewire.model.subscriptions import NEVER_US
from placewire.model.times import format_timestamp
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest


class Moment(NamedTuple):
    """When a pair is looked at: an event's seq and its `now`, None where it is not known.

    `now_us` is the earliest that it can have been, `latest_us` the latest.
    """

    seq: int | None
    now_us: int | None
    latest_us: int | None


class Interval(NamedTuple):
    """The verdict on time, JSON-ready: `live` is None where the state cannot tell any more."""

    live: bool | None
    why: str
    facts: dict[str, Any]


def moment_of(ground: ExplainContext, seen: Seen, kind: int) -> Moment:
    """The event at which the subscription has to be live.

    That is the object's own; one that is in no log would be the next event. `relevant`
    subscriptions look back over the window, so for them it is the state's next event.
    """
    if ground.manifest is None:
        return Moment(None, seen.ts_us, seen.ts_us)
    now_us = ground.manifest.now_us
    if seen.seq is None or kind_numbered(kind).looks_back:
        times = [t for t in (now_us, seen.ts_us) if t is not None]
        then_us = max(times) if times else None
        return Moment(ground.manifest.next_seq, then_us, then_us)
    # Events of other types move the clock too: what is retained gives only a lower bound.
    least = seen.ts_us
    for section in ground.sections:
        before = section.retained.ts_us[section.retained.seq <= seen.seq]
        if before.size:
            least = max(least or 0, int(before.max()))
    return Moment(seen.seq, least, now_us)


def moment_of_period(moment: Moment, subscribed: Subscribed, seen: Seen) -> Moment:
    """An object that is in no log comes after all that is known, committed or not."""
    spell = subscribed.spell
    if spell is None or seen.seq is not None:
        return moment
    return moment._replace(seq=max(moment.seq or 0, spell.begin_seq + 1, spell.end_seq or 0))


def judge_interval(ground: ExplainContext, subscribed: Subscribed, moment: Moment) -> Interval:
    """Whether the subscription is live at a moment."""
    expires_us = int(subscribed.rows.expires_us[0])
    place = subscribed.place
    facts: dict[str, Any] = {
        "from_seq": place.begin_seq if place is not None else None,
        "ended_by_seq": None,
        "expires": None if expires_us == NEVER_US else format_timestamp(expires_us),
        "at_seq": moment.seq,
        "now": None if moment.now_us is None else format_timestamp(moment.now_us),
        "now_is_exact": moment.now_us == moment.latest_us,
    }
    spell = subscribed.spell
    known = ""
    if spell is not None:
        facts["from_seq"], facts["ended_by_seq"] = spell.begin_seq, spell.end_seq
        assert moment.seq is not None
        live, known = judge_period(spell, subscribed.since, moment.seq)
        if not live:
            return Interval(live, known, facts)
    elif place is not None and moment.seq is not None:
        if moment.seq <= place.begin_seq:
            assert ground.state is not None
            since = known_since(last_manifests(ground.state))
            if moment.seq < since:
                return Interval(None, say_forgotten(place.begin_seq, since), facts)
            why = f"it was not yet subscribed: it began at seq {place.begin_seq}"
            return Interval(False, why, facts)
        over = find_end(ground, subscribed, place, facts, moment.seq)
        if over is not None:
            return Interval(*over, facts)
    if expires_us != NEVER_US and moment.now_us is not None:
        at = format_timestamp(expires_us)
        if expires_us <= moment.now_us:
            return Interval(False, f"it expired at {at}", facts)
        assert moment.latest_us is not None
        if expires_us <= moment.latest_us:
            why = f"it expires at {at}, after all that is known to have come before the object"
            return Interval(True, why, facts)
    if known:
        return Interval(True, known, facts)
    if place is None:
        return Interval(True, "it is taken to have been subscribed just before the object", facts)
    return Interval(True, f"it has been live since seq {place.begin_seq}", facts)


def find_end(
    ground: ExplainContext,
    subscribed: Subscribed,
    place: RowLocation,
    facts: dict[str, Any],
    seq: int,
) -> tuple[bool | None, str] | None:
    """What an ended subscription was at `seq`, and why; None for one that has not ended."""
    if not place.ended:
        return None
    assert ground.state is not None
    assert subscribed.id is not None
    manifests = last_manifests(ground.state)
    later = [other.begin_seq for other in subscribed.others if other.begin_seq > place.begin_seq]
    found = find_change(ground.state, manifests, subscribed.id, place.begin_seq)
    if found is not None:
        end = found.seq
        facts["ended_by_seq"] = end
        did = "ended" if found.rows is None else "replaced"
        if seq >= end:
            return False, f"it was {did} by event {end}"
        return True, f"it was live from seq {place.begin_seq} until event {end} {did} it"
    # It was not live any more at the oldest commit that is known.
    last = min([*later, manifests[0].next_seq - 1])
    facts["ended_after_seq"], facts["ended_by_seq_at_most"] = place.begin_seq, last
    if seq > last:
        return False, f"it was ended or replaced by an event up to {last}"
    return None, f"it ended between seq {place.begin_seq} and {last}, the state has forgotten when"


def find_change(
    state: StateDir, manifests: Sequence[Manifest], name: str, begin_seq: int
) -> Change | None:
    """The event that ended the subscription of an id that began at `begin_seq`.

    None unless the last blocks go back to there, or to a commit at which it was still live: an
    event before them may have ended it.
    """
    first, after = first_seq_of(manifests), begin_seq
    if first is None or first > begin_seq:
        oldest = open_live(state, manifests[0].segments)
        standing = [p for p in find_places(oldest, name) if not p.ended]
        if begin_seq not in [place.begin_seq for place in standing]:
            return None
        after = manifests[0].next_seq - 1
    changes = changes_of_id(state, manifests, name)
    return next((change for change in changes if change.seq > after), None)
