"""The live segments of the writer: tombstones, results, and compaction in the background.

All of it can be rebuilt from the last manifest. Small merges run in the batch, large ones in a
thread, whose result is swapped in at a later commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from placewire.model.arrays import I64, U64, Array
from placewire.model.kinds import Partition, all_kinds
from placewire.model.subscriptions import take_rows
from placewire.model.times import FAR_PAST_US
from placewire.segments.compaction import (
    MergedSegment,
    MergeSource,
    Remake,
    Rewrites,
    choose_merge,
    merge_segments,
    track_changes,
    undivided,
)
from placewire.segments.live_segment import LiveSegment, ResultsContext, open_live
from placewire.segments.segment import (
    Segment,
    make_segment,
    open_segment,
    whole_rows,
    write_segment,
)
from placewire.storage.arrays import open_arrays, write_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import DeltaEntry, SegmentEntry

MOST_DELTAS = 24
INLINE_ROWS = 40_000  # merges of at most this many rows run in the batch, not in the thread


class _Pending(NamedTuple):
    """A running merge: its sources, and the tombstones it has read."""

    names: list[str]
    known_dead: list[U64]
    name: str
    result: Future[MergedSegment]


class LiveSegments:
    """The segments of the next manifest."""

    def __init__(
        self,
        state: StateDir,
        entries: list[SegmentEntry],
        buffer: str = "",
        by_time: bool = False,
        horizon: int = FAR_PAST_US,
        rewrites: dict[str, str] | None = None,
    ) -> None:
        self.state = state
        self.buffer = buffer
        self.by_time = by_time
        self.horizon = horizon  # of the sliding window
        self.partition: Partition = undivided
        self.segments: list[LiveSegment] = []
        self.pending: _Pending | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="placewire-merge")
        for entry in entries:
            live = self._open(entry.name, entry.deltas)
            if entry.dead is not None:
                live.dead = open_arrays(state.file(entry.dead)).arrays["bits"]
                live.ended = entry.ended
                live.dead_file = entry.dead
                live.frozen = True
                live.end_results()
            self.segments.append(live)
        self.rewrites = Rewrites(state, rewrites or {})
        for live in self.segments:
            if live.name in self.rewrites.named:
                track_changes(live)

    @property
    def results_context(self) -> ResultsContext:
        return ResultsContext(self.buffer, self.by_time, self.horizon, self.state.file)

    def _open(self, name: str, deltas: Sequence[DeltaEntry] = ()) -> LiveSegment:
        """Open a segment with the results of its rows."""
        segment = open_segment(self.state.file(name))
        return open_live(name, segment, deltas, self.results_context)

    def of_kind(self, kind: int) -> list[LiveSegment]:
        return [live for live in self.segments if live.segment.kind == kind]

    def pairs(self) -> list[tuple[Segment, U64]]:
        return [(live.segment, live.dead) for live in self.segments]

    def add(self, batch: int, segment: Segment) -> LiveSegment:
        """Write a new segment, which is live from the next commit on."""
        live = self._write(batch, segment)
        self.segments.append(live)
        return live

    def _write(self, batch: int, segment: Segment) -> LiveSegment:
        name = self.state.new_name(batch, "segment")
        write_segment(self.state.file(name), segment)
        if segment.held is not None:  # read back: results change in memory from now on
            return self._open(name)
        return open_live(name, segment, (), self.results_context)

    def compact(self, batch: int, now_us: int) -> None:
        """Swap in a finished merge, and run or start the next one."""
        if self.pending is not None and self.pending.result.done():
            pending, self.pending = self.pending, None
            self._swap_in(pending)
        while True:
            busy = set(self.pending.names) if self.pending is not None else set()
            busy |= set(self.rewrites.named)
            chosen = self._choose(busy)
            small = sum(live.segment.rows.total for live in chosen) <= INLINE_ROWS
            if not chosen or (self.pending is not None and not small):
                return
            started = self._start(batch, chosen, now_us, self._thread if not small else None)
            if not small:
                self.pending = started
                return
            self._swap_in(started)

    def _choose(self, busy: set[str]) -> list[LiveSegment]:
        """Choose segments of one kind to merge, except busy ones."""
        for kind in all_kinds():
            free = [live for live in self.of_kind(kind.number) if live.name not in busy]
            chosen = choose_merge(
                [live.entry() for live in free], [live.results.stale for live in free]
            )
            if chosen:
                return [free[i] for i in chosen]
        return []

    def wait(self) -> None:
        """Wait for a running merge and swap it in."""
        if self.pending is not None:
            pending, self.pending = self.pending, None
            self._swap_in(pending)

    def hand_over(self, batch: int, sources: Sequence[LiveSegment], remake: Remake) -> None:
        """Rewrite segments; the rewrites replace them with the next commit.

        None of them may be in a running merge.
        """
        self.rewrites.write(batch, sources, remake)

    def swap_rewrites(self, kinds: Iterable[int] | None = None) -> set[int]:
        """Replace segments by their rewrites; returns the kinds that had any."""
        taken = set()
        for at, live in enumerate(self.segments):
            if live.name in self.rewrites.named and (kinds is None or live.segment.kind in kinds):
                self.segments[at] = self.rewrites.take(live, self._open)
                taken.add(live.segment.kind)
        return taken

    def _start(
        self, batch: int, sources: list[LiveSegment], now_us: int, thread: ThreadPoolExecutor | None
    ) -> _Pending:
        """Start a merge in a thread, or run it now."""
        # Changes from now on are applied again when the merge is swapped in.
        pairs = [
            MergeSource(live.segment, live.dead, live.results.freeze(copy=thread is not None))
            for live in sources
        ]
        name = self.state.new_name(batch, "segment")
        path = self.state.file(name)
        for live in sources:
            live.frozen = True

        def merge() -> MergedSegment:
            merged = merge_segments(pairs, now_us, self.partition)
            write_segment(path, merged.segment)
            return merged

        result: Future[MergedSegment] = Future()
        if thread is None:
            result.set_result(merge())
        else:
            result = thread.submit(merge)
        return _Pending(
            [live.name for live in sources], [source.dead for source in pairs], name, result
        )

    def _swap_in(self, pending: _Pending) -> None:
        """Replace the sources by the merged segment, with the tombstones added meanwhile."""
        merged = pending.result.result()
        by_name = {live.name: live for live in self.segments}
        rewritten = self._open(pending.name)
        for name, known, row_map in zip(
            pending.names, pending.known_dead, merged.row_maps, strict=True
        ):
            rewritten.end(ended_since(by_name[name].dead, known, row_map))
            rewritten.results.inherit(by_name[name].results, row_map)
        kept = [live for live in self.segments if live.name not in pending.names]
        self.segments = [*kept, rewritten] if rewritten.segment.rows.total else kept

    def reindex_rows(self, batch: int) -> None:
        """Move rows whose index would miss objects into new segments."""
        for live in list(self.segments):
            rows = live.results.unindexed()
            rows = rows[~live.ended_mask()[rows]]
            if rows.size == 0:
                continue
            kind = live.segment.kind
            taken = take_rows(whole_rows(live.segment), rows)
            held = live.results.take(rows)
            live.end(rows)
            parts = self.partition(kind, taken, held)
            new = self.add(batch, make_segment(kind, taken, held, parts))
            new.results.carry(live.results, rows)

    def save(self, batch: int, first_seq: int = 0) -> list[SegmentEntry]:
        """Write changed tombstones and results; returns the entries of the next manifest."""
        self._save_results(batch, first_seq)
        for live in self.segments:
            if live.changed:
                live.dead_file = self.state.new_name(batch, "ended")
                write_arrays(self.state.file(live.dead_file), {"bits": live.dead})
                live.changed = False
        return [live.entry() for live in self.segments]

    def _save_results(self, batch: int, first_seq: int) -> None:
        """Write the deltas of the batch to one file; fold a segment's deltas when they are many."""
        name = self.state.new_name(batch, "results")
        arrays: dict[str, Array] = {}
        for number, live in enumerate(self.segments):
            fresh = live.results.take_fresh(first_seq)
            if fresh is not None:
                label = f"{number}"
                arrays |= {f"{label}.{key}": array for key, array in fresh.arrays.items()}
                live.results.deltas.append(DeltaEntry(name, label, fresh.entrants, first_seq))
        if arrays:
            write_arrays(self.state.file(name), arrays)
        for live in self.segments:
            deltas = live.results.deltas
            if len(deltas) > MOST_DELTAS:
                since = min(delta.first_seq for delta in deltas)
                folded = live.results.fold(self.state.file)
                name = self.state.new_name(batch, "results")
                arrays = {f"0.{key}": array for key, array in folded.arrays.items()}
                write_arrays(self.state.file(name), arrays)
                live.results.deltas = [DeltaEntry(name, "0", folded.entrants, since)]

    def close(self) -> None:
        """Wait for a running merge; garbage collection deletes its file."""
        self._thread.shutdown(wait=True, cancel_futures=True)


def ended_since(dead: U64, known: U64, row_map: I64) -> I64:
    """Return the new numbers of rows that ended after a merge read the tombstones `known`."""
    if dead.size == 0:
        return np.empty(0, np.int64)
    fresh = dead & ~known if known.size else dead
    bits = np.unpackbits(fresh.view(np.uint8), bitorder="little")
    rows = row_map[np.flatnonzero(bits)]
    return rows[rows >= 0]
