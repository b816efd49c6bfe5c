"""Settling: a batch's changes applied, its matches and updates final, its own rows live."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.batch.updates import Changed, name_entered, name_slid, write_updates
from placewire.ingest.clock import BlockFacts
from placewire.kinds.boolean.settle import match_new_rows, settle_matches
from placewire.kinds.nearest.settle import Ends, Entered, enter_candidates, enter_new_rows
from placewire.kinds.object_ids import Rosters
from placewire.kinds.relevant.refill import Hunter
from placewire.kinds.relevant.results import LiveBuffers, empty_buffers, take_buffers
from placewire.kinds.relevant.settle import Slider, gather_found
from placewire.kinds.relevant.window import SlidingWindow
from placewire.kinds.trending.due import Advances, DueRows, find_due, places_of
from placewire.model.subscriptions import (
    KINDS,
    NEAREST,
    RELEVANT,
    TRENDING,
    SubscriptionRows,
    take_rows,
)
from placewire.objects.store import LiveStore
from placewire.plans.messages import BlockSummary, PieceSummary
from placewire.plans.nearest.planner import NearPlanner
from placewire.segments.changes import NEVER_SEQ, gather_changes, resolve_changes
from placewire.segments.live import LiveSegments
from placewire.segments.live_segment import LiveSegment
from placewire.segments.segment import make_plain_segment, make_segment
from placewire.storage.arrays import open_arrays, write_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import PieceEntry, RosterEntry, UpdatesEntry


class Settled(NamedTuple):
    """What a batch's changes came to."""

    pieces: list[PieceEntry]
    updates: UpdatesEntry | None
    due: list[DueRows]  # `trending` rows that report in the batch
    changes: int
    idle_unsubscribes: int

    @property
    def results(self) -> int:
        updates = self.updates.updates if self.updates is not None else 0
        return updates + sum(p.matches for p in self.pieces)


