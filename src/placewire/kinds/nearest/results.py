"""Neighbours: the current results of `nearest` subscriptions, and their changes in a batch.

A segment's file has the results of its rows when it was written. Each batch adds a delta: the
candidates that entered, by (row, seq), and the radii that shrank. Applied in order, the deltas
give the results of the last commit; radii only shrink, so theirs can be applied in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import read_only
from placewire.kernels.space.circles import radii_to_areas
from placewire.kinds.nearest.kernels.top_k import (
    candidates_into_results,
    results_to_radii,
    slots_taken,
)
from placewire.model.arrays import F64, I32, I64, U16, U32, Array, Bools
from placewire.model.kinds import Delta, RowResults
from placewire.model.subscriptions import (
    concat_columns,
    lengths_to_offsets,
    take_columns,
)
from placewire.storage.arrays import label_columns, open_arrays, read_columns
from placewire.storage.manifest import DeltaEntry

# The index is rebuilt once its circles have shrunk to half, measured by the area of all circles or
# by the share of tested postings whose circle still contains the object.
SHRUNK = 0.5
LOOKED = 100_000  # tested postings per measurement of that share


class Neighbours(NamedTuple):
    """Results of n rows: row r's are in slots offsets[r]:offsets[r + 1], the first `counts[r]`."""

    offsets: I64
    counts: I32
    distance: F64
    seq: I64

    def copy(self) -> Neighbours:
        return Neighbours(
            self.offsets.copy(), self.counts.copy(), self.distance.copy(), self.seq.copy()
        )


class NearestEntrants(NamedTuple):
    """Candidates by (row, seq) that entered results."""

    row: U32
    seq: I64
    distance: F64


class Radii(NamedTuple):
    """Rows whose radius shrank, and the new radii."""

    row: U32
    radius: F64


def no_neighbours(ks: U16) -> Neighbours:
    """Return empty results with room for k objects each."""
    offsets = lengths_to_offsets(ks.astype(np.int64))
    slots = int(offsets[-1])
    return Neighbours(
        offsets, np.zeros(ks.size, np.int32), np.zeros(slots), np.zeros(slots, np.int64)
    )


def take_neighbours(neighbours: Neighbours, picked: I64) -> Neighbours:
    """Return the results of some rows."""
    offsets, counts, distance, seq = map(read_only, neighbours)
    return Neighbours(*slots_taken(offsets, counts, distance, seq, read_only(picked)))


def enter(neighbours: Neighbours, candidates: NearestEntrants) -> tuple[Bools, I64]:
    """Apply candidates by (row, seq) in place; return those that entered and the seqs dropped."""
    rows, seqs, distances = map(read_only, candidates)
    entered, dropped = candidates_into_results(
        rows,
        seqs,
        distances,
        read_only(neighbours.offsets),
        neighbours.counts,
        neighbours.distance,
        neighbours.seq,
    )
    return entered, dropped


def radii_of(neighbours: Neighbours, within_m: F64) -> F64:
    """Return the largest distance at which an object may still enter."""
    return results_to_radii(
        read_only(neighbours.offsets),
        read_only(neighbours.counts),
        read_only(neighbours.distance),
        read_only(within_m),
    )


def make_delta(entrants: NearestEntrants, radii: Radii) -> Delta:
    """Return a delta as the arrays of a file."""
    arrays = label_columns("entrant", entrants) | label_columns("radius", radii)
    return Delta(arrays, int(entrants.row.size))


def read_entrants(arrays: dict[str, Array], label: str) -> NearestEntrants:
    return read_columns(NearestEntrants, arrays, f"{label}.entrant")


def read_radii(arrays: dict[str, Array], label: str) -> Radii:
    return read_columns(Radii, arrays, f"{label}.radius")


def areas_of(radius: F64) -> F64:
    """Return the areas of circles with these radii."""
    return radii_to_areas(read_only(radius))


