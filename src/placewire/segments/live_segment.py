"""A live segment: its rows, their tombstones and their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from placewire.kernels.ids import bits_to_mask, mark_bits
from placewire.kernels.jit import read_only
from placewire.model.arrays import I64, U64, Bools
from placewire.model.kinds import RowResults, kind_numbered
from placewire.segments.segment import Segment
from placewire.storage.manifest import DeltaEntry, SegmentEntry

NO_BITS = np.empty(0, np.uint64)


class ResultsContext(NamedTuple):
    """What opening results needs: the way to buffer, the sliding window, and paths by name."""

    buffer: str  # one of the kind's `buffers`; empty: its default
    by_time: bool  # whether the window is one of time
    horizon: int
    path: Callable[[str], Path]


@dataclass
class LiveSegment:
    """A segment with a bitmap of tombstones, in the state of the next commit."""

    name: str
    segment: Segment
    dead: U64 = field(default_factory=lambda: NO_BITS)
    ended: int = 0
    dead_file: str | None = None
    changed: bool = False  # since the last commit
    frozen: bool = False  # another thread reads this bitmap: copy it before the next mark
    results: Any = field(default_factory=RowResults)

    def end(self, rows: I64) -> None:
        """Mark rows as ended."""
        if rows.size == 0:
            return
        if self.dead.size == 0:
            self.dead = np.zeros(self.segment.rows.total // 64 + 1, np.uint64)
        elif self.frozen:
            self.dead = self.dead.copy()
        self.frozen = False
        mark_bits(self.dead, rows)
        self.results.end(rows)
        self.ended += int(rows.size)
        self.changed = True

    def ended_mask(self) -> Bools:
        """Return a mask of the rows that have ended."""
        if self.dead.size == 0:
            return np.zeros(self.segment.rows.total, np.bool_)
        return bits_to_mask(read_only(self.dead), self.segment.rows.total)

    def end_results(self) -> None:
        """Drop the results of ended rows, after both were read."""
        if self.ended:
            self.results.end(np.flatnonzero(self.ended_mask()))

    def entry(self) -> SegmentEntry:
        return SegmentEntry(
            self.name,
            self.segment.kind,
            self.segment.rows.total,
            self.ended,
            self.dead_file,
            list(self.results.deltas),
        )


def open_live(
    name: str, segment: Segment, deltas: Sequence[DeltaEntry], context: ResultsContext
) -> LiveSegment:
    """Open a segment with the results of its rows in memory."""
    results = kind_numbered(segment.kind).open_results(segment, deltas, context)
    return LiveSegment(name, segment, results=results)