class Outcome:
    """The matches of a batch as they become final; what had to be written anew is one file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.pieces: list[PieceEntry] = []
        self.arrays: dict[str, NDArray[Any]] = {}

    def put(
        self, block: int, segment: str, objects: NDArray[np.uint32], rows: NDArray[np.uint32]
    ) -> None:
        """Add matches of a block with a segment, if there are any."""
        if objects.size:
            label = f"settled{len(self.pieces)}"
            self.arrays[f"{label}.object"], self.arrays[f"{label}.row"] = objects, rows
            self.pieces.append(PieceEntry(block, self.name, label, segment, int(objects.size)))


class Settler:
    """Settles one batch after another on the live segments of the one writer."""

    def __init__(
        self,
        state: StateDir,
        live: LiveSegments,
        near: NearPlanner,
        rosters: list[RosterEntry],
        scan: bool,
        window: SlidingWindow,
        store: LiveStore,
    ) -> None:
        self.state = state
        self.live = live
        self.near = near
        self.rosters = Rosters(state, rosters)
        self.scan = scan
        self.window = window
        self.store = store
        self.hunter = Hunter(state, window.by_time)

    def settle(
        self,
        batch: int,
        blocks: list[BlockSummary],
        facts: list[BlockFacts],
        summaries: list[PieceSummary],
        now_us: int | None,
        advances: Advances,
    ) -> Settled:
        """Apply the batch's changes, and make its matches and updates final."""
        changes, rows = gather_changes(facts)
        resolved = resolve_changes(changes, rows, self.live.pairs())
        outcome = Outcome(self.state.new_name(batch, "settled"))
        entered: list[Entered | None] = []
        due: list[DueRows] = []
        first_seq = facts[0].first_seq if facts else 0
        changed: list[Changed] = []
        slider = self._slider(blocks, facts, rows, advances, first_seq)
        for live, ends in zip(list(self.live.segments), resolved.ended, strict=True):
            found = [summary for summary in summaries if summary.piece.segment == live.name]
            if live.segment.kind == NEAREST:
                pieces = [summary.piece for summary in found if summary.piece.matches]
                entered.append(enter_candidates(self.state, facts, live, pieces, ends))
            elif live.segment.kind == RELEVANT and slider is not None:
                pieces = [summary.piece for summary in found if summary.piece.matches]
                changed += self._slide(slider, facts, live, pieces, ends)
            elif live.segment.kind == TRENDING:
                end_seq = np.full(live.segment.rows.total, NEVER_SEQ)
                end_seq[ends[0]] = ends[1]
                standing = ~live.ended_mask()
                due.append(
                    find_due(
                        live.segment.rows,
                        self._places(live),
                        standing,
                        end_seq,
                        advances,
                        first_seq,
                    )
                )
            else:
                for summary in found:
                    self._settle_piece(outcome, facts, live, summary, ends, now_us)
            live.end(ends[0])
            self.near.release(live, ends[0])
        for kind in KINDS:
            picked = np.flatnonzero(rows.kind == kind)
            if picked.size == 0:
                continue
            own = rows if picked.size == rows.total else take_rows(rows, picked)
            row_end = resolved.row_end[picked]
            if kind == NEAREST:
                entered.append(self._add_near_rows(batch, facts, own, row_end))
            elif kind == RELEVANT and slider is not None:
                changed += self._add_relevant_rows(batch, slider, own, row_end)
            elif kind == TRENDING:
                new = self.live.add(batch, make_plain_segment(own))
                new.end(np.flatnonzero(row_end != NEVER_SEQ))
                everybody = np.ones(own.total, np.bool_)
                due.append(
                    find_due(own, self._places(new), everybody, row_end, advances, first_seq)
                )
            else:
                self._add_rows(batch, outcome, blocks, facts, own, row_end)
        if outcome.arrays:
            write_arrays(self.state.file(outcome.name), outcome.arrays)
        changed += name_entered(batch, facts, [e for e in entered if e is not None], self.rosters)
        updates = write_updates(self.state, batch, changed)
        self.rosters.tidy(
            batch, [x.results.neighbours for x in self.live.segments if x.results is not None]
        )
        return Settled(
            outcome.pieces, updates, due, int(changes.seq.size), resolved.idle_unsubscribes
        )

    def _slider(
        self,
        blocks: list[BlockSummary],
        facts: list[BlockFacts],
        rows: SubscriptionRows,
        advances: Advances,
        first_seq: int,
    ) -> Slider | None:
        """The sliding window in this batch, if any subscription looks at it."""
        if not self.live.of_kind(RELEVANT) and not (rows.kind == RELEVANT).any():
            self.window.seqs = None
            return None
        entries = list(self.store.entries)
        moves = self.window.moves(entries, first_seq, facts, advances)
        self.hunter.look_at(entries)
        self.live.horizon = int(moves.horizon[-1])
        last_seq = max((b.first_seq + b.events - 1 for b in blocks), default=first_seq)
        return Slider(
            moves, advances, self.hunter, self.window.by_time, last_seq, self.window.growth
        )

    def _slide(
        self,
        slider: Slider,
        facts: list[BlockFacts],
        live: LiveSegment,
        pieces: list[PieceEntry],
        ends: Ends,
    ) -> list[Changed]:
        """Let the batch pass the committed `relevant` rows of a segment."""
        rows, found = gather_found(self.state, facts, live, pieces, ends, slider.by_time)
        end_seq = np.full(live.segment.rows.total, NEVER_SEQ)
        end_seq[ends[0]] = ends[1]
        slid = slider.slide_committed(live, found, rows, end_seq)
        return name_slid(live.segment.rows, slid, self.hunter)

    def _add_relevant_rows(
        self,
        batch: int,
        slider: Slider,
        rows: SubscriptionRows,
        row_end: NDArray[np.int64],
    ) -> list[Changed]:
        """Give the batch's own `relevant` rows their first results, and make them live."""
        rule = self.live.rule
        empty = empty_buffers(np.zeros(rows.total, np.int64), rule.by_time)
        buffers = LiveBuffers(empty, rows.k, rule, self.live.horizon, [], self.state.file)
        slid = slider.slide_new(rows, buffers, row_end)
        held = take_buffers(buffers.buffers, np.arange(rows.total), rule.by_time)
        new = self.live.add_relevant(batch, rows, held)
        assert new.buffers is not None
        new.buffers.looked[:] = buffers.looked
        new.end(np.flatnonzero(row_end != NEVER_SEQ))
        return name_slid(rows, slid, self.hunter)

    def _places(self, live: LiveSegment) -> NDArray[np.int64]:
        """The places of a segment's `trending` rows, found once."""
        if live.places is None:
            live.places = places_of(live.segment.rows)
        return live.places

    def _settle_piece(
        self,
        outcome: Outcome,
        facts: list[BlockFacts],
        live: LiveSegment,
        summary: PieceSummary,
        ends: Ends,
        now_us: int | None,
    ) -> None:
        """Let the matches of one block with one segment stand, or those of them that do."""
        piece = summary.piece
        fact = facts[piece.block]
        if (
            not ends[0].size
            and not fact.clock.refused_event.size
            and (now_us is None or summary.next_expiry_us > now_us)
        ):
            outcome.pieces.append(piece)
            return
        stored = open_arrays(self.state.file(piece.file)).arrays
        objects, of = stored[f"{piece.prefix}.object"], stored[f"{piece.prefix}.row"]
        stand = settle_matches(fact, objects, of, live.segment.rows.expires_us, *ends)
        if stand.all():
            outcome.pieces.append(piece)
        else:
            outcome.put(piece.block, piece.segment, objects[stand], of[stand])

    def _add_near_rows(
        self,
        batch: int,
        facts: list[BlockFacts],
        rows: SubscriptionRows,
        row_end: NDArray[np.int64],
    ) -> Entered | None:
        """Let the batch's objects enter its own `nearest` rows, and make these live."""
        segment, entered = enter_new_rows(
            facts, rows, row_end, self.near.deal(rows), self.near.name == "scan"
        )
        new = self.live.add(batch, segment)
        gone = np.flatnonzero(row_end != NEVER_SEQ)
        new.end(gone)
        self.near.release(new, gone)
        return entered

    def _add_rows(
        self,
        batch: int,
        outcome: Outcome,
        blocks: list[BlockSummary],
        facts: list[BlockFacts],
        rows: SubscriptionRows,
        row_end: NDArray[np.int64],
    ) -> None:
        """Index the batch's own rows, match them with the batch's objects, make them live."""
        segment = make_segment(rows)
        new = self.live.add(batch, segment)
        first = int(rows.begin_seq[0])
        for number, (block, fact) in enumerate(zip(blocks, facts, strict=True)):
            if block.objects == 0 or block.first_seq + block.events <= first:
                continue
            objects, of = match_new_rows(fact, segment, row_end, self.scan)
            outcome.put(number, new.name, objects, of)
        new.end(np.flatnonzero(row_end != NEVER_SEQ))
