"""Settle `relevant` subscriptions: apply a batch to their results as the window slides.

Workers match objects by the thresholds of the last commit. Settling applies these candidates event
by event, together with the objects that leave the window. A buffer that falls below k, or that of a
new subscription, is refilled from the window at that event; after that, settling itself searches
the rest of the batch, since workers did not know the new threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placewire.ingest.clock import Advances, object_seqs
from placewire.kernels.blocks import NEVER, codes_to_order
from placewire.kernels.jit import read_only
from placewire.kinds.object_ids import take_texts
from placewire.kinds.relevant.kernels.buffers import DONE
from placewire.kinds.relevant.kernels.window import (
    PassedRows,
    RefilledRows,
    WindowMatches,
    WindowUpdates,
    best_into_buffers,
    copy_updates,
    make_update_room,
    window_past_rows,
)
from placewire.kinds.relevant.refill import NO_OBJECTS, WindowSearch
from placewire.kinds.relevant.results import RelevantResults
from placewire.kinds.shard import Changed, SettleBatch, Shard, read_candidates, run_in_portions
from placewire.model.arrays import F64, I64, U16, Array, Bools
from placewire.model.subscriptions import SubscriptionRows
from placewire.model.times import FAR_PAST_US
from placewire.objects.kernels.best_of_rows import BestObjects, SearchWindows
from placewire.objects.window import Moves
from placewire.segments.live_segment import LiveSegment

FIRST_STEP, MAX_STEP = 64, 1 << 30  # events to search after a refill
STEP_PAIRS = 1_000_000  # target for the pairs of rows and objects of a step
MIN_THREAD_ROWS = 20_000
OUTPUT_ROOM = 1 << 16  # updates, and objects added and dropped, of one kernel call


@dataclass
class WindowSlide:
    """Slides the window through one batch and updates the results of rows."""

    moves: Moves
    advances: Advances
    search: WindowSearch
    by_time: bool
    last_seq: int
    growth: float = 1.0  # objects that enter the window for each that leaves it

    def find_stops(self, expires_us: I64, end_seq: I64) -> I64:
        """Find the first event at which each row is no longer live, because it ended or expired."""
        at = np.searchsorted(self.advances.to_us, expires_us)
        seqs = np.append(self.advances.seq, NEVER)
        expired = np.where(expires_us <= self.advances.before_us, -1, seqs[at])
        return np.minimum(end_seq, expired)

    def settle_committed(
        self, live: LiveSegment, found: WindowMatches, rows: I64, end_seq: I64
    ) -> list[WindowUpdates]:
        """Apply the batch to committed rows of a segment; `found` are the candidates of `rows`."""
        buffers: RelevantResults = live.results
        leaving = np.flatnonzero(buffers.soonest <= self.moves.horizon[-1])
        picked = np.union1d(rows, leaving)
        if picked.size == 0:
            return []
        if picked.size > rows.size:
            lengths = np.zeros(picked.size, np.int64)
            lengths[np.searchsorted(picked, rows)] = np.diff(found.offsets)
            found = found._replace(offsets=np.append(0, np.cumsum(lengths)))
        stop_seq = self.find_stops(live.segment.rows.expires_us[picked], end_seq[picked])
        begins = np.full(picked.size, -1)
        updates, status = self._apply_events(buffers, picked, stop_seq, found, begins)
        short = np.flatnonzero(status != DONE)
        if short.size:
            updates += self._refill_and_apply(
                live.segment.rows, buffers, picked[short], status[short], stop_seq[short]
            )
        buffers.soonest[picked[stop_seq <= self.last_seq]] = NEVER
        return updates

    def settle_new(
        self, rows: SubscriptionRows, buffers: RelevantResults, end_seq: I64
    ) -> list[WindowUpdates]:
        """Fill the results of rows that begin in the batch, and apply the rest of the batch."""
        stop_seq = self.find_stops(rows.expires_us, end_seq)
        picked = np.flatnonzero(self.advances.at(rows.begin_seq) < rows.expires_us)
        if picked.size == 0:
            return []
        updates = self._refill_and_apply(
            rows, buffers, picked, rows.begin_seq[picked], stop_seq[picked]
        )
        buffers.soonest[stop_seq <= self.last_seq] = NEVER
        return updates

    def _apply_events(
        self,
        buffers: RelevantResults,
        picked: I64,
        stop_seq: I64,
        found: WindowMatches,
        begins: I64,
    ) -> tuple[list[WindowUpdates], I64]:
        """Apply events to rows; return the seq at which each needs a refill, or DONE."""
        status = np.full(picked.size, DONE)
        begins = begins.copy()

        def apply_some(first: int, last: int) -> list[WindowUpdates]:
            some = slice(first, last)
            offsets = found.offsets[first : last + 1]
            return self._apply_portion(
                buffers, picked[some], stop_seq[some], begins[some], offsets, found, status[some]
            )

        updates = run_in_portions(apply_some, picked.size, MIN_THREAD_ROWS)
        buffers.note(picked, picked[:0])
        return updates, status

    def _apply_portion(
        self,
        buffers: RelevantResults,
        picked: I64,
        stop_seq: I64,
        begins: I64,
        offsets: I64,
        found: WindowMatches,
        status: I64,
    ) -> list[WindowUpdates]:
        """Apply events to some rows; set `status` to the seq at which a row needs a refill."""
        passed = PassedRows(
            read_only(picked),
            read_only(buffers.ks[picked].astype(np.int64)),
            begins,
            read_only(stop_seq),
            status,
        )
        matches = WindowMatches(*map(read_only, found._replace(offsets=offsets)))
        moves = Moves(*map(read_only, self.moves))
        room = make_update_room(OUTPUT_ROOM, OUTPUT_ROOM, OUTPUT_ROOM)
        written = np.zeros(3, np.int64)
        updates, row = [], 0
        while row < picked.size:
            written[:] = 0
            row = window_past_rows(
                passed,
                matches,
                moves,
                buffers.rule.dominance,
                buffers.rule.trim,
                buffers.buffers,
                buffers.soonest,
                room,
                written,
                row,
            )
            if written[0]:
                updates.append(copy_updates(room, written))
        return updates

    def _cost(
        self, rows: SubscriptionRows, buffers: RelevantResults, picked: I64, wanted: SearchWindows
    ) -> F64:
        """Estimate how many objects a search for each row scores: as many as its last search."""
        cost = buffers.looked[picked].astype(np.float64)
        new = np.flatnonzero(np.isnan(cost))
        if new.size:
            few = SearchWindows(*(column[new] for column in wanted))
            cost[new] = self.search.scored_share * self.search.estimate_postings(
                rows, picked[new], few
            )
        return cost

    def _refill_and_apply(
        self,
        rows: SubscriptionRows,
        buffers: RelevantResults,
        picked: I64,
        at_seq: I64,
        stop_seq: I64,
    ) -> list[WindowUpdates]:
        """Refill buffers at an event and apply the events after it, in steps.

        The length of a step follows from the number of pairs in the last step: a new row matches
        every object that shares a term with it, until its threshold has risen.
        """
        updates: list[WindowUpdates] = []
        short = np.ones(picked.size, np.bool_)
        length = FIRST_STEP
        while True:
            if short.any():
                updates.append(self.refill(rows, buffers, picked[short], at_seq[short]))
            left = (at_seq < self.last_seq) & (at_seq + 1 < stop_seq)
            picked, at_seq, stop_seq = picked[left], at_seq[left], stop_seq[left]
            if picked.size == 0:
                return updates
            limit = np.minimum(at_seq + length, self.last_seq)
            theta = buffers.buffers.theta
            found = self.search.find_above(rows, picked, at_seq, limit + 1, theta)
            some, status = self._apply_events(
                buffers, picked, np.minimum(stop_seq, limit + 1), found, at_seq
            )
            updates += some
            short = status != DONE
            at_seq = np.where(short, status, limit)
            allowed = int(length * min(STEP_PAIRS / max(found.seq.size, 1), 4.0))
            length = max(FIRST_STEP, min(allowed, MAX_STEP))

    def refill(
        self, rows: SubscriptionRows, buffers: RelevantResults, picked: I64, at_seq: I64
    ) -> WindowUpdates:
        """Refill buffers from the window at an event."""
        horizon = self.moves.at(at_seq)
        far_past = np.full(picked.size, FAR_PAST_US)
        wanted = SearchWindows(
            horizon if self.by_time else far_past, far_past if self.by_time else horizon, at_seq + 1
        )
        looked = self._cost(rows, buffers, picked, wanted)
        sizes = buffers.rule.sizes(buffers.ks[picked], looked, self.growth)
        best = self.search.find_best(rows, picked, wanted, sizes)
        complete = best.counts < sizes
        if buffers.rule.name == "skyband":
            best, complete = keep_near_kth(best, buffers.ks[picked], buffers.rule.ratio, complete)
        ks = buffers.ks[picked].astype(np.int64)
        updates: WindowUpdates = best_into_buffers(
            RefilledRows(*map(read_only, (picked, ks, at_seq, complete))),
            BestObjects(*map(read_only, best)),
            buffers.rule.dominance,
            buffers.buffers,
            buffers.soonest,
        )
        buffers.looked[picked] = best.looked
        self.search.note_scored(rows, picked, wanted, best.looked)
        buffers.note(picked[:0], picked)
        return updates


def keep_near_kth(
    best: BestObjects, ks: U16, ratio: float, complete: Bools
) -> tuple[BestObjects, Bools]:
    """Drop the objects that score less than `ratio` of the k-th score."""
    kth = best.offsets[:-1] + ks.astype(np.int64) - 1
    full = best.counts >= ks
    floor = np.where(full, ratio * best.nano[np.where(full, kth, 0)], -1)
    slot = np.arange(best.nano.size)
    of = np.repeat(np.arange(best.counts.size), np.diff(best.offsets))
    stays = (slot - best.offsets[:-1][of] < best.counts[of]) & (best.nano >= floor[of])
    counts = np.bincount(of[stays], minlength=best.counts.size)
    return best._replace(counts=counts), complete & (counts == best.counts)


def gather_candidates(shard: Shard, batch: SettleBatch, by_time: bool) -> tuple[I64, WindowMatches]:
    """Return a shard's candidates: its rows, ascending, and the objects of each by seq."""
    parts: list[tuple[Array, ...]] = [(np.empty(0, np.uint32), *NO_OBJECTS)]
    for candidate in read_candidates(shard, batch):
        fact = batch.facts[candidate.block]
        seqs = object_seqs(fact)[candidate.objects]
        exp = fact.arrays["object.ts_us"][candidate.objects] if by_time else seqs
        assert candidate.measure is not None
        parts.append((candidate.rows, candidate.measure, seqs, exp))
    row, nano, seq, exp = (np.concatenate(column) for column in zip(*parts, strict=True))
    if row.size == 0:
        return np.empty(0, np.int64), WindowMatches(np.zeros(1, np.int64), nano, seq, exp)
    since = (seq - int(seq.min())).astype(np.uint32)  # a batch has fewer than 2^32 events
    order = codes_to_order(read_only(since))
    order = order[codes_to_order(read_only(row[order]))]
    row, nano, seq, exp = row[order], nano[order], seq[order], exp[order]
    # Where postings are partitioned among workers, several may have found the same pair.
    first = np.append(True, (row[1:] != row[:-1]) | (seq[1:] != seq[:-1]))
    if not first.all():
        row, nano, seq, exp = row[first], nano[first], seq[first], exp[first]
    starts = np.flatnonzero(np.append(True, row[1:] != row[:-1]))
    return row[starts].astype(np.int64), WindowMatches(np.append(starts, row.size), nano, seq, exp)


def resolve_window_updates(
    rows: SubscriptionRows, updates: Sequence[WindowUpdates], search: WindowSearch
) -> list[Changed]:
    """Look up the ids and data of updated rows and their objects."""
    changed = []
    for part in updates:
        if part.row.size == 0:
            continue
        seqs, at = np.unique(np.concatenate([part.add_seq, part.drop_seq]), return_inverse=True)
        names = search.find_objects(seqs)
        changed.append(
            Changed(
                part.seq,
                *take_texts(rows.id_offsets, rows.id_bytes, part.row),
                True,
                part.add_offsets,
                names.take(at[: part.add_seq.size]),
                part.add_nano / 1e9,
                part.drop_offsets,
                names.take(at[part.add_seq.size :]),
            )
        )
    return changed
