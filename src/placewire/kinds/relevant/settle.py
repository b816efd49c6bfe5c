"""Relevance: the results of `relevant` subscriptions as the window slides past them in a batch.

Workers found what scores enough by the thresholds of the last commit. Here it is applied event by
event, together with what leaves the window. A buffer that would run short is filled anew from the
window as it is at that event, and so is that of a subscription that begins; what comes later in the
batch is then looked for here too, since the workers did not know the new threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.ingest.clock import Advances, object_seqs
from placewire.kernels.blocks import NEVER, codes_to_order
from placewire.kernels.jit import read_only
from placewire.kinds.object_ids import take_texts
from placewire.kinds.relevant.kernels.buffers import DONE
from placewire.kinds.relevant.kernels.window import best_into_buffers, window_past_rows
from placewire.kinds.relevant.refill import (
    NO_OBJECTS,
    BestObjects,
    Wanted,
    WindowMatches,
    WindowSearch,
)
from placewire.kinds.relevant.results import RelevantResults
from placewire.kinds.shard import Changed, SettleBatch, Shard, read_candidates
from placewire.kinds.threads import in_portions
from placewire.model.subscriptions import SubscriptionRows
from placewire.model.times import FAR_PAST_US
from placewire.objects.window import Moves
from placewire.segments.live_segment import LiveSegment

FIRST_STRETCH, MOST_STRETCH = 64, 1 << 30  # events
STRETCH_PAIRS = 1_000_000  # of rows and objects that a stretch may have, about
ROWS_A_THREAD = 20_000  # what is worth a thread
ROOM = 1 << 16  # updates, and objects added and dropped, that the kernel writes at once


class WindowUpdates(NamedTuple):
    """Updates of rows, each with what it added and dropped: CSR of objects by seq."""

    row: NDArray[np.int64]
    seq: NDArray[np.int64]
    add_offsets: NDArray[np.int64]
    drop_offsets: NDArray[np.int64]
    add_nano: NDArray[np.int32]
    add_seq: NDArray[np.int64]
    drop_seq: NDArray[np.int64]


class WindowPass:
    """One batch and the window that slides through it."""

    def __init__(
        self,
        moves: Moves,
        advances: Advances,
        search: WindowSearch,
        by_time: bool,
        last_seq: int,
        growth: float = 1.0,
    ) -> None:
        self.moves = moves
        self.advances = advances
        self.search = search
        self.by_time = by_time
        self.last_seq = last_seq
        self.growth = growth  # objects that arrive in the window for each that leaves it

    def stops(self, expires_us: NDArray[np.int64], end_seq: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first event at which each row is not live any more, for it ended or expired."""
        at = np.searchsorted(self.advances.to_us, expires_us)
        seqs = np.append(self.advances.seq, NEVER)
        expired = np.where(expires_us <= self.advances.before_us, -1, seqs[at])
        return np.minimum(end_seq, expired)

    def slide_committed(
        self,
        live: LiveSegment,
        found: WindowMatches,
        rows: NDArray[np.int64],
        end_seq: NDArray[np.int64],
    ) -> list[WindowUpdates]:
        """Let the batch pass the committed rows of a segment; `found` is of `rows`."""
        buffers: RelevantResults = live.results
        leaving = np.flatnonzero(buffers.soonest <= self.moves.horizon[-1])
        picked = np.union1d(rows, leaving)
        if picked.size == 0:
            return []
        if picked.size > rows.size:
            lengths = np.zeros(picked.size, np.int64)
            lengths[np.searchsorted(picked, rows)] = np.diff(found.offsets)
            found = found._replace(offsets=np.append(0, np.cumsum(lengths)))
        stops = self.stops(live.segment.rows.expires_us[picked], end_seq[picked])
        begins = np.full(picked.size, -1)
        slid, status = self._slide(buffers, picked, stops, found, begins)
        short = np.flatnonzero(status != DONE)
        if short.size:
            slid += self._follow(
                live.segment.rows, buffers, picked[short], status[short], stops[short]
            )
        buffers.soonest[picked[stops <= self.last_seq]] = NEVER
        return slid

    def slide_new(
        self, rows: SubscriptionRows, buffers: RelevantResults, end_seq: NDArray[np.int64]
    ) -> list[WindowUpdates]:
        """Let rows of the batch begin with what the window has, and the rest of it pass them."""
        stops = self.stops(rows.expires_us, end_seq)
        picked = np.flatnonzero(self.advances.at(rows.begin_seq) < rows.expires_us)
        if picked.size == 0:
            return []
        slid = self._follow(rows, buffers, picked, rows.begin_seq[picked], stops[picked])
        buffers.soonest[stops <= self.last_seq] = NEVER
        return slid

    def _slide(
        self,
        buffers: RelevantResults,
        picked: NDArray[np.int64],
        stops: NDArray[np.int64],
        found: WindowMatches,
        begins: NDArray[np.int64],
    ) -> tuple[list[WindowUpdates], NDArray[np.int64]]:
        """Let events pass some rows; gives where each stopped to be filled anew, or DONE."""
        status = np.full(picked.size, DONE)
        begins = begins.copy()

        def pass_some(first: int, last: int) -> list[WindowUpdates]:
            some = slice(first, last)
            offsets = found.offsets[first : last + 1]
            return self._pass(
                buffers, picked[some], stops[some], begins[some], offsets, found, status[some]
            )

        slid = in_portions(pass_some, picked.size, ROWS_A_THREAD)
        buffers.note(picked, picked[:0])
        return slid, status

    def _pass(
        self,
        buffers: RelevantResults,
        picked: NDArray[np.int64],
        stops: NDArray[np.int64],
        begins: NDArray[np.int64],
        offsets: NDArray[np.int64],
        found: WindowMatches,
        status: NDArray[np.int64],
    ) -> list[WindowUpdates]:
        """Let the batch pass some rows, and say in `status` which must be filled anew, and when."""
        cursor = np.zeros(4, np.int64)
        slid = []
        ends = tuple(np.empty(ROOM, np.int64) for _ in range(4))
        objects = np.empty(ROOM, np.int32), np.empty(ROOM, np.int64), np.empty(ROOM, np.int64)
        while cursor[0] < picked.size:
            cursor[1:] = 0
            window_past_rows(
                read_only(picked),
                read_only(buffers.ks),
                read_only(stops),
                begins,
                *WindowMatches(*map(read_only, found._replace(offsets=offsets))),
                read_only(self.moves.seq),
                read_only(self.moves.horizon),
                buffers.rule.dominance,
                buffers.rule.trim,
                buffers.buffers,
                buffers.soonest,
                status,
                *(ends[0], ends[1], ends[2], ends[3]),
                *objects,
                cursor,
            )
            _, updates, adds, drops = cursor.tolist()
            if updates:
                slid.append(
                    WindowUpdates(
                        ends[0][:updates].copy(),
                        ends[1][:updates].copy(),
                        np.append(0, ends[2][:updates]),
                        np.append(0, ends[3][:updates]),
                        objects[0][:adds].copy(),
                        objects[1][:adds].copy(),
                        objects[2][:drops].copy(),
                    )
                )
        return slid

    def _cost(
        self,
        rows: SubscriptionRows,
        buffers: RelevantResults,
        picked: NDArray[np.int64],
        wanted: Wanted,
    ) -> NDArray[np.float64]:
        """How many objects a search for each row will score: as the last one, if there was one."""
        cost = buffers.looked[picked].astype(np.float64)
        new = np.flatnonzero(np.isnan(cost))
        if new.size:
            few = Wanted(*(column[new] for column in wanted))
            cost[new] = self.search.share * self.search.postings(rows, picked[new], few)
        return cost

    def _follow(
        self,
        rows: SubscriptionRows,
        buffers: RelevantResults,
        picked: NDArray[np.int64],
        at_seq: NDArray[np.int64],
        stops: NDArray[np.int64],
    ) -> list[WindowUpdates]:
        """Fill buffers anew at an event, and go on from there, each row by stretches of the log.

        A stretch is as long as what the one before found allows: a new row wants all that shares
        a term with it, until its threshold has risen.
        """
        slid: list[WindowUpdates] = []
        short = np.ones(picked.size, np.bool_)
        length = FIRST_STRETCH
        while True:
            if short.any():
                slid.append(self.refill(rows, buffers, picked[short], at_seq[short]))
            left = (at_seq < self.last_seq) & (at_seq + 1 < stops)
            picked, at_seq, stops = picked[left], at_seq[left], stops[left]
            if picked.size == 0:
                return slid
            limit = np.minimum(at_seq + length, self.last_seq)
            theta = buffers.buffers.theta
            found = self.search.above(rows, picked, at_seq, limit + 1, theta)
            some, status = self._slide(buffers, picked, np.minimum(stops, limit + 1), found, at_seq)
            slid += some
            short = status != DONE
            at_seq = np.where(short, status, limit)
            allowed = int(length * min(STRETCH_PAIRS / max(found.seq.size, 1), 4.0))
            length = max(FIRST_STRETCH, min(allowed, MOST_STRETCH))

    def refill(
        self,
        rows: SubscriptionRows,
        buffers: RelevantResults,
        picked: NDArray[np.int64],
        at_seq: NDArray[np.int64],
    ) -> WindowUpdates:
        """Fill buffers anew from the window as it is at an event."""
        horizon = self.moves.at(at_seq)
        far_past = np.full(picked.size, FAR_PAST_US)
        wanted = Wanted(
            horizon if self.by_time else far_past,
            far_past if self.by_time else horizon,
            at_seq + 1,
        )
        looked = self._cost(rows, buffers, picked, wanted)
        sizes = buffers.rule.sizes(buffers.ks[picked], looked, self.growth)
        best = self.search.best(rows, picked, wanted, sizes)
        complete = best.counts < sizes
        if buffers.rule.name == "skyband":
            best, complete = lower(best, buffers.ks[picked], buffers.rule.ratio, complete)
        columns = best_into_buffers(
            read_only(picked),
            read_only(buffers.ks),
            read_only(at_seq),
            read_only(complete),
            *BestObjects(*map(read_only, best))[:5],
            buffers.rule.dominance,
            buffers.buffers,
            buffers.soonest,
        )
        buffers.looked[picked] = best.looked
        self.search.note_looked(rows, picked, wanted, best.looked)
        buffers.note(picked[:0], picked)
        row, seq, adds, drops, *objects = columns
        return WindowUpdates(row, seq, np.append(0, adds), np.append(0, drops), *objects)


