"""The sliding window at engine level: store files, buffers, the index, and arrivals block by block.

The paper tells the time for arriving objects (AMP) from that for expiring ones (EMP). So a block is
matched and entered with the horizon at rest; then the horizon moves past the block's length, and
buffers that run short are filled anew from the store. `together` does both at once, as a batch of
the engine does: the results are the same.

Rows whose threshold sinks below what the index was made with get an index of their own, as in the
engine. The store has files of 125,000 objects, and of the stream files merged four at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from bench.relevant_data import Corpus
from placewire.engine.due import Advances
from placewire.engine.hunting import Best, Found, Hunter, Wanted
from placewire.engine.relating import Relevance, RelevanceBlock, find_relevant
from placewire.engine.relevance import Slid, Slider
from placewire.engine.sections import FAR_PAST
from placewire.engine.sliding import Moves
from placewire.index.groups import GROUPS, LEAF_ROWS, GroupIndex, build_groups
from placewire.index.retained import build_retained, used_words
from placewire.kernels.directory import mark_bits
from placewire.kernels.jit import read_only
from placewire.kernels.prunings import ALL_PRUNINGS, COUNTER_NAMES
from placewire.model.subscriptions import (
    SubscriptionRows,
    lengths_to_offsets,
    take_rows,
    take_slices,
)
from placewire.state.buffers import empty_buffers, take_buffers
from placewire.state.layout import StateDir
from placewire.state.live import LiveSegment
from placewire.state.livebuffers import BufferRule, LiveBuffers
from placewire.state.manifest import StoreEntry
from placewire.state.segment import NO_INDEX, Segment
from placewire.state.store import describe, write_retained

FILE_OBJECTS = 1_000_000
FAN_IN = 4
STRETCH = 20_000  # rows that are filled at a time
MOST_LIFTED = 0.1  # of all rows, before the whole index is made anew
NOBODY = np.empty(0, np.int64)
NO_BITS = np.empty(0, np.uint64)


def clock() -> float:
    """Processor time of all threads: others use the machine too."""
    return time.process_time()


class Store:
    """Files of a corpus: the window, then the stream in blocks, merged four at a time."""

    def __init__(self, corpus: Corpus, state: StateDir, window: int, block: int) -> None:
        self.corpus = corpus
        self.state = state
        self.window = window
        self.block = block
        self._files: dict[tuple[int, int], StoreEntry] = {}
        state.files.mkdir(parents=True, exist_ok=True)

    def upto(self, last: int) -> list[StoreEntry]:
        """The files of all objects before one."""
        cuts = list(range(0, self.window, FILE_OBJECTS))
        size = self.block
        while size * FAN_IN <= last - self.window:
            size *= FAN_IN
        at = self.window
        while at < last:
            while at + size > last and size > self.block:
                size //= FAN_IN
            cuts.append(at)
            at = min(at + size, last)
        return [self._file(*span) for span in zip(cuts, [*cuts[1:], last], strict=True)]

    def _file(self, first: int, last: int) -> StoreEntry:
        if (first, last) not in self._files:
            rows, words = used_words(self.corpus.rows(first, last), self.corpus.words)
            name = f"{self.corpus.name}-{self.corpus.total}-{first}-{last}.plw"
            retained = build_retained(rows, words, self.corpus.lexicon)
            if not self.state.file(name).exists():
                write_retained(self.state.file(name), retained)
            self._files[first, last] = describe(name, retained)
        return self._files[first, last]


class Stock(NamedTuple):
    """The best objects of all rows, more than any buffer is filled with, and their postings."""

    postings: np.ndarray
    best: Best

    def take(self, picked: np.ndarray, sizes: np.ndarray) -> Best:
        """The first of them."""
        best = self.best
        offsets = lengths_to_offsets(sizes)
        of = np.repeat(np.arange(picked.size), sizes)
        room = best.offsets[picked + 1] - best.offsets[picked]
        assert (room >= sizes).all(), "the stock is too small"
        at = best.offsets[picked][of] + np.arange(of.size) - offsets[of]
        return Best(
            offsets,
            np.minimum(best.counts[picked], sizes),
            best.nano[at],
            best.seq[at],
            best.exp[at],
            best.looked[picked],
        )


class TimedHunter(Hunter):
    """Counts the buffers that are filled, the objects looked at for them, and the time."""

    def __init__(self, state: StateDir, by_time: bool) -> None:
        super().__init__(state, by_time)
        self.refills = self.looked = 0
        self.seconds = 0.0
        self.stock: Stock | None = None  # what is found, while buffers are filled first

    def postings(self, rows: SubscriptionRows, picked: np.ndarray, wanted: Wanted) -> np.ndarray:
        if self.stock is not None:
            return self.stock.postings[picked]
        started = clock()
        counts = super().postings(rows, picked, wanted)
        self.seconds += clock() - started
        return counts

    def best(
        self, rows: SubscriptionRows, picked: np.ndarray, wanted: Wanted, sizes: np.ndarray
    ) -> Best:
        if self.stock is not None:
            return self.stock.take(picked, sizes)
        started = clock()
        found = super().best(rows, picked, wanted, sizes)
        self.seconds += clock() - started
        self.refills += picked.size
        self.looked += int(found.looked.sum())
        return found

    def above(
        self,
        rows: SubscriptionRows,
        picked: np.ndarray,
        after_seq: np.ndarray,
        theta: np.ndarray,
    ) -> Found:
        started = clock()
        found = super().above(rows, picked, after_seq, theta)
        self.seconds += clock() - started
        return found


class Indexing(NamedTuple):
    """How the index is made and searched."""

    groups: int = GROUPS
    leaf_rows: int = LEAF_ROWS
    prunings: int = ALL_PRUNINGS
    dropping: bool = True


USUAL = Indexing()
Find = Callable[[RelevanceBlock, np.ndarray], Relevance]


class Index:
    """An index of all rows, and one of those whose threshold has sunk since it was made."""

    def __init__(
        self, rows: SubscriptionRows, theta: np.ndarray, indexing: Indexing = USUAL
    ) -> None:
        self.rows = rows
        self.indexing = indexing
        self.seconds = 0.0
        started = clock()
        self._make(theta)
        self.made_s = clock() - started

    def _build(self, theta: np.ndarray, picked: np.ndarray | None) -> GroupIndex:
        how = self.indexing
        return build_groups(
            self.rows,
            theta,
            picked=picked,
            groups=how.groups,
            leaf_rows=how.leaf_rows,
            dropping=how.dropping,
        )

    def _make(self, theta: np.ndarray) -> None:
        self.theta = theta.copy()
        self.main = self._build(self.theta, None)
        self.lifted = NOBODY
        self.dead = NO_BITS
        self.young: GroupIndex | None = None

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.main)

    def follow(self, theta: np.ndarray) -> None:
        """Index anew what the index would not find any more."""
        started = clock()
        sunk = np.flatnonzero(theta < self.theta)
        if sunk.size:
            lifted = np.union1d(self.lifted, sunk)
            if lifted.size > MOST_LIFTED * self.rows.total:
                self._make(theta)
            else:
                self.lifted = lifted
                self.dead = np.zeros(self.rows.total // 64 + 1, np.uint64)
                mark_bits(self.dead, lifted)
                self.theta[lifted] = theta[lifted]
                self.young = self._build(self.theta, lifted)
        self.seconds += clock() - started

    def find(self, block: RelevanceBlock, theta: np.ndarray) -> Relevance:
        """Every pair that reaches its threshold."""
        prunings = self.indexing.prunings
        found = [find_relevant(block, self.rows, self.main, theta, self.dead, prunings)]
        if self.young is not None:
            found.append(find_relevant(block, self.rows, self.young, theta, prunings=prunings))
        return join_found(found)


def cut_block(block: RelevanceBlock, picked: np.ndarray) -> RelevanceBlock:
    """Some objects of a block."""
    offsets, at = take_slices(block.term_offsets, picked)
    return RelevanceBlock(
        block.codes[picked],
        block.lon[picked],
        block.lat[picked],
        block.now_us[picked],
        offsets,
        block.terms[at],
        block.norms[picked],
    )


def find_on_threads(
    index: Index, block: RelevanceBlock, theta: np.ndarray, threads: ThreadPoolExecutor | None
) -> Relevance:
    """Match a block, half of its objects on each of two threads."""
    if threads is None:
        return index.find(block, theta)
    halves = [np.arange(half, block.lon.size, 2) for half in range(2)]
    shares = [cut_block(block, half) for half in halves]
    found = threads.map(lambda share: index.find(share, theta), shares)
    return join_found(
        [
            part._replace(object=half[part.object].astype(np.uint32))
            for half, part in zip(halves, found, strict=True)
        ]
    )


def join_found(parts: list[Relevance]) -> Relevance:
    if len(parts) == 1:
        return parts[0]
    columns = [np.concatenate(column) for column in list(zip(*parts, strict=True))[:3]]
    return Relevance(*columns, np.sum([part.counters for part in parts], axis=0))


class Past(NamedTuple):
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
        store: Store,
        rows: SubscriptionRows,
        rule: BufferRule,
        span_us: int | None = None,
        stock: Stock | None = None,
        told: bool = True,
    ) -> None:
        self.store = store
        self.rows = SubscriptionRows(*map(read_only, rows))
        self.rule = rule
        self.span_us = span_us  # of a window by time
        self.at = store.window  # the seq of the next object
        self.hunter = TimedHunter(store.state, rule.by_time)
        empty = empty_buffers(np.zeros(rows.total, np.int64), rule.by_time)
        horizon = self.horizon(self.at - 1)
        self.buffers = LiveBuffers(empty, rows.k, rule, horizon, [], store.state.file)
        segment = Segment(self.rows, NO_INDEX, np.empty(0, np.uint64), np.empty(0, np.uint32))
        self.live = LiveSegment("bench", segment, buffers=self.buffers)
        started = time.monotonic()
        self.hunter.stock = stock
        self._fill(told)
        self.hunter.stock = None
        self.fill_s = time.monotonic() - started
        self.fill_looked = self.hunter.looked / max(rows.total, 1)

    def multiply(self, picked: np.ndarray) -> Sliding:
        """The subscriptions `picked`, some perhaps several times, with the buffers they have."""
        other = Sliding(self.store, take_rows(self.rows, picked[:0]), self.rule, self.span_us)
        other.rows = SubscriptionRows(*map(read_only, take_rows(self.rows, picked)))
        ks, held = other.rows.k, self.buffers.buffers
        empty = empty_buffers(np.zeros(0, np.int64), self.rule.by_time)
        buffers = LiveBuffers(
            empty, ks[:0], self.rule, self.horizon(self.at - 1), [], self.store.state.file
        )
        buffers.ks = ks
        buffers.buffers = take_buffers(held, picked, self.rule.by_time, self.rule.room(ks))
        buffers.soonest, buffers.looked = self.buffers.soonest[picked], self.buffers.looked[picked]
        other.buffers, other.at = buffers, self.at
        segment = other.live.segment._replace(rows=other.rows)
        other.live = LiveSegment("bench", segment, buffers=buffers)
        return other

    def horizon(self, seq: int) -> int:
        """What has left when the object of this seq has come."""
        if self.span_us is None:
            return seq - self.store.window
        return int(self.store.corpus.ts_us[seq]) - self.span_us

    def _slider(self, first: int, last: int, moving: bool = True) -> Slider:
        seqs = np.arange(first - 1, last)
        moves = Moves(seqs, np.array([self.horizon(int(seq)) for seq in seqs]))
        if not moving:
            moves = Moves(moves.seq[:1], moves.horizon[:1])
        still = Advances(NOBODY, NOBODY, FAR_PAST)
        return Slider(moves, still, self.hunter, self.rule.by_time, last - 1)

    def _fill(self, told: bool) -> None:
        """The best of the window for every row."""
        self.hunter.look_at(self.store.upto(self.at))
        slider = self._slider(self.at, self.at)
        started = time.monotonic()

        for first in range(0, self.rows.total, STRETCH):
            picked = np.arange(first, min(first + STRETCH, self.rows.total))
            at_seq = np.full(picked.size, self.at - 1)
            slider._refill(self.rows, self.buffers, picked, at_seq, at_seq + 1)
            if told and (first // STRETCH) % 10 == 9:
                seconds = time.monotonic() - started
                print(f"  filled {first + STRETCH:,} buffers ({seconds:.0f} s)", flush=True)

    @property
    def theta(self) -> np.ndarray:
        theta: np.ndarray = self.buffers.buffers.theta
        return theta

    @property
    def held(self) -> float:
        """Objects in a buffer, in the mean."""
        return float(self.buffers.buffers.counts.mean())

    def enter(self, found: Relevance, seqs: np.ndarray, slider: Slider) -> int:
        """Let what was found, and what the slider's horizon reaches, pass the buffers."""
        rows, of_rows = self.gather(found, seqs)
        end_seq = np.full(self.rows.total, np.iinfo(np.int64).max)
        slid = slider.slide_committed(self.live, of_rows, rows, end_seq)
        return count_updates(slid)

    def gather(self, found: Relevance, seqs: np.ndarray) -> tuple[np.ndarray, Found]:
        """What was found, by row and then by seq."""
        seq = seqs[found.object]
        exp = self.store.corpus.ts_us[seq] if self.rule.by_time else seq
        order = np.argsort((found.row.astype(np.uint64) << np.uint64(32)) | seq.astype(np.uint64))
        rows, starts = np.unique(found.row[order], return_index=True)
        offsets = np.append(starts, order.size).astype(np.int64)
        return rows.astype(np.int64), Found(offsets, found.nano[order], seq[order], exp[order])

    def run(
        self,
        blocks: int,
        index: Index,
        together: bool = False,
        threads: ThreadPoolExecutor | None = None,
    ) -> Past:
        """Let so many blocks of the stream pass; two threads may share a block's matching out."""
        size = self.store.block
        match_s = enter_s = leave_s = wall_s = 0.0
        found = updates = 0
        counters = np.zeros(len(COUNTER_NAMES), np.int64)
        hunter = self.hunter
        refills, looked, refill_s = hunter.refills, hunter.looked, hunter.seconds
        index_s = index.seconds
        for first in range(self.at, self.at + blocks * size, size):
            last = first + size
            block, seqs = self.store.corpus.block(first, last)
            hunter.look_at(self.store.upto(last))
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
        return Past(
            blocks * size,
            match_s,
            enter_s,
            leave_s,
            hunter.seconds - refill_s,
            index.seconds - index_s,
            found,
            updates,
            hunter.refills - refills,
            hunter.looked - looked,
            counters,
            wall_s,
        )


NOTHING = Relevance(
    np.empty(0, np.uint32),
    np.empty(0, np.uint32),
    np.empty(0, np.int32),
    np.zeros(len(COUNTER_NAMES), np.int64),
)


def stock_up(store: Store, rows: SubscriptionRows, size: int) -> Stock:
    """The best of the window for every row, `size` each."""
    hunter = Hunter(store.state, by_time=False)
    hunter.look_at(store.upto(store.window))
    parts, postings = [], []
    rows = SubscriptionRows(*map(read_only, rows))
    for first in range(0, rows.total, STRETCH):
        picked = np.arange(first, min(first + STRETCH, rows.total))
        far_past = np.full(picked.size, FAR_PAST)
        wanted = Wanted(far_past, np.full(picked.size, -1), np.full(picked.size, store.window))
        postings.append(hunter.postings(rows, picked, wanted))
        parts.append(hunter.best(rows, picked, wanted, np.full(picked.size, size)))
    columns = [np.concatenate(column) for column in list(zip(*parts, strict=True))[1:]]
    return Stock(
        np.concatenate(postings), Best(lengths_to_offsets(np.full(rows.total, size)), *columns)
    )


def count_updates(slid: list[Slid]) -> int:
    return sum(part.row.size for part in slid)
