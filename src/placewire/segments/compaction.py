"""Compaction: merge segments by size tier and drop ended rows.

`live` decides when to merge. `Rewrites` holds segments that were rewritten for another division of
their rows, until a commit swaps them in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from placewire.kernels.ids import bits_to_mask
from placewire.kernels.jit import read_only
from placewire.model.arrays import I64, U64
from placewire.model.kinds import MergedRows, Partition, kind_numbered
from placewire.model.subscriptions import SubscriptionRows, concat_rows, take_rows
from placewire.segments.live_segment import LiveSegment
from placewire.segments.segment import Segment, make_segment, whole_rows, write_segment
from placewire.storage.layout import StateDir
from placewire.storage.manifest import SegmentEntry

SMALLEST_TIER = 1 << 14
FAN_IN = 4
MOST_DEAD = 0.4


class MergedSegment(NamedTuple):
    """A merged segment, and for each source the new number of each of its rows, or -1."""

    segment: Segment
    row_maps: list[I64]


def tier_of(rows: int) -> int:
    """Return the size tier of a segment; sizes in a tier differ by at most a factor of FAN_IN."""
    tier = 0
    while rows > SMALLEST_TIER << (2 * tier):
        tier += 1
    return tier


def choose_merge(entries: Sequence[SegmentEntry], stale: Sequence[bool] = ()) -> list[int]:
    """Choose the positions of segments of one kind to merge next; may be empty.

    FAN_IN segments of a tier become one of the next. A segment with many tombstones or a `stale`
    index is rewritten alone.
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


class MergeSource(NamedTuple):
    """A segment to merge, its tombstones, and the current results of its rows."""

    segment: Segment
    dead: U64
    held: Any = None


def undivided(kind: int, rows: SubscriptionRows, held: Any) -> None:
    """Divide rows into no parts: the partition without a plan."""


def merge_segments(
    sources: Sequence[MergeSource], now_us: int, partition: Partition = undivided
) -> MergedSegment:
    """Merge the rows of all sources that have neither ended nor expired into one segment."""
    parts = []
    row_maps = []
    pickings = []
    base = 0
    for source in sources:
        segment, dead = source.segment, source.dead
        keep = segment.rows.expires_us > now_us
        if dead.size:
            keep &= ~bits_to_mask(read_only(dead), segment.rows.total)
        picked = np.flatnonzero(keep)
        row_map = np.full(segment.rows.total, -1, np.int64)
        row_map[picked] = np.arange(base, base + picked.size)
        base += picked.size
        row_maps.append(row_map)
        pickings.append(picked)
        parts.append(take_rows(whole_rows(segment), picked))
    rows = concat_rows(parts)
    kind = sources[0].segment.kind
    segments, held = [one.segment for one in sources], [one.held for one in sources]
    merged = kind_numbered(kind).merge(MergedRows(segments, held, pickings, rows, partition))
    return MergedSegment(make_segment(kind, rows, merged.held, merged.parts), row_maps)


Remake = Callable[[LiveSegment], Segment]


class Rewrites:
    """Rewritten segments that wait for the next commit, by the segment that each replaces."""

    def __init__(self, state: StateDir, named: dict[str, str]) -> None:
        self.state = state
        self.named = dict(named)

    def write(self, batch: int, sources: Iterable[LiveSegment], remake: Remake) -> None:
        """Rewrite segments; an earlier rewrite that was not swapped in is dropped."""
        for live in sources:
            name = self.state.new_name(batch, "segment")
            write_segment(self.state.file(name), remake(live))
            self.named[live.name] = name
            track_changes(live)

    def take(self, live: LiveSegment, open_rewrite: Callable[[str], LiveSegment]) -> LiveSegment:
        """Open the rewrite of a segment, with the changes since it was written."""
        rewritten = open_rewrite(self.named.pop(live.name))
        all_rows = np.arange(live.segment.rows.total)
        rewritten.dead, rewritten.ended = live.dead, live.ended
        rewritten.changed, rewritten.frozen = live.ended > 0, True
        rewritten.results.carry(live.results, all_rows)
        rewritten.results.inherit(live.results, all_rows)
        rewritten.end_results()
        return rewritten


def track_changes(live: LiveSegment) -> None:
    """Track changes to the results of a segment's rows from now on."""
    live.frozen = True
    live.results.freeze(copy=False)


def divide_by(parts_of: Callable[[LiveSegment, SubscriptionRows, Any], Any]) -> Remake:
    """Return a function that rewrites segments with their rows divided into other parts."""

    def remake(live: LiveSegment) -> Segment:
        rows = whole_rows(live.segment)
        held = live.results.take(np.arange(rows.total))
        return make_segment(live.segment.kind, rows, held, parts_of(live, rows, held))

    return remake
