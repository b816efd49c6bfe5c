"""The live segments of the one writer: which rows have ended, what is being merged behind.

Everything here can be rebuilt from the last manifest; merging goes on in a thread of its own and
its result is taken over at a later commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.blocks import NEVER
from placewire.kinds.nearest.live_results import MOST_DELTAS, LiveResults
from placewire.kinds.nearest.results import Entrants, delta_arrays
from placewire.kinds.relevant.kernels.buffers import Buffers
from placewire.kinds.relevant.results import BufferRule, LiveBuffers, take_buffers
from placewire.kinds.relevant.results import delta_arrays as buffer_delta_arrays
from placewire.model.subscriptions import KINDS, NEAREST, RELEVANT, SubscriptionRows, take_rows
from placewire.segments.compaction import (
    DealLiterals,
    Heirs,
    Merged,
    Remake,
    Source,
    choose_merge,
    merge_segments,
    note_changes,
    undealt,
)
from placewire.segments.live_segment import LiveSegment
from placewire.segments.segment import (
    Segment,
    make_relevant_segment,
    open_segment,
    whole_rows,
    write_segment,
)
from placewire.storage.arrays import open_arrays, write_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import DeltaEntry, SegmentEntry

USUAL_RULE = BufferRule()
FAR_PAST = np.iinfo(np.int64).min
INLINE_ROWS = 40_000  # a merge of at most this many rows is done in the batch that asks for it


class _Pending(NamedTuple):
    """A merge under way: what it reads, and the ended rows it knows of."""

    names: list[str]
    known_dead: list[NDArray[np.uint64]]
    name: str
    result: Future[Merged]


class LiveSegments:
    """The segments that the next manifest will name."""

    def __init__(
        self,
        state: StateDir,
        entries: list[SegmentEntry],
        rule: BufferRule = USUAL_RULE,
        horizon: int = FAR_PAST,
        heirs: dict[str, str] | None = None,
    ) -> None:
        self.state = state
        self.rule = rule
        self.horizon = horizon  # of the sliding window
        self.deal_literals: DealLiterals = undealt
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
                if live.buffers is not None:
                    live.buffers.soonest[live.ended_mask()] = NEVER
            self.segments.append(live)
        self.heirs = Heirs(state, heirs or {})
        for live in self.segments:
            if live.name in self.heirs.named:
                note_changes(live)

    def _open(self, name: str, deltas: Sequence[DeltaEntry] = ()) -> LiveSegment:
        """A segment of the directory; the results of `nearest` rows are read into memory."""
        segment = open_segment(self.state.file(name))
        live = LiveSegment(name, segment)
        if segment.kind == NEAREST:
            live.results = LiveResults(segment, list(deltas), self.state.file)
        if segment.buffers is not None:
            live.buffers = LiveBuffers(
                segment.buffers,
                segment.rows.k,
                self.rule,
                self.horizon,
                deltas,
                self.state.file,
            )
        return live

    def of_kind(self, kind: int) -> list[LiveSegment]:
        return [live for live in self.segments if live.segment.kind == kind]

    def pairs(self) -> list[tuple[Segment, NDArray[np.uint64]]]:
        return [(live.segment, live.dead) for live in self.segments]

    def add(self, batch: int, segment: Segment) -> LiveSegment:
        """Write a new segment; it is live from the next commit on."""
        live = self._write(batch, segment)
        self.segments.append(live)
        return live

    def add_relevant(self, batch: int, rows: SubscriptionRows, held: Buffers) -> LiveSegment:
        """Index `relevant` rows with what they hold, as they are dealt out."""
        dealt = self.deal_literals(rows, held.theta)
        return self.add(batch, make_relevant_segment(rows, held, dealt))

    def _write(self, batch: int, segment: Segment) -> LiveSegment:
        name = self.state.new_name(batch, "segment")
        write_segment(self.state.file(name), segment)
        changes = segment.kind in (NEAREST, RELEVANT)
        return self._open(name) if changes else LiveSegment(name, segment)

    def compact(self, batch: int, now_us: int) -> None:
        """Take over a finished merge, and start or do the next one."""
        if self.pending is not None and self.pending.result.done():
            pending, self.pending = self.pending, None
            self._take_over(pending)
        while True:
            busy = set(self.pending.names) if self.pending is not None else set()
            busy |= set(self.heirs.named)
            chosen = self._choose(busy)
            small = sum(live.segment.rows.total for live in chosen) <= INLINE_ROWS
            if not chosen or (self.pending is not None and not small):
                return
            started = self._start(batch, chosen, now_us, self._thread if not small else None)
            if not small:
                self.pending = started
                return
            self._take_over(started)

    def _choose(self, busy: set[str]) -> list[LiveSegment]:
        """Segments of one kind to merge, none of them being merged already."""
        for kind in KINDS:
            free = [live for live in self.of_kind(kind) if live.name not in busy]
            chosen = choose_merge([live.entry() for live in free], [live.stale for live in free])
            if chosen:
                return [free[i] for i in chosen]
        return []

    def wait(self) -> None:
        """Wait for a merge under way, and take it over."""
        if self.pending is not None:
            pending, self.pending = self.pending, None
            self._take_over(pending)

    def hand_over(self, batch: int, sources: Sequence[LiveSegment], remake: Remake) -> None:
        """Write segments again; the new ones take their places with the next commit.

        No merge of theirs may be under way.
        """
        self.heirs.write(batch, sources, remake)

    def take_heirs(self, kinds: Iterable[int] = KINDS) -> set[int]:
        """Put heirs in the places of their segments; gives the kinds that had any."""
        taken = set()
        for at, live in enumerate(self.segments):
            if live.name in self.heirs.named and live.segment.kind in kinds:
                self.segments[at] = self.heirs.take(live, self._open)
                taken.add(live.segment.kind)
        return taken

    def finish_merges(self, batch: int, now_us: int) -> None:
        """Wait until nothing is left to merge."""
        while True:
            self.compact(batch, now_us)
            if self.pending is None:
                return
            self.pending.result.result()

    def _start(
        self,
        batch: int,
        sources: list[LiveSegment],
        now_us: int,
        thread: ThreadPoolExecutor | None,
    ) -> _Pending:
        """Merge in a thread, or here and now."""
        pairs = []
        for live in sources:
            neighbours = None
            if live.results is not None:
                # What enters from here on is entered again when the merge is taken over.
                neighbours = live.results.neighbours
                if thread is not None:
                    neighbours = neighbours.copy()
                live.results.since = []
            buffers = None
            if live.buffers is not None:
                buffers = live.buffers.buffers
                if thread is not None:
                    everybody = np.arange(live.segment.rows.total)
                    buffers = take_buffers(buffers, everybody, self.rule.by_time)
                live.buffers.since = []
            pairs.append(Source(live.segment, live.dead, neighbours, buffers))
        name = self.state.new_name(batch, "segment")
        path = self.state.file(name)
        for live in sources:
            live.frozen = True

        def merge() -> Merged:
            merged = merge_segments(pairs, now_us, self.deal_literals)
            write_segment(path, merged.segment)
            return merged

        result: Future[Merged] = Future()
        if thread is None:
            result.set_result(merge())
        else:
            result = thread.submit(merge)
        return _Pending(
            [live.name for live in sources], [source.dead for source in pairs], name, result
        )

    def _take_over(self, pending: _Pending) -> None:
        """Put the merged segment in the place of its sources, with the rows ended meanwhile."""
        merged = pending.result.result()
        by_name = {live.name: live for live in self.segments}
        heir = self._open(pending.name)
        for name, known, row_map in zip(
            pending.names, pending.known_dead, merged.row_maps, strict=True
        ):
            heir.end(ended_since(by_name[name].dead, known, row_map))
            source = by_name[name].results
            if source is not None and heir.results is not None:
                for entrants in source.since or ():
                    heir.results.enter(renumber(entrants, row_map))
            held = by_name[name].buffers
            if held is not None and heir.buffers is not None:
                heir.buffers.inherit(held, row_map)
        kept = [live for live in self.segments if live.name not in pending.names]
        self.segments = [*kept, heir] if heir.segment.rows.total else kept

    def lift_sunk(self, batch: int) -> None:
        """Give rows whose thresholds sank below what their index knows a segment of their own."""
        for live in self.of_kind(RELEVANT):
            assert live.buffers is not None
            sunk = live.buffers.sunk
            sunk = sunk[~live.ended_mask()[sunk]]
            if sunk.size == 0:
                continue
            rows = take_rows(whole_rows(live.segment), sunk)
            held = take_buffers(live.buffers.buffers, sunk, self.rule.by_time)
            looked = live.buffers.looked[sunk]
            live.end(sunk)
            new = self.add_relevant(batch, rows, held)
            assert new.buffers is not None
            new.buffers.looked[:] = looked

    def save(self, batch: int, first_seq: int = 0) -> list[SegmentEntry]:
        """Write what changed, and give the entries of the next manifest."""
        self._save_results(batch)
        self._save_buffers(batch, first_seq)
        for live in self.segments:
            if live.changed:
                live.dead_file = self.state.new_name(batch, "ended")
                write_arrays(self.state.file(live.dead_file), {"bits": live.dead})
                live.changed = False
        return [live.entry() for live in self.segments]

    def _save_results(self, batch: int) -> None:
        """Write the deltas of the batch, all in one file; many old ones become one."""
        name = self.state.new_name(batch, "results")
        arrays: dict[str, NDArray[Any]] = {}
        for number, live in enumerate(self.segments):
            results = live.results
            if results is None:
                continue
            fresh = results.take_fresh()
            if fresh is not None:
                label = f"{number}"
                arrays |= delta_arrays(label, *fresh)
                results.deltas.append(DeltaEntry(name, label, int(fresh[0].row.size)))
        if arrays:
            write_arrays(self.state.file(name), arrays)
        for live in self.segments:
            if live.results is not None and len(live.results.deltas) > MOST_DELTAS:
                entrants, radii = live.results.take_deltas(self.state.file)
                name = self.state.new_name(batch, "results")
                write_arrays(self.state.file(name), delta_arrays("0", entrants, radii))
                live.results.deltas = [DeltaEntry(name, "0", int(entrants.row.size))]

    def _save_buffers(self, batch: int, first_seq: int) -> None:
        """The same of buffers."""
        name = self.state.new_name(batch, "buffers")
        arrays: dict[str, NDArray[Any]] = {}
        for number, live in enumerate(self.segments):
            if live.buffers is None:
                continue
            fresh = live.buffers.take_fresh(first_seq)
            if fresh is not None:
                label = f"{number}"
                arrays |= buffer_delta_arrays(label, fresh)
                live.buffers.deltas.append(
                    DeltaEntry(name, label, int(fresh.entrant_row.size), first_seq)
                )
        if arrays:
            write_arrays(self.state.file(name), arrays)
        for live in self.segments:
            if live.buffers is not None and len(live.buffers.deltas) > MOST_DELTAS:
                since = min(delta.first_seq for delta in live.buffers.deltas)
                folded = live.buffers.fold(self.state.file)
                name = self.state.new_name(batch, "buffers")
                write_arrays(self.state.file(name), buffer_delta_arrays("0", folded))
                live.buffers.deltas = [DeltaEntry(name, "0", int(folded.entrant_row.size), since)]

    def close(self) -> None:
        """Let a merge under way end; its file is swept later."""
        self._thread.shutdown(wait=True, cancel_futures=True)


def renumber(entrants: Entrants, row_map: NDArray[np.int64]) -> Entrants:
    """Entrants of a merged segment under the rows' new numbers, without rows that are gone."""
    rows = row_map[entrants.row]
    kept = rows >= 0
    return Entrants(rows[kept].astype(np.uint32), entrants.seq[kept], entrants.distance[kept])


def ended_since(
    dead: NDArray[np.uint64], known: NDArray[np.uint64], row_map: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The new numbers of rows that ended after a merge had read `known`."""
    if dead.size == 0:
        return np.empty(0, np.int64)
    fresh = dead & ~known if known.size else dead
    bits = np.unpackbits(fresh.view(np.uint8), bitorder="little")
    rows = row_map[np.flatnonzero(bits)]
    return rows[rows >= 0]
