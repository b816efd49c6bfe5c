"""Buffers: the objects that `relevant` subscriptions hold, and what a batch changed.

A segment's file has the buffers of its rows as of when it was written. Each batch adds a delta:
objects that entered and are still present, thresholds that changed, and refilled buffers in full.
Applying the deltas in order, without objects that have left the window, gives the buffers of the
last commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from placewire.kernels.blocks import NEVER
from placewire.kernels.jit import read_only
from placewire.kinds.relevant.kernels.buffers import (
    ALL,
    Buffers,
    buffers_above_theta,
    buffers_past_horizon,
    buffers_put,
    buffers_taken,
    cheapest_sizes,
    entrants_into_buffers,
    newcomers_counted,
)
from placewire.model.arrays import F64, I32, I64, U16, U32, Array
from placewire.model.kinds import Delta, RowResults
from placewire.model.subscriptions import concat_offsets, lengths_to_offsets
from placewire.storage.arrays import label_columns, open_arrays, read_columns
from placewire.storage.manifest import DeltaEntry

EVERY_SEQ = -1


class BufferEntrants(NamedTuple):
    """Objects and the rows whose buffers they entered."""

    row: U32
    nano: I32
    seq: I64
    exp: I64


class BufferDelta(NamedTuple):
    """The changes of a batch: rows and objects that entered, thresholds, refilled buffers."""

    entrant_row: U32
    entrant_nano: I32
    entrant_seq: I64
    entrant_exp: I64
    theta_row: U32
    theta: I32
    theta_seq: I64
    refill_row: U32
    refill_counts: I32
    refill_nano: I32
    refill_seq: I64
    refill_exp: I64

    def entrants(self) -> tuple[BufferEntrants, BufferEntrants]:
        """Return the entrants of refilled buffers, and the others."""
        rows = np.repeat(self.refill_row, self.refill_counts)
        return BufferEntrants(
            rows, self.refill_nano, self.refill_seq, self.refill_exp
        ), BufferEntrants(*self[:4])


def empty_buffers(lengths: I64, by_time: bool) -> Buffers:
    """Return complete buffers without objects and with room for `lengths` objects."""
    offsets = lengths_to_offsets(lengths)
    slots = int(offsets[-1])
    seq = np.zeros(slots, np.int64)
    return Buffers(
        offsets,
        np.zeros(lengths.size, np.int32),
        np.zeros(slots, np.int32),
        seq,
        np.zeros(slots, np.int64) if by_time else seq,
        np.zeros(slots, np.uint16),
        np.full(lengths.size, ALL, np.int32),
        np.zeros(lengths.size, np.int64),
    )


def take_buffers(
    buffers: Buffers,
    picked: I64,
    by_time: bool,
    room: I64 | None = None,
    since_seq: int = EVERY_SEQ,
) -> Buffers:
    """Copy the buffers of some rows, with `room` for objects, by default no spare room.

    With `since_seq`, take only objects that arrived at that seq or later.
    """
    # The same type to the compiler, whether mapped from a file or made here.
    source = Buffers(*map(read_only, buffers))
    if room is None:
        room = buffers.counts[picked].astype(np.int64)
        if since_seq > 0:
            room = newcomers_counted(picked, since_seq, source)
    taken = empty_buffers(room, by_time)
    buffers_taken(picked, since_seq, source, taken)
    return taken._replace(theta=buffers.theta[picked], theta_seq=buffers.theta_seq[picked])


def concat_buffers(parts: Sequence[Buffers], by_time: bool) -> Buffers:
    """Concatenate the buffers of `parts`, without spare room."""
    columns = [np.concatenate([part[i] for part in parts]) for i in range(1, len(Buffers._fields))]
    joined = Buffers(concat_offsets([part.offsets for part in parts]), *columns)
    return joined if by_time else joined._replace(exp=joined.seq)


def buffer_arrays(buffers: Buffers) -> dict[str, Array]:
    """Return buffers as the arrays of a file."""
    arrays = label_columns("buffers", buffers)
    if buffers.exp is buffers.seq:
        del arrays["buffers.exp"]
    return arrays


def read_buffers(arrays: dict[str, Array]) -> Buffers:
    """Read buffers from the arrays of a file."""
    columns = {name: arrays.get(f"buffers.{name}") for name in Buffers._fields}
    if columns["exp"] is None:
        columns["exp"] = columns["seq"]
    return Buffers(**columns)  # type: ignore[arg-type]


def make_delta(
    buffers: Buffers, touched: I64, refilled: I64, since_seq: int, by_time: bool
) -> BufferDelta:
    """Return the changes since an event: of touched rows, and of refilled rows."""
    touched = np.setdiff1d(touched, refilled)
    came = take_buffers(buffers, touched, by_time, since_seq=since_seq)
    refills = take_buffers(buffers, refilled, by_time)
    both = np.concatenate([touched, refilled])
    return BufferDelta(
        np.repeat(touched, came.counts).astype(np.uint32),
        came.nano,
        came.seq,
        came.exp,
        both.astype(np.uint32),
        buffers.theta[both],
        buffers.theta_seq[both],
        refilled.astype(np.uint32),
        refills.counts,
        refills.nano,
        refills.seq,
        refills.exp,
    )


def delta_of(delta: BufferDelta) -> Delta:
    """Return a delta as the arrays of a file."""
    return Delta(dict(delta._asdict()), int(delta.entrant_row.size))


def read_delta(arrays: dict[str, Array], label: str) -> BufferDelta:
    return read_columns(BufferDelta, arrays, label)


BUFFERS = ("cskyband", "skyband", "kmax")
RISEN = 50_000_000  # the index is rebuilt once thresholds have risen by this much on average
NOTHING = np.empty(0, np.int64)


class BufferRule(NamedTuple):
    """How buffers are kept: `kmax`, `skyband` or `cskyband`, and whether windows are by time.

    `ratio`, for `skyband`, is the threshold as a share of the k-th score.
    """

    name: str = BUFFERS[0]
    by_time: bool = False
    kmax: float = 3.0  # times k
    ratio: float = 0.95

    @property
    def dominance(self) -> bool:
        return self.name != "kmax"

    @property
    def trim(self) -> bool:
        return self.name == "cskyband"

    def room(self, ks: U16) -> I64:
        """Return how many objects a buffer has room for."""
        k = ks.astype(np.int64)
        if self.name == "kmax":
            return np.maximum((self.kmax * k).astype(np.int64), k + 1)
        return 2 * k + 12 if self.name == "cskyband" else 4 * k + 40

    def sizes(self, ks: U16, looked: F64, growth: float = 1.0) -> I64:
        """Return how many of the best objects a buffer is filled with.

        `growth` is how many objects arrive in the window for each that leaves it.
        """
        if self.name == "cskyband":
            return cheapest_sizes(ks, looked, growth)
        return self.room(ks)


class RelevantResults(RowResults):
    """Buffers with spare room, and the deltas that the next manifest will name."""

    def __init__(
        self,
        filed: Buffers,
        ks: U16,
        rule: BufferRule,
        horizon: int,
        deltas: Sequence[DeltaEntry],
        path: Callable[[str], Path],
    ) -> None:
        self.rule = rule
        self.ks = ks
        self.indexed = filed.theta  # thresholds that the index was built with
        all_rows = np.arange(ks.size)
        room = np.maximum(rule.room(ks), filed.counts)
        self.buffers = take_buffers(filed, all_rows, rule.by_time, room)
        self.looked = np.full(ks.size, np.nan, np.float32)  # in the last search; NaN if none
        self.deltas = list(deltas)
        self.touched: list[I64] = []  # rows, in the uncommitted batch
        self.refilled: list[I64] = []
        self.since: list[I64] | None = None  # rows, since a merge began to read
        self.soonest: I64 = self._let_go(horizon)
        for delta in deltas:
            self._apply(read_delta(open_arrays(path(delta.file)).arrays, delta.label), horizon)
        self.soonest = self._let_go(horizon)

    def _let_go(self, horizon: int) -> I64:
        return buffers_past_horizon(horizon, self.buffers)

    def _change(
        self,
        rows: I64,
        theta: I32,
        theta_seq: I64,
        entrants: Sequence[BufferEntrants],
        horizon: int,
    ) -> None:
        """Reinsert objects into the buffers of some rows, and set the thresholds of these.

        The final buffers fit, but before all dominated objects are removed there may be more. So
        the work is done in buffers with room for everything.
        """
        place = np.full(self.ks.size, -1)
        place[rows] = np.arange(rows.size)
        room = self.buffers.counts[rows].astype(np.int64)
        for some in entrants:
            room += np.bincount(place[some.row], minlength=rows.size)
        wide = take_buffers(self.buffers, rows, self.rule.by_time, room + 1)
        ks = read_only(self.ks[rows])
        for some in entrants:
            entrants_into_buffers(
                read_only(place[some.row]),
                read_only(some.nano),
                read_only(some.seq),
                read_only(some.exp),
                horizon,
                ks,
                self.rule.dominance,
                wide,
            )
        wide.theta[:], wide.theta_seq[:] = theta, theta_seq
        buffers_above_theta(wide)
        buffers_put(read_only(rows), wide, self.buffers)

    def _apply(self, delta: BufferDelta, horizon: int) -> None:
        """Apply the changes of a batch to the buffers."""
        self.buffers.counts[delta.refill_row] = 0
        rows = delta.theta_row.astype(np.int64)
        self._change(rows, delta.theta, delta.theta_seq, delta.entrants(), horizon)

    def unindexed(self) -> I64:
        """Rows whose threshold is lower than in the index, which could miss their objects."""
        return np.flatnonzero(self.buffers.theta < self.indexed)

    def end(self, rows: I64) -> None:
        self.soonest[rows] = NEVER

    def freeze(self, copy: bool) -> Buffers:
        self.since = []
        return self.take(np.arange(self.ks.size)) if copy else self.buffers

    def carry(self, source: RowResults, rows: I64) -> None:
        assert isinstance(source, RelevantResults)
        self.looked[:] = source.looked[rows]

    def take(self, rows: I64) -> Buffers:
        return take_buffers(self.buffers, rows, self.rule.by_time)

    @property
    def stale(self) -> bool:
        """Return true if the index has much lower thresholds, or deltas exceed the file."""
        risen = int((self.buffers.theta.astype(np.int64) - self.indexed).sum())
        if risen > RISEN * self.ks.size:
            return True
        held = int(self.buffers.counts.sum())
        return sum(delta.entrants for delta in self.deltas) > held + 10_000

    def note(self, touched: I64, refilled: I64) -> None:
        """Record changed rows and refilled buffers."""
        for noted, rows in ((self.touched, touched), (self.refilled, refilled)):
            if rows.size:
                noted.append(rows)
        if self.since is not None:
            self.since += [touched, refilled]

    def take_fresh(self, first_seq: int) -> Delta | None:
        if not self.touched and not self.refilled:
            return None
        touched = np.unique(np.concatenate([NOTHING, *self.touched]))
        refilled = np.unique(np.concatenate([NOTHING, *self.refilled]))
        self.touched, self.refilled = [], []
        by_time = self.rule.by_time
        return delta_of(make_delta(self.buffers, touched, refilled, first_seq, by_time))

    def fold(self, path: Callable[[str], Path]) -> Delta:
        opened = [read_delta(open_arrays(path(d.file)).arrays, d.label) for d in self.deltas]
        since_seq = min(delta.first_seq for delta in self.deltas)
        touched = np.unique(np.concatenate([delta.theta_row for delta in opened]))
        refilled = np.unique(np.concatenate([delta.refill_row for delta in opened]))
        return delta_of(
            make_delta(
                self.buffers,
                touched.astype(np.int64),
                refilled.astype(np.int64),
                since_seq,
                self.rule.by_time,
            )
        )

    def inherit(self, source: RowResults, row_map: I64) -> None:
        """Apply the changes of a source since it was merged into this."""
        assert isinstance(source, RelevantResults)
        if not source.since:
            return
        changed = np.unique(np.concatenate(source.since))
        changed = changed[row_map[changed] >= 0]
        rewrites = row_map[changed]
        taken = take_buffers(source.buffers, changed, self.rule.by_time)
        self.buffers.counts[rewrites] = 0
        rows = np.repeat(rewrites, taken.counts).astype(np.uint32)
        entrants = BufferEntrants(rows, taken.nano, taken.seq, taken.exp)
        self._change(rewrites, taken.theta, taken.theta_seq, [entrants], np.iinfo(np.int64).min)
        self.soonest[rewrites] = source.soonest[changed]
        self.looked[rewrites] = source.looked[changed]
        self.note(NOTHING, rewrites)
