"""Settle a batch: apply changes, write final results to the outbox, make new rows visible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from placewire.ingest.clock import Advances, BlockFacts
from placewire.kernels.blocks import slices_to_buffer
from placewire.kernels.jit import read_only
from placewire.kernels.json.results import matches_to_order
from placewire.kinds.candidates import PieceSummary
from placewire.kinds.object_ids import (
    NamedObjects,
    ResultObjectFiles,
    concat_named_objects,
    take_texts,
)
from placewire.kinds.shard import (
    Changed,
    KindResults,
    Reports,
    SettleBatch,
    Shard,
    Spread,
    work_here,
)
from placewire.model.arrays import I64, Array
from placewire.model.kinds import all_kinds, kind_numbered
from placewire.model.subscriptions import concat_offsets, take_rows, take_slices
from placewire.objects.store import LiveStore
from placewire.objects.window import SlidingWindow
from placewire.plans.messages import BlockSummary
from placewire.segments.changes import NEVER_SEQ, gather_changes, resolve_changes
from placewire.segments.live import LiveSegments
from placewire.segments.live_segment import LiveSegment
from placewire.storage.arrays import write_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import LinesEntry, PieceEntry, ResultObjectsEntry, UpdatesEntry

Release = Callable[[LiveSegment, I64], None]


class Settled(NamedTuple):
    """The outcome of a settled batch."""

    pieces: list[PieceEntry]
    updates: UpdatesEntry | None
    reports: LinesEntry | None
    changes: int
    idle_unsubscribes: int

    @property
    def results(self) -> int:
        updates = self.updates.updates if self.updates is not None else 0
        reports = self.reports.lines if self.reports is not None else 0
        return updates + reports + sum(p.matches for p in self.pieces)


class Settler:
    """Settles batches in order on the live segments."""

    def __init__(
        self,
        state: StateDir,
        live: LiveSegments,
        result_objects: list[ResultObjectsEntry],
        window: SlidingWindow,
        store: LiveStore,
        release: Release,
        scans: frozenset[int] = frozenset(),
    ) -> None:
        self.state = state
        self.live = live
        self.result_objects = ResultObjectFiles(state, result_objects)
        self.window = window
        self.store = store
        self.release = release  # removes ended rows from the plans
        self.scans = scans
        self.spread: Spread = work_here
        self.memory = {kind.number: kind.open(state) for kind in all_kinds()}

    def cap_batch(self, rows: int, now_us: int | None, first: bool) -> int:
        """Return how many of `rows` events the next batch takes; a `first` one has any kind."""
        size = self.window.size(self.store.entries, now_us)
        for kind in all_kinds():
            some = self.live.of_kind(kind.number)
            if some or first:
                rows = self.memory[kind.number].cap_batch(rows, some, size)
        return rows

    def note_matched(self, objects: int, pieces: list[PieceSummary]) -> None:
        """Report the matching of a batch to each kind."""
        for kind in all_kinds():
            some = self.live.of_kind(kind.number)
            self.memory[kind.number].note_matched(some, objects, pieces)

    def retention_us(self) -> int:
        """Return how long live subscriptions need objects to be retained."""
        return max(kind.retention_us(self.live.of_kind(kind.number)) for kind in all_kinds())

    def settle(
        self,
        number: int,
        blocks: list[BlockSummary],
        facts: list[BlockFacts],
        summaries: list[PieceSummary],
        now_us: int | None,
        advances: Advances,
    ) -> Settled:
        """Apply the batch's changes and finalise its matches, updates and reports."""
        changes, rows = gather_changes(facts)
        resolved = resolve_changes(changes, rows, self.live.pairs())
        batch = SettleBatch(
            number,
            self.state,
            facts,
            [block.first_seq + block.events for block in blocks],
            now_us,
            advances,
            facts[0].first_seq if facts else 0,
            list(self.store.entries),
            self.window,
            self.live,
            self.result_objects,
            self.scans,
            self.live.partition,
            self.spread,
        )
        present = {live.segment.kind for live in self.live.segments} | set(rows.kind.tolist())
        for kind in all_kinds():
            if kind.number in present:
                batch.begun[kind.number] = kind.begin(self.memory[kind.number], batch)
        if not any(kind_numbered(kind).uses_window for kind in present):
            self.window.skip()
        updates: dict[int, list[tuple[str, Any]]] = {kind: [] for kind in present}
        for live, ends in zip(list(self.live.segments), resolved.ended, strict=True):
            found = [summary for summary in summaries if summary.piece.segment == live.name]
            kind = kind_numbered(live.segment.kind)
            updates[kind.number].append((live.name, kind.settle(Shard(live, found, ends), batch)))
            live.end(ends[0])
            self.release(live, ends[0])
        for kind in all_kinds():
            picked = np.flatnonzero(rows.kind == kind.number)
            if picked.size == 0:
                continue
            own = rows if picked.size == rows.total else take_rows(rows, picked)
            row_end = resolved.row_end[picked]
            admitted = kind.admit_new(own, row_end, batch)
            new = self.live.add(number, admitted.segment)
            if admitted.results is not None:
                new.results.carry(admitted.results, np.arange(own.total))
            updates[kind.number].append((new.name, admitted.updates))
            gone = np.flatnonzero(row_end != NEVER_SEQ)
            new.end(gone)
            self.release(new, gone)
        results = [
            kind.finish(updates[kind.number], batch)
            for kind in all_kinds()
            if kind.number in present
        ]
        settled = Settled(
            write_matches(self.state, number, results),
            write_updates(self.state, number, [c for one in results for c in one.changed]),
            write_reports(self.state, number, [r for one in results for r in one.reports]),
            int(changes.seq.size),
            resolved.idle_unsubscribes,
        )
        self.result_objects.compact(number, [live.results for live in self.live.segments])
        return settled