class NearestResults(RowResults):
    """Results, radii and the deltas that the next manifest will name."""

    def __init__(
        self,
        neighbours: Neighbours,
        radius: F64,
        within_m: F64,
        deltas: Sequence[DeltaEntry],
        path: Callable[[str], Path],
    ) -> None:
        self.neighbours = neighbours.copy()
        self.radius = radius.copy()
        self.within_m = within_m
        self.indexed_area = float(areas_of(radius).sum())
        self.deltas = list(deltas)
        self.fresh: list[NearestEntrants] = []  # of the uncommitted batch
        self.since: list[NearestEntrants] | None = None  # since a merge began to read these results
        self.looked = self.passed = 0  # postings since the last measurement
        self.first_share: float | None = None  # share in the circle when the index was new
        self.share = 1.0
        for delta in deltas:
            arrays = open_arrays(path(delta.file)).arrays
            enter(self.neighbours, read_entrants(arrays, delta.label))
            rows, radius = read_radii(arrays, delta.label)
            self.radius[rows] = radius
        self.area = float(areas_of(self.radius).sum())

    @property
    def stale(self) -> bool:
        """Return true if the index has become much larger than the current circles."""
        met = self.first_share is not None and self.share < SHRUNK * self.first_share
        return met or self.area < SHRUNK * self.indexed_area

    def note_looked(self, looked: int, passed: int) -> None:
        """Record how many postings workers tested, and how many objects were in the circle."""
        self.looked += looked
        self.passed += passed
        if self.looked < LOOKED:
            return
        self.share = self.passed / self.looked
        if self.first_share is None:
            self.first_share = self.share
        self.looked = self.passed = 0

    def enter(self, candidates: NearestEntrants) -> tuple[Bools, I64]:
        """Apply candidates by (row, seq); return which entered, and the seq each dropped or -1."""
        entered, dropped = enter(self.neighbours, candidates)
        entrants = take_columns(candidates, entered)
        if entrants.row.size:
            self.fresh.append(entrants)
            if self.since is not None:
                self.since.append(entrants)
            self._shrink(np.unique(entrants.row))
        return entered, dropped

    def _shrink(self, rows: U32) -> None:
        """Record the radii of rows whose results changed."""
        n = self.neighbours
        last = n.offsets[1:][rows] - 1
        full = n.counts[rows] == last + 1 - n.offsets[:-1][rows]
        rows, last = rows[full], last[full]
        before, after = self.radius[rows], n.distance[last]
        self.area += float((areas_of(after) - areas_of(before)).sum())
        self.radius[rows] = after

    def freeze(self, copy: bool) -> Neighbours:
        self.since = []
        return self.neighbours.copy() if copy else self.neighbours

    def inherit(self, source: RowResults, row_map: I64) -> None:
        assert isinstance(source, NearestResults)
        for entrants in source.since or ():
            rows = row_map[entrants.row]
            kept = rows >= 0
            moved = entrants._replace(row=rows.astype(np.uint32))
            self.enter(take_columns(moved, kept))

    def take(self, rows: I64) -> Neighbours:
        return take_neighbours(self.neighbours, rows)

    def take_fresh(self, first_seq: int) -> Delta | None:
        if not self.fresh:
            return None
        entrants = concat_columns(self.fresh)
        self.fresh = []
        rows = np.unique(entrants.row)
        rows = rows[self.radius[rows] < self.within_m[rows]]
        return make_delta(entrants, Radii(rows, self.radius[rows]))

    def fold(self, path: Callable[[str], Path]) -> Delta:
        opened = [(open_arrays(path(d.file)).arrays, d.label) for d in self.deltas]
        entrants = [read_entrants(*one) for one in opened]
        rows = np.unique(np.concatenate([read_radii(*one).row for one in opened]))
        return make_delta(
            concat_columns(entrants),
            Radii(rows, self.radius[rows]),
        )

    def object_seqs(self) -> I64:
        n = self.neighbours
        slots = np.arange(n.seq.size) - np.repeat(n.offsets[:-1], np.diff(n.offsets))
        return np.unique(n.seq[slots < np.repeat(n.counts, np.diff(n.offsets))])
