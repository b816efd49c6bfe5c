"""Slide a window past subscriptions: fill their buffers, then add objects block by block.

The paper tells the time for arriving objects (AMP) from that for expiring ones (EMP). So a block is
matched and entered with the horizon at rest; then the horizon moves past the block's length, and
buffers that run short are refilled from the store. `together` does both at once, as a batch of
the engine does: the results are the same.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from bench.clock import say
from bench.papers.skype.index import NOBODY, Index, find_on_threads
from bench.papers.skype.store import STRETCH, Stock, TimedWindowSearch, WindowStore, clock
from placewire.ingest.clock import Advances
from placewire.kernels.jit import read_only
from placewire.kinds.relevant.kernels.groups import COUNTER_NAMES
from placewire.kinds.relevant.kernels.window import WindowMatches, WindowUpdates
from placewire.kinds.relevant.match import Relevance
from placewire.kinds.relevant.results import (
    BufferRule,
    RelevantResults,
    empty_buffers,
    take_buffers,
)
from placewire.kinds.relevant.settle import WindowSlide
from placewire.model.kinds import RELEVANT
from placewire.model.subscriptions import SubscriptionRows, map_columns, take_rows
from placewire.model.times import FAR_PAST_US
from placewire.objects.window import Moves
from placewire.segments.live_segment import LiveSegment
from placewire.segments.segment import Segment


class WindowCosts(NamedTuple):
    """What some blocks took: seconds of each step, and counts."""

    objects: int
    match_s: float
    enter_s: float
    leave_s: float  # of which:
    refill_s: float
    index_s: float
    found: int
    updates: int
    refills: int
    looked: int
    counters: np.ndarray
    wall_s: float = 0.0

    @property
    def amp_ms(self) -> float:
        """Time for an arriving object."""
        return 1e3 * (self.match_s + self.enter_s) / self.objects

    @property
    def emp_ms(self) -> float:
        """Time for an expiring object."""
        return 1e3 * (self.leave_s + self.index_s) / self.objects

    @property
    def per_s(self) -> float:
        return 1e3 / (self.amp_ms + self.emp_ms)

    def each(self, count: float) -> float:
        return count / self.objects


class Sliding:
    """Subscriptions with filled buffers, and a window that slides past them."""

    def __init__(
        self,
        store: WindowStore,
        rows: SubscriptionRows,
        rule: BufferRule,
        span_us: int | None = None,
        stock: Stock | None = None,
        told: bool = True,
    ) -> None:
        self.store = store
        self.rows = map_columns(rows, read_only)
        self.rule = rule
        self.span_us = span_us  # of a window by time
        self.at = store.window  # the seq of the next object
        self.search = TimedWindowSearch(store.state, rule.by_time)
        empty = empty_buffers(np.zeros(rows.total, np.int64), rule.by_time)
        horizon = self.horizon(self.at - 1)
        self.buffers = RelevantResults(empty, rows.k, rule, horizon, [], store.state.file)
        segment = Segment(
            RELEVANT, self.rows, None, None, np.empty(0, np.uint64), np.empty(0, np.uint32)
        )
        self.live = LiveSegment("bench", segment, results=self.buffers)
        started = time.monotonic()
        self.search.stock = stock
        self._fill(told)
        self.search.stock = None
        self.fill_s = time.monotonic() - started
        self.fill_looked = self.search.looked / max(rows.total, 1)

    def multiply(self, picked: np.ndarray) -> Sliding:
        """The subscriptions `picked`, some perhaps several times, with the buffers they have."""
        other = Sliding(self.store, take_rows(self.rows, picked[:0]), self.rule, self.span_us)
        other.rows = map_columns(take_rows(self.rows, picked), read_only)
        ks, held = other.rows.k, self.buffers.buffers
        empty = empty_buffers(np.zeros(0, np.int64), self.rule.by_time)
        buffers = RelevantResults(
            empty, ks[:0], self.rule, self.horizon(self.at - 1), [], self.store.state.file
        )
        buffers.ks = ks
        buffers.buffers = take_buffers(held, picked, self.rule.by_time, self.rule.room(ks))
        buffers.soonest, buffers.looked = self.buffers.soonest[picked], self.buffers.looked[picked]
        other.buffers, other.at = buffers, self.at
        segment = other.live.segment._replace(rows=other.rows)
        other.live = LiveSegment("bench", segment, results=buffers)
        return other

    def horizon(self, seq: int) -> int:
        """What has left when the object of this seq has come."""
        if self.span_us is None:
            return seq - self.store.window
        return int(self.store.corpus.ts_us[seq]) - self.span_us

    def _slider(self, first: int, last: int, moving: bool = True) -> WindowSlide:
        seqs = np.arange(first - 1, last)
        moves = Moves(seqs, np.array([self.horizon(int(seq)) for seq in seqs]))
        if not moving:
            moves = Moves(moves.seq[:1], moves.horizon[:1])
        still = Advances(NOBODY, NOBODY, FAR_PAST_US)
        return WindowSlide(moves, still, self.search, self.rule.by_time, last - 1)

    def _fill(self, told: bool) -> None:
        """The best of the window for every row."""
        self.search.use_files(self.store.upto(self.at))
        slider = self._slider(self.at, self.at)
        started = time.monotonic()

        for first in range(0, self.rows.total, STRETCH):
            picked = np.arange(first, min(first + STRETCH, self.rows.total))
            at_seq = np.full(picked.size, self.at - 1)
            slider.refill(self.rows, self.buffers, picked, at_seq)
            if told and (first // STRETCH) % 10 == 9:
                seconds = time.monotonic() - started
                say(f"  filled {first + STRETCH:,} buffers ({seconds:.0f} s)")

    @property
    def theta(self) -> np.ndarray:
        theta: np.ndarray = self.buffers.buffers.theta
        return theta

    @property
    def held(self) -> float:
        """Objects in a buffer, in the mean."""
        return float(self.buffers.buffers.counts.mean())

    def enter(self, found: Relevance, seqs: np.ndarray, slider: WindowSlide) -> int:
        """Let what was found, and what the slider's horizon reaches, pass the buffers."""
        rows, of_rows = self.gather(found, seqs)
        end_seq = np.full(self.rows.total, np.iinfo(np.int64).max)
        slid = slider.settle_committed(self.live, of_rows, rows, end_seq)
        return count_updates(slid)

    def gather(self, found: Relevance, seqs: np.ndarray) -> tuple[np.ndarray, WindowMatches]:
        """What was found, by row and then by seq."""
        seq = seqs[found.object]
        exp = self.store.corpus.ts_us[seq] if self.rule.by_time else seq
        order = np.argsort((found.row.astype(np.uint64) << np.uint64(32)) | seq.astype(np.uint64))
        rows, starts = np.unique(found.row[order], return_index=True)
        offsets = np.append(starts, order.size).astype(np.int64)
        return rows.astype(np.int64), WindowMatches(
            offsets, found.nano[order], seq[order], exp[order]
        )

    def run(
        self,
        blocks: int,
        index: Index,
        together: bool = False,
        threads: ThreadPoolExecutor | None = None,
    ) -> WindowCosts:
        """Let so many blocks of the stream pass; two threads may share a block's matching out."""
        size = self.store.block
        match_s = enter_s = leave_s = wall_s = 0.0
        found = updates = 0
        counters = np.zeros(len(COUNTER_NAMES), np.int64)
        search = self.search
        refills, looked, refill_s = search.refills, search.looked, search.seconds
        index_s = index.seconds
        for first in range(self.at, self.at + blocks * size, size):
            last = first + size
            block, seqs = self.store.corpus.block(first, last)
            search.use_files(self.store.upto(last))
            started, marks = time.perf_counter(), [clock()]
            met = find_on_threads(index, block, self.theta, threads)
            marks.append(clock())
            if together:
                updates += self.enter(met, seqs, self._slider(first, last))
                marks.append(clock())
            else:
                updates += self.enter(met, seqs, self._slider(first, last, moving=False))
                marks.append(clock())
                updates += self.enter(NOTHING, seqs, self._slider(first, last))
            marks.append(clock())
            index.follow(self.theta)
            wall_s += time.perf_counter() - started
            self.buffers.take_fresh(first)
            match_s, enter_s, leave_s = (
                total + step
                for total, step in zip(
                    (match_s, enter_s, leave_s), np.diff(marks).tolist(), strict=True
                )
            )
            found += met.row.size
            counters += met.counters
        self.at += blocks * size
        return WindowCosts(
            blocks * size,
            match_s,
            enter_s,
            leave_s,
            search.seconds - refill_s,
            index.seconds - index_s,
            found,
            updates,
            search.refills - refills,
            search.looked - looked,
            counters,
            wall_s,
        )


NOTHING = Relevance(
    np.empty(0, np.uint32),
    np.empty(0, np.uint32),
    np.empty(0, np.int32),
    np.zeros(len(COUNTER_NAMES), np.int64),
)


def count_updates(slid: list[WindowUpdates]) -> int:
    return sum(part.row.size for part in slid)