def lower(
    best: BestObjects, ks: NDArray[np.uint16], ratio: float, complete: NDArray[np.bool_]
) -> tuple[BestObjects, NDArray[np.bool_]]:
    """Of the best those that score a share of the k-th score at least."""
    kth = best.offsets[:-1] + ks.astype(np.int64) - 1
    full = best.counts >= ks
    floor = np.where(full, ratio * best.nano[np.where(full, kth, 0)], -1)
    slot = np.arange(best.nano.size)
    of = np.repeat(np.arange(best.counts.size), np.diff(best.offsets))
    stays = (slot - best.offsets[:-1][of] < best.counts[of]) & (best.nano >= floor[of])
    counts = np.bincount(of[stays], minlength=best.counts.size)
    return best._replace(counts=counts), complete & (counts == best.counts)


def gather_found(
    shard: Shard, batch: SettleBatch, by_time: bool
) -> tuple[NDArray[np.int64], WindowMatches]:
    """What the workers found for a shard: its rows, ascending, and the objects of each by seq."""
    parts: list[tuple[NDArray[Any], ...]] = [(np.empty(0, np.uint32), *NO_OBJECTS)]
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
    # Where postings are dealt out, several workers may have found the same pair.
    first = np.append(True, (row[1:] != row[:-1]) | (seq[1:] != seq[:-1]))
    if not first.all():
        row, nano, seq, exp = row[first], nano[first], seq[first], exp[first]
    starts = np.flatnonzero(np.append(True, row[1:] != row[:-1]))
    return row[starts].astype(np.int64), WindowMatches(np.append(starts, row.size), nano, seq, exp)


def name_window_updates(
    rows: SubscriptionRows, slid: Sequence[WindowUpdates], search: WindowSearch
) -> list[Changed]:
    """Updates of `relevant` subscriptions of one segment; the store knows all their objects."""
    changed = []
    for part in slid:
        if part.row.size == 0:
            continue
        seqs, at = np.unique(np.concatenate([part.add_seq, part.drop_seq]), return_inverse=True)
        names = search.name(seqs)
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
