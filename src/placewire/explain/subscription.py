"""The subscription of a pair: one that is given as JSON, or a row of a state's segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placewire.explain.context import ExplainContext, Live, NotKept, open_live, read_given
from placewire.explain.history import (
    History,
    IdPeriod,
    changes_of_id,
    choose_period,
    last_manifests,
)
from placewire.explain.object import Seen
from placewire.ingest.changes import ChangesBuilder, finish_rows
from placewire.kernels.jit import read_only
from placewire.model.errors import InvalidEvent
from placewire.model.events import UNSET, SubscribeEvent
from placewire.model.expression import Node
from placewire.model.kinds import kind_numbered
from placewire.model.subscriptions import SubscriptionRows, take_rows
from placewire.objects.sections import rows_of_id
from placewire.segments.segment import unindexed, whole_rows
from placewire.storage.manifest import SegmentEntry
from placewire.text.query import parse_where

GONE = ""  # the name of a segment that is not there


class RowLocation(NamedTuple):
    """Where a subscription is in a state: its segment and row.

    One that has ended and is in no segment any more has one of its own, without an index.
    """

    live: Live
    row: int

    @property
    def begin_seq(self) -> int:
        return int(self.live.segment.rows.begin_seq[self.row])

    @property
    def kind(self) -> int:
        return self.live.entry.kind

    @property
    def ended(self) -> bool:
        return self.live.ended(self.row)

    @property
    def indexed(self) -> bool:
        return self.live.entry.name != GONE


class Subscribed(NamedTuple):
    """The subscription: one row, the expression if it was given in words, its places by begin.

    `place` is the one that is explained; `others` are those of the same id that are not.
    """

    id: str | None
    rows: SubscriptionRows
    node: Node | None
    words: dict[int, str]
    ts_us: int | None = None
    place: RowLocation | None = None
    others: tuple[RowLocation, ...] = ()
    differs: bool = False  # the state's subscription of this id is another one
    spell: IdPeriod | None = None  # when it was one, where that is known better than by the state
    since: int = 0  # from which event on spells are known

    @property
    def kind(self) -> int:
        return int(self.rows.kind[0])

    @property
    def indexed(self) -> RowLocation | None:
        """Its place in a segment of the state that objects are held against."""
        return self.place if self.place is not None and self.place.indexed else None


def give_subscription(ground: ExplainContext, given: dict[str, Any], seen: Seen) -> Subscribed:
    """A subscription as it is written; in a state it may be one that is there."""
    made = make_subscription(ground, given, seen)
    places = all_places(ground, made.id) if made.id is not None else []
    place = choose_place(places, seen)
    if place is None:
        return made
    if not same_rows(made.rows, row_at(place)):
        return made._replace(differs=True)
    return put_at(made, place, places)


def recall_subscription(ground: ExplainContext, history: History, seen: Seen) -> Subscribed:
    """The subscription that an id was when the object came, whether the state still has it."""
    spell = choose_period(history, seen)
    made = make_subscription(ground, spell.body, seen)
    made = made._replace(spell=spell, since=history.since)
    assert made.id is not None
    places = all_places(ground, made.id)
    for place in places:
        if place.begin_seq == spell.begin_seq:
            return put_at(made, place, places)
    return made


def put_at(made: Subscribed, place: RowLocation, places: Sequence[RowLocation]) -> Subscribed:
    """A subscription that is one of the state's."""
    others = tuple(other for other in places if other is not place)
    return made._replace(rows=row_at(place), place=place, others=others)


def make_subscription(ground: ExplainContext, given: dict[str, Any], seen: Seen) -> Subscribed:
    """A subscription as it is written, wherever it may be."""
    event, ts_us = read_given(given, "subscribe", "subscription")
    assert isinstance(event, SubscribeEvent)
    builder = ChangesBuilder(ground.analyzer, ground.settings, ground.lexicon)
    begun_us = ts_us if ts_us is not None else (seen.ts_us or 0)
    try:
        builder.subscribe(0, begun_us, 0, event)
    except InvalidEvent as error:
        said = str(error)
        if "id" not in given:
            said = said.replace("subscription 'subscription'", "subscription", 1)
        raise InvalidEvent(said) from None
    rows, _, _ = finish_rows(builder.finish(), ground.analyzer)
    rows = SubscriptionRows(*map(read_only, rows))
    node = None
    if event.where is not UNSET:
        node = parse_where(event.where, ground.analyzer.tokens)
    terms = [] if builder.times_at else list(dict.fromkeys(builder.terms))
    words = dict(zip(ground.analyzer.hash_terms(terms).tolist(), terms, strict=True))
    name = event.id if "id" in given else None
    return Subscribed(name, rows, node, words, ts_us)


