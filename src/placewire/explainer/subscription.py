"""The subscription to explain: given as JSON, found in a state by its id, or by the id's history.

A state forgets subscriptions that were replaced or have ended; a server's ledger keeps them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placewire.explainer.context import (
    ExplainContext,
    NotRetained,
    OpenSegment,
    open_manifest_segments,
    read_given,
)
from placewire.explainer.object import ExplainedObject
from placewire.ingest.changes import ChangesBuilder, finish_rows
from placewire.kernels.jit import read_only
from placewire.model.errors import InvalidEvent
from placewire.model.events import UNSET, SubscribeEvent
from placewire.model.expression import Node
from placewire.model.kinds import kind_named, kind_numbered
from placewire.model.subscriptions import SubscriptionRows, map_columns, rows_of_arrays, take_rows
from placewire.objects.sections import rows_of_id
from placewire.segments.segment import unindexed, whole_rows
from placewire.storage.arrays import open_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest, SegmentEntry, committed_batches, read_manifest
from placewire.text.query import parse_where

NO_SEGMENT = ""  # the name of the segment of a row that no segment of the state has


class RowLocation(NamedTuple):
    """The segment and row of a subscription in a state.

    An ended subscription that no segment has any more gets an unindexed segment of one row.
    """

    opened: OpenSegment
    row: int

    @property
    def begin_seq(self) -> int:
        return int(self.opened.segment.rows.begin_seq[self.row])

    @property
    def kind(self) -> int:
        return self.opened.entry.kind

    @property
    def ended(self) -> bool:
        return self.opened.ended(self.row)

    @property
    def indexed(self) -> bool:
        return self.opened.entry.name != NO_SEGMENT


class ExplainedSubscription(NamedTuple):
    """The subscription as one row, with its expression if it was given as JSON.

    `location` is its row in the state, `others` are other subscriptions of the same id.
    """

    id: str | None
    rows: SubscriptionRows
    node: Node | None
    words: dict[int, str]
    ts_us: int | None = None
    location: RowLocation | None = None
    others: tuple[RowLocation, ...] = ()
    differs: bool = False  # the state has another subscription of this id
    period: SubscriptionPeriod | None = (
        None  # when it was one, where that is known better than by the state
    )
    since: int = 0  # the seq from which the history of the id is complete

    @property
    def kind(self) -> int:
        return int(self.rows.kind[0])

    @property
    def indexed(self) -> RowLocation | None:
        """Its location, if it is in an indexed segment of the state."""
        return self.location if self.location is not None and self.location.indexed else None


def read_given_subscription(
    context: ExplainContext, given: dict[str, Any], obj: ExplainedObject
) -> ExplainedSubscription:
    """Read a subscription from JSON; locate it if the state has the same one."""
    made = build_subscription(context, given, obj)
    locations = find_all_locations(context, made.id) if made.id is not None else []
    location = choose_location(locations, obj)
    if location is None:
        return made
    if not same_rows(made.rows, take_row(location)):
        return made._replace(differs=True)
    return attach_location(made, location, locations)


def find_past_subscription(
    context: ExplainContext, history: SubscriptionHistory, obj: ExplainedObject
) -> ExplainedSubscription:
    """Find the subscription that an id named when the object arrived, by a known history."""
    period = choose_period(history, obj)
    made = build_subscription(context, period.body, obj)
    made = made._replace(period=period, since=history.since)
    assert made.id is not None
    locations = find_all_locations(context, made.id)
    for location in locations:
        if location.begin_seq == period.begin_seq:
            return attach_location(made, location, locations)
    return made


def attach_location(
    made: ExplainedSubscription, location: RowLocation, locations: Sequence[RowLocation]
) -> ExplainedSubscription:
    """Set the location of a subscription that the state has."""
    others = tuple(other for other in locations if other is not location)
    return made._replace(rows=take_row(location), location=location, others=others)


def build_subscription(
    context: ExplainContext, given: dict[str, Any], obj: ExplainedObject
) -> ExplainedSubscription:
    """Build a subscription from JSON, without looking for it in the state."""
    event, ts_us = read_given(given, "subscribe", "subscription")
    assert isinstance(event, SubscribeEvent)
    builder = ChangesBuilder(context.analyzer, context.settings, context.lexicon)
    begun_us = ts_us if ts_us is not None else (obj.ts_us or 0)
    try:
        builder.subscribe(0, begun_us, 0, event)
    except InvalidEvent as error:
        said = str(error)
        if "id" not in given:
            said = said.replace("subscription 'subscription'", "subscription", 1)
        raise InvalidEvent(said) from None
    rows, _, _ = finish_rows(builder.finish(), context.analyzer)
    rows = map_columns(rows, read_only)
    node = None
    if event.where is not UNSET:
        node = parse_where(event.where, context.analyzer.tokens)
    terms = list(dict.fromkeys(builder.terms))
    words = dict(zip(context.analyzer.hash_terms(terms).tolist(), terms, strict=True))
    name = event.id if "id" in given else None
    return ExplainedSubscription(name, rows, node, words, ts_us)


def find_subscription(
    context: ExplainContext, name: str, obj: ExplainedObject
) -> ExplainedSubscription:
    """Find a subscription of the state by its id; raises NotRetained."""
    if context.manifest is None:
        raise InvalidEvent(f"subscription {name!r}: needs a state to be found in")
    locations = find_all_locations(context, name)
    location = choose_location(locations, obj)
    if location is None:
        raise NotRetained(
            f"subscription {name!r}: is not in the state: it was never made, or has ended and gone"
        )
    rows = take_row(location)
    words = context.words_of(rows.literal_term)
    words |= {h: w for h, w in obj.words.items() if h in set(rows.literal_term.tolist())}
    return ExplainedSubscription(
        name, rows, None, words, None, location, tuple(p for p in locations if p is not location)
    )


def find_locations(segments: Sequence[OpenSegment], name: str) -> list[RowLocation]:
    """Find the subscriptions of an id in order of begin, each once, preferring live rows.

    A row that was rewritten is marked as ended in the segment that had it before.
    """
    found: dict[int, RowLocation] = {}
    for opened in segments:
        rows = opened.segment.rows
        for row in rows_of_id(rows.id_offsets, rows.id_bytes, name).tolist():
            location = RowLocation(opened, row)
            if location.begin_seq not in found or not location.ended:
                found[location.begin_seq] = location
    return [found[begin] for begin in sorted(found)]


def find_all_locations(context: ExplainContext, name: str) -> list[RowLocation]:
    """Find the subscriptions of an id in a state, including ended ones of its last commits."""
    if context.state is None:
        return []
    found = {location.begin_seq: location for location in find_locations(context.segments, name)}
    manifests = read_manifests(context.state)
    for location in find_locations(
        open_manifest_segments(context.state, manifests[0].segments), name
    ):
        if location.begin_seq not in found:
            found[location.begin_seq] = make_removed_location(take_row(location))
    for change in find_changes(context.state, manifests, name):
        if change.rows is not None and change.seq not in found:
            found[change.seq] = make_removed_location(change.rows)
    return [found[begin] for begin in sorted(found)]


def make_removed_location(rows: SubscriptionRows) -> RowLocation:
    """Locate an ended subscription that is in no segment of the last commit."""
    entry = SegmentEntry(NO_SEGMENT, int(rows.kind[0]), 1, 1)
    return RowLocation(OpenSegment(entry, unindexed(rows), np.ones(1, np.uint64)), 0)


def choose_location(locations: Sequence[RowLocation], obj: ExplainedObject) -> RowLocation | None:
    """Choose the subscription of an id in the state that applies to the object, if there is one."""
    back = [kind_numbered(location.kind).looks_back for location in locations]
    begins = [location.begin_seq for location in locations]
    return locations[choose_last_before(begins, back, obj.seq)] if locations else None


def choose_last_before(begins: Sequence[int], looks_back: Sequence[bool], seq: int | None) -> int:
    """Choose from subscriptions by their begin: the last before an object, or else the first.

    A kind that looks back also takes objects from before its subscriptions.
    """
    before = sum(seq is None or begin < seq for begin in begins)
    if (not before or looks_back[before - 1]) and looks_back[-1]:
        return len(begins) - 1
    return max(before - 1, 0)


def take_row(location: RowLocation) -> SubscriptionRows:
    """Copy the row of a location."""
    rows = take_rows(whole_rows(location.opened.segment), np.array([location.row]))
    return map_columns(rows, read_only)


def same_rows(a: SubscriptionRows, b: SubscriptionRows) -> bool:
    """Whether two subscriptions are equal, id and times aside."""
    return bool(a.kind[0] == b.kind[0]) and kind_numbered(a.kind[0]).same_subscription(a, b)


class SubscriptionPeriod(NamedTuple):
    """One subscription of an id: its event, and the seq at which it ended, if it has."""

    begin_seq: int
    end_seq: int | None
    end_reason: str  # ended, replaced or expired
    body: dict[str, Any]


class SubscriptionHistory(NamedTuple):
    """The subscriptions of an id in order of begin, complete from seq `since` on."""

    periods: Sequence[SubscriptionPeriod]
    since: int


def choose_period(history: SubscriptionHistory, obj: ExplainedObject) -> SubscriptionPeriod:
    """Choose the subscription of a history that applies to the object."""
    back = [kind_named(period.body["kind"]).looks_back for period in history.periods]
    begins = [period.begin_seq for period in history.periods]
    return history.periods[choose_last_before(begins, back, obj.seq)]


def judge_period(period: SubscriptionPeriod, since: int, seq: int) -> tuple[bool | None, str]:
    """Decide whether a period covers an event, expiry aside, and why; None if that is forgotten."""
    begin, end = period.begin_seq, period.end_seq
    if seq <= begin:
        if seq < since:
            return None, describe_forgotten(begin, since)
        return False, f"it was not yet subscribed: it began at seq {begin}"
    if end is None:
        return True, f"it has been live since seq {begin}"
    did = "had expired" if period.end_reason == "expired" else f"was {period.end_reason}"
    if seq < end:
        if period.end_reason == "expired":
            return True, f"it was live from seq {begin} until it expired, before event {end}"
        return True, f"it was live from seq {begin} until event {end} {period.end_reason} it"
    if seq < since:
        return None, f"it {did} by event {end}; what came of the id until {since} is forgotten"
    return False, f"it {did} by event {end}"


def describe_forgotten(begin: int, since: int) -> str:
    """Say why an object from before a subscription may have matched another one of its id."""
    return (
        f"this one began at seq {begin}, and whether the id had another one at the object"
        f" is forgotten: changes are known from seq {since} on"
    )


class IdChange(NamedTuple):
    """An event that changed an id: its seq, and the subscription that it began, if any."""

    seq: int
    rows: SubscriptionRows | None


def read_manifests(state: StateDir) -> list[Manifest]:
    """Read the manifests that the state still has, oldest first."""
    return [read_manifest(state, batch) for batch in committed_batches(state)]


def find_changes(state: StateDir, manifests: Sequence[Manifest], name: str) -> list[IdChange]:
    """Find the changes of an id in the blocks of these manifests, in order of seq."""
    found: list[IdChange] = []
    for manifest in manifests:
        rejected: set[int] = set()
        if manifest.late_dead is not None:
            late = open_arrays(state.file(manifest.late_dead)).arrays
            rejected = set(late["dead.event"].tolist())
        for block in manifest.blocks:
            arrays = open_arrays(state.file(block.file)).arrays
            if "change.event" not in arrays:
                continue
            for at in rows_of_id(arrays["change.id_offsets"], arrays["change.id_bytes"], name):
                seq = block.first_seq + int(arrays["change.event"][at])
                if seq in rejected:
                    continue
                row, made = int(arrays["change.row"][at]), None
                if row >= 0:
                    made = take_rows(rows_of_arrays(arrays), np.array([row]))
                found.append(IdChange(seq, made))
    return sorted(found, key=lambda change: change.seq)


def find_complete_from(manifests: Sequence[Manifest]) -> int:
    """Find the seq from which manifests have every change of an id: the oldest one's last event.

    Events before it may have ended subscriptions that no manifest has. Manifests that reach back
    to the beginning of the log are complete.
    """
    return 0 if not find_first_seq(manifests) else manifests[0].next_seq - 1


def find_first_seq(manifests: Sequence[Manifest]) -> int | None:
    """Find the first seq of the blocks of manifests; None for an empty log."""
    return min((block.first_seq for m in manifests for block in m.blocks), default=None)
