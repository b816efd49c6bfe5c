"""Heirs: segments written again under another deal, a commit before they take their places.

A segment that has an heir stays live for one more batch, in which workers read what they are about
to get of the heir. What changes meanwhile is noted, and changed in the heir when it takes over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from placewire.index.balls import Deal
from placewire.kernels.buffers import NEVER
from placewire.state.buffers import take_buffers
from placewire.state.compaction import DealLiterals
from placewire.state.layout import StateDir
from placewire.state.livesegment import LiveSegment
from placewire.state.segment import (
    Segment,
    make_near_segment,
    make_relevant_segment,
    whole_rows,
    write_segment,
)

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
