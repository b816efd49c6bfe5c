"""A live segment: its rows, which of them have ended, and what changes of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.blocks import NEVER
from placewire.kernels.ids import bits_to_mask, mark_bits
from placewire.kinds.nearest.live_results import LiveResults
from placewire.kinds.relevant.results import LiveBuffers
from placewire.segments.segment import Segment
from placewire.storage.manifest import DeltaEntry, SegmentEntry

NO_BITS = np.empty(0, np.uint64)


@dataclass
class LiveSegment:
    """One live segment with its bitmap of ended rows, as of the next commit."""

    name: str
    segment: Segment
    dead: NDArray[np.uint64] = field(default_factory=lambda: NO_BITS)
    ended: int = 0
    dead_file: str | None = None
    changed: bool = False  # since the last commit
    frozen: bool = False  # somebody else reads this bitmap: copy it before the next mark
    results: LiveResults | None = None  # of `nearest` rows
    buffers: LiveBuffers | None = None  # of `relevant` rows
    places: NDArray[np.int64] | None = None  # of `trending` rows: their regions, numbered

    def end(self, rows: NDArray[np.int64]) -> None:
        """Mark rows as ended."""
        if rows.size == 0:
            return
        if self.dead.size == 0:
            self.dead = np.zeros(self.segment.rows.total // 64 + 1, np.uint64)
        elif self.frozen:
            self.dead = self.dead.copy()
        self.frozen = False
        mark_bits(self.dead, rows)
        if self.buffers is not None:
            self.buffers.soonest[rows] = NEVER
        self.ended += int(rows.size)
        self.changed = True

    def ended_mask(self) -> NDArray[np.bool_]:
        """Which rows have ended."""
        if self.dead.size == 0:
            return np.zeros(self.segment.rows.total, np.bool_)
        mask: NDArray[np.bool_] = bits_to_mask(self.dead, self.segment.rows.total)
        return mask

    def entry(self) -> SegmentEntry:
        return SegmentEntry(
            self.name,
            self.segment.rows.total,
            self.ended,
            self.dead_file,
            self.segment.kind,
            self.deltas,
        )

    @property
    def deltas(self) -> list[DeltaEntry]:
        """What changed in results or buffers since the file was written."""
        changing = self.results or self.buffers
        return list(changing.deltas) if changing is not None else []

    @property
    def stale(self) -> bool:
        changing = self.results or self.buffers
        return changing is not None and changing.stale