def write_matches(state: StateDir, batch: int, results: list[KindResults]) -> list[PieceEntry]:
    """Return the final matches of a batch; write those that are in no file yet."""
    pieces = [piece for one in results for piece in one.pieces]
    name = state.new_name(batch, "settled")
    arrays: dict[str, Array] = {}
    for one in results:
        for segment, piece in one.matched:
            if piece.objects.size:
                label = f"settled{len(pieces)}"
                arrays[f"{label}.object"], arrays[f"{label}.row"] = piece.objects, piece.rows
                size = int(piece.objects.size)
                pieces.append(PieceEntry(piece.block, name, label, segment, size))
    if arrays:
        write_arrays(state.file(name), arrays)
    return pieces


def write_updates(state: StateDir, batch: int, changed: Sequence[Changed]) -> UpdatesEntry | None:
    """Write the batch's updates by (seq, subscription id)."""
    if not changed:
        return None
    seq = np.concatenate([part.seq for part in changed])
    id_offsets = concat_offsets([part.id_offsets for part in changed])
    id_bytes = np.concatenate([part.id_bytes for part in changed])
    order = matches_to_order(read_only(seq), read_only(id_offsets), read_only(id_bytes))
    offsets, texts = take_texts(id_offsets, id_bytes, order)
    add_offsets, adds = take_slices(concat_offsets([p.add_offsets for p in changed]), order)
    drop_offsets, drops = take_slices(concat_offsets([p.drop_offsets for p in changed]), order)
    added = concat_named_objects([part.added for part in changed]).take(adds)
    dropped = concat_named_objects([part.dropped for part in changed]).take(drops)
    scored = np.concatenate([np.full(part.seq.size, part.scored) for part in changed])
    name = state.new_name(batch, "updates")
    write_arrays(
        state.file(name),
        {
            "seq": seq[order],
            "scored": scored[order],
            "subscription_offsets": offsets,
            "subscription_bytes": texts,
            "adds": add_offsets,
            "measure": np.concatenate([part.measure for part in changed])[adds],
            **{f"add.{field}": getattr(added, field) for field in NamedObjects._fields[1:]},
            "drops": drop_offsets,
            **{f"drop.{field}": getattr(dropped, field) for field in NamedObjects._fields[1:]},
        },
    )
    return UpdatesEntry(name, int(seq.size))


def write_reports(state: StateDir, batch: int, made: Sequence[Reports]) -> LinesEntry | None:
    """Write the reports of a batch, by seq, subscription and due time."""
    made = [one for one in made if one.seq.size]
    if not made:
        return None
    seq = np.concatenate([one.seq for one in made])
    ids = [name for one in made for name in one.subscription]
    rank = {name: number for number, name in enumerate(sorted(set(ids)))}
    ranks = np.fromiter((rank[name] for name in ids), np.int64, len(ids))
    order = np.lexsort((np.concatenate([one.at_us for one in made]), ranks, seq))
    edges = concat_offsets([one.starts for one in made])
    starts, text = slices_to_buffer(
        read_only(np.concatenate([one.text for one in made])),
        read_only(edges[:-1][order]),
        read_only(edges[1:][order]),
    )
    name = state.new_name(batch, "reports")
    arrays = {"seq": seq[order], "plain.starts": starts, "plain.text": text}
    write_arrays(state.file(name), arrays)
    return LinesEntry(name, int(seq.size))
