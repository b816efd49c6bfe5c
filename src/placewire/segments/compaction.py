"""Compaction: few segments, none mostly dead, and no commit that waits for a large merge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.blocks import NEVER
from placewire.kernels.ids import bits_to_mask
from placewire.kinds.nearest.index import Deal, concat_deals, take_deal
from placewire.kinds.nearest.results import Neighbours, concat_neighbours, take_neighbours
from placewire.kinds.relevant.index import LiteralDeal
from placewire.kinds.relevant.kernels.buffers import Buffers
from placewire.kinds.relevant.results import concat_buffers, take_buffers
from placewire.model.subscriptions import (
    BOOLEAN,
    RELEVANT,
    TRENDING,
    SubscriptionRows,
    concat_rows,
    take_rows,
)
from placewire.segments.live_segment import LiveSegment
from placewire.segments.segment import (
    Segment,
    make_near_segment,
    make_plain_segment,
    make_relevant_segment,
    make_segment,
    whole_rows,
    write_segment,
)
from placewire.storage.layout import StateDir
from placewire.storage.manifest import SegmentEntry

SMALLEST_TIER = 1 << 14
FAN_IN = 4
MOST_DEAD = 0.4


class Merged(NamedTuple):
    """A merged segment, and for each source the new number of each of its rows, or -1."""

    segment: Segment
    row_maps: list[NDArray[np.int64]]


def tier_of(rows: int) -> int:
    """Segments of one tier are within a factor of FAN_IN of each other."""
    tier = 0
    while rows > SMALLEST_TIER << (2 * tier):
        tier += 1
    return tier


def choose_merge(entries: Sequence[SegmentEntry], stale: Sequence[bool] = ()) -> list[int]:
    """The positions of segments of one kind to merge next, or none.

    FAN_IN segments of one tier make one of the next; one that is mostly dead, or whose index is
    `stale`, is written anew.
    """
    by_tier: dict[int, list[int]] = {}
    for position, entry in enumerate(entries):
        by_tier.setdefault(tier_of(entry.rows - entry.ended), []).append(position)
    for tier in sorted(by_tier):
        if len(by_tier[tier]) >= FAN_IN:
            return sorted(p for t, ps in by_tier.items() if t <= tier for p in ps)
    for position, entry in enumerate(entries):
        if entry.ended > MOST_DEAD * entry.rows or (stale and stale[position]):
            return [position]
    return []


class Source(NamedTuple):
    """A segment to merge, its ended rows, and the results or buffers as they are now."""

    segment: Segment
    dead: NDArray[np.uint64]
    neighbours: Neighbours | None = None
    buffers: Buffers | None = None


DealLiterals = Callable[[SubscriptionRows, NDArray[np.int32]], LiteralDeal | None]


def undealt(rows: SubscriptionRows, theta: NDArray[np.int32]) -> None:
    """No plan deals postings of `relevant` rows out."""


def merge_segments(
    sources: Sequence[Source], now_us: int, deal_literals: DealLiterals = undealt
) -> Merged:
    """Rows of all sources that have neither ended nor expired, indexed together."""
    parts = []
    row_maps = []
    pickings = []
    base = 0
    for source in sources:
        segment, dead = source.segment, source.dead
        keep = segment.rows.expires_us > now_us
        if dead.size:
            keep &= ~bits_to_mask(dead, segment.rows.total)
        picked = np.flatnonzero(keep)
        row_map = np.full(segment.rows.total, -1, np.int64)
        row_map[picked] = np.arange(base, base + picked.size)
        base += picked.size
        row_maps.append(row_map)
        pickings.append(picked)
        parts.append(take_rows(whole_rows(segment), picked))
    rows = concat_rows(parts)
    if sources[0].segment.kind == BOOLEAN:
        return Merged(make_segment(rows), row_maps)
    if sources[0].segment.kind == TRENDING:
        return Merged(make_plain_segment(rows), row_maps)
    if sources[0].segment.kind == RELEVANT:
        held = [s.buffers for s in sources if s.buffers is not None]
        by_time = any(b.exp is not b.seq for b in held)
        taken = [take_buffers(b, p, by_time) for b, p in zip(held, pickings, strict=True)]
        joined = concat_buffers(taken, by_time)
        return Merged(
            make_relevant_segment(rows, joined, deal_literals(rows, joined.theta)), row_maps
        )
    results = [s.neighbours for s in sources if s.neighbours is not None]
    neighbours = concat_neighbours(
        [take_neighbours(n, picked) for n, picked in zip(results, pickings, strict=True)]
    )
    deals = [s.segment.balls.deal for s in sources if s.segment.balls is not None]
    deal = concat_deals([take_deal(d, picked) for d, picked in zip(deals, pickings, strict=True)])
    return Merged(make_near_segment(rows, neighbours, deal), row_maps)


Remake = Callable[[LiveSegment], Segment]


class Heirs:
    """The heirs that are written, by the name of the segment that each is of."""

    def __init__(self, state: StateDir, named: dict[str, str]) -> None:
        self.state = state
        self.named = dict(named)

    def write(self, batch: int, sources: Iterable[LiveSegment], remake: Remake) -> None:
        """Write an heir of each segment; an earlier one that has not taken over is dropped."""
        for live in sources:
            name = self.state.new_name(batch, "segment")
            write_segment(self.state.file(name), remake(live))
            self.named[live.name] = name
            note_changes(live)

    def take(self, live: LiveSegment, open_heir: Callable[[str], LiveSegment]) -> LiveSegment:
        """The heir of a segment, with what has changed since it was written."""
        heir = open_heir(self.named.pop(live.name))
        everybody = np.arange(live.segment.rows.total)
        heir.dead, heir.ended = live.dead, live.ended
        heir.changed, heir.frozen = live.ended > 0, True
        if heir.results is not None and live.results is not None:
            for entrants in live.results.since or ():
                heir.results.enter(entrants)
        if heir.buffers is not None and live.buffers is not None:
            heir.buffers.looked[:] = live.buffers.looked
            heir.buffers.inherit(live.buffers, everybody)
            heir.buffers.soonest[heir.ended_mask()] = NEVER
        return heir


def note_changes(live: LiveSegment) -> None:
    """From here on, note what changes in what a segment's rows hold."""
    live.frozen = True
    if live.results is not None:
        live.results.since = []
    if live.buffers is not None:
        live.buffers.since = []


def deal_near(deal: Callable[[LiveSegment], Deal | None]) -> Remake:
    """How `nearest` segments are made again, dealt out so."""

    def remake(live: LiveSegment) -> Segment:
        assert live.results is not None
        return make_near_segment(whole_rows(live.segment), live.results.neighbours, deal(live))

    return remake


def deal_relevant(deal: DealLiterals, by_time: bool) -> Remake:
    """How `relevant` segments are made again, dealt out so."""

    def remake(live: LiveSegment) -> Segment:
        assert live.buffers is not None
        rows = whole_rows(live.segment)
        held = take_buffers(live.buffers.buffers, np.arange(rows.total), by_time)
        return make_relevant_segment(rows, held, deal(rows, held.theta))

    return remake
