"""Live results: those of one segment's `nearest` rows as the one writer has them in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.space.circles import radii_to_areas
from placewire.kinds.nearest.index import points_of
from placewire.kinds.nearest.results import Entrants, Radii, enter, read_entrants, read_radii
from placewire.segments.segment import Segment
from placewire.storage.arrays import open_arrays
from placewire.storage.manifest import DeltaEntry

# The index is made anew once its balls have shrunk to half: all together, by the area that they
# cover, or those that objects meet, by how many of the postings looked at are still in the ball.
SHRUNK = 0.5
LOOKED = 100_000  # postings after which the share in the ball is taken
MOST_DELTAS = 24


class LiveResults:
    """Results, radii and the deltas that the next manifest will name."""

    def __init__(
        self, segment: Segment, deltas: list[DeltaEntry], path: Callable[[str], Path]
    ) -> None:
        assert segment.neighbours is not None
        assert segment.balls is not None
        self.neighbours = segment.neighbours.copy()
        self.radius = segment.balls.radius.copy()
        self.within_m = points_of(segment.rows)[2]
        self.indexed_area = float(radii_to_areas(segment.balls.radius).sum())
        self.deltas = list(deltas)
        self.fresh: list[Entrants] = []  # of the batch that is not committed yet
        self.since: list[Entrants] | None = None  # since a merge began to read these results
        self.looked = self.passed = 0  # postings since the last share was taken
        self.first_share: float | None = None  # in the ball, when the index was new
        self.share = 1.0
        for delta in deltas:
            arrays = open_arrays(path(delta.file)).arrays
            enter(self.neighbours, read_entrants(arrays, delta.label))
            rows, radius = read_radii(arrays, delta.label)
            self.radius[rows] = radius
        self.area = float(radii_to_areas(self.radius).sum())

    @property
    def stale(self) -> bool:
        """Whether the index looks for objects where few can enter any more."""
        met = self.first_share is not None and self.share < SHRUNK * self.first_share
        return met or self.area < SHRUNK * self.indexed_area

    def note_looked(self, looked: int, passed: int) -> None:
        """Workers looked at so many postings, and so many objects were in the ball."""
        self.looked += looked
        self.passed += passed
        if self.looked < LOOKED:
            return
        self.share = self.passed / self.looked
        if self.first_share is None:
            self.first_share = self.share
        self.looked = self.passed = 0

    def enter(self, candidates: Entrants) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Apply candidates by (row, seq); which entered, and the seq each dropped or -1."""
        entered, dropped = enter(self.neighbours, candidates)
        row, seq, distance = candidates
        entrants = Entrants(row[entered], seq[entered], distance[entered])
        if entrants.row.size:
            self.fresh.append(entrants)
            if self.since is not None:
                self.since.append(entrants)
            self._shrink(np.unique(entrants.row))
        return entered, dropped

    def _shrink(self, rows: NDArray[np.uint32]) -> None:
        """Note the radii of rows whose results changed."""
        n = self.neighbours
        last = n.offsets[1:][rows] - 1
        full = n.counts[rows] == last + 1 - n.offsets[:-1][rows]
        rows, last = rows[full], last[full]
        before, after = self.radius[rows], n.distance[last]
        self.area += float((radii_to_areas(after) - radii_to_areas(before)).sum())
        self.radius[rows] = after

    def take_fresh(self) -> tuple[Entrants, Radii] | None:
        """What the batch changed; it is no longer fresh."""
        if not self.fresh:
            return None
        entrants = Entrants(*(np.concatenate(c) for c in zip(*self.fresh, strict=True)))
        self.fresh = []
        rows = np.unique(entrants.row)
        rows = rows[self.radius[rows] < self.within_m[rows]]
        return entrants, Radii(rows, self.radius[rows])

    def take_deltas(self, path: Callable[[str], Path]) -> tuple[Entrants, Radii]:
        """All deltas as one; they are no longer named."""
        opened = [(open_arrays(path(d.file)).arrays, d.label) for d in self.deltas]
        self.deltas = []
        entrants = [read_entrants(*one) for one in opened]
        rows = np.unique(np.concatenate([read_radii(*one).row for one in opened]))
        return (
            Entrants(*(np.concatenate(c) for c in zip(*entrants, strict=True))),
            Radii(rows, self.radius[rows]),
        )