def find_subscription(ground: ExplainContext, name: str, seen: Seen) -> Subscribed:
    """A subscription of the state by its id; raises NotKept."""
    if ground.manifest is None:
        raise InvalidEvent(f"subscription {name!r}: needs a state to be found in")
    places = all_places(ground, name)
    place = choose_place(places, seen)
    if place is None:
        raise NotKept(
            f"subscription {name!r}: is not in the state: it was never made, or has ended and gone"
        )
    rows = row_at(place)
    words: dict[int, str] = {}
    if kind_numbered(rows.kind[0]).matched:  # otherwise it has no words
        words = ground.words_of(rows.literal_term)
        words |= {h: w for h, w in seen.words.items() if h in set(rows.literal_term.tolist())}
    return Subscribed(
        name, rows, None, words, None, place, tuple(p for p in places if p is not place)
    )


def find_places(segments: Sequence[Live], name: str) -> list[RowLocation]:
    """Where subscriptions of an id are, in order of begin; each once, as a live row if it is one.

    A row that was written again is ended where it was before.
    """
    found: dict[int, RowLocation] = {}
    for live in segments:
        rows = live.segment.rows
        for row in rows_of_id(rows.id_offsets, rows.id_bytes, name).tolist():
            place = RowLocation(live, row)
            if place.begin_seq not in found or not place.ended:
                found[place.begin_seq] = place
    return [found[begin] for begin in sorted(found)]


def all_places(ground: ExplainContext, name: str) -> list[RowLocation]:
    """The same of a state, with those that ended and that only the last commits still have."""
    if ground.state is None:
        return []
    found = {place.begin_seq: place for place in find_places(ground.segments, name)}
    manifests = last_manifests(ground.state)
    for place in find_places(open_live(ground.state, manifests[0].segments), name):
        if place.begin_seq not in found:
            found[place.begin_seq] = gone_place(row_at(place))
    for change in changes_of_id(ground.state, manifests, name):
        if change.rows is not None and change.seq not in found:
            found[change.seq] = gone_place(change.rows)
    return [found[begin] for begin in sorted(found)]


def gone_place(rows: SubscriptionRows) -> RowLocation:
    """The place of a subscription that has ended and is in no segment of the last commit."""
    entry = SegmentEntry(GONE, 1, 1, kind=int(rows.kind[0]))
    return RowLocation(Live(entry, unindexed(rows), np.ones(1, np.uint64)), 0)


def choose_place(places: Sequence[RowLocation], seen: Seen) -> RowLocation | None:
    """The subscription that the object met: the last that began before it, or else the first.

    A `relevant` one looks back over the window: it meets objects that came before it too.
    """
    if not places:
        return None
    before = [p for p in places if seen.seq is None or p.begin_seq < seen.seq]
    if (not before or looks_back(before[-1])) and looks_back(places[-1]):
        return places[-1]
    return before[-1] if before else places[0]


def row_at(place: RowLocation) -> SubscriptionRows:
    """The one row of a place."""
    rows = take_rows(whole_rows(place.live.segment), np.array([place.row]))
    return SubscriptionRows(*map(read_only, rows))


def same_rows(a: SubscriptionRows, b: SubscriptionRows) -> bool:
    """Whether two subscriptions ask for the same."""
    return bool(a.kind[0] == b.kind[0]) and kind_numbered(a.kind[0]).same_subscription(a, b)


def looks_back(place: RowLocation) -> bool:
    """Whether a subscription meets objects that came before it."""
    return kind_numbered(place.kind).looks_back
