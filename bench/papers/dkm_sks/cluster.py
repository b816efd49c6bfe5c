"""Simulate workers that keep `nearest` subscriptions, run and timed one after another.

A time-stamp is 1,000 objects, then 100 new subscriptions, then 100 ends. Its update time is that of
the busiest worker for its objects and its changes, and that of the main server: routing, pricing
the new ones. Times are processor time.

What a worker searches is one of three: our index of balls; an inverted file by keyword (KOP's); an
inverted file for each subset, looked into by objects inside the rectangle about its balls (SOP's).
All check a met subscription's ball before anything else is done with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from bench.papers.dkm_sks.data import (
    TICK_DELETES,
    TICK_INSERTS,
    TICK_OBJECTS,
    ObjectColumns,
    StandingResults,
    draw_rows,
)
from bench.papers.dkm_sks.kernels import objects_into_subsets, rows_into_subsets
from placewire.kernels.blocks import codes_to_order
from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import points_to_codes
from placewire.kernels.space.circles import (
    circles_to_rectangles,
    radii_to_limits,
    rectangles_enclosed,
)
from placewire.kinds.boolean.kernels.probes import Probe
from placewire.kinds.boolean.match import make_probe
from placewire.kinds.candidates import Matches, Target
from placewire.kinds.nearest.index import (
    CircleIndex,
    RowPartition,
    index_circles,
    one_part,
)
from placewire.kinds.nearest.match import find_near, sift_near
from placewire.kinds.nearest.results import (
    NearestEntrants,
    NearestResults,
    Neighbours,
    no_neighbours,
)
from placewire.kinds.nearest.rows import nearest_columns
from placewire.kinds.nearest.settle import no_file
from placewire.model.expression import COVER_ALL
from placewire.model.kinds import NEAREST
from placewire.model.subscriptions import (
    SubscriptionRows,
    concat_columns,
    concat_rows,
    map_columns,
    take_rows,
)
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.nearest.assignment import Assignment, release
from placewire.plans.nearest.methods import assign_new
from placewire.plans.nearest.strategy import post_circles
from placewire.plans.route.leaf_route import Route, RoutedShare
from placewire.plans.route.live_terms import CELL_LEVEL
from placewire.plans.route.worker_map import WorkerMap, WorkerMapRoute
from placewire.segments.segment import Segment

NO_DIRECTORY = np.empty(0, np.uint64), np.empty(0, np.uint32)
clock = time.process_time


class TickBlock(NamedTuple):
    """The objects of a time-stamp in cell order; `event` is the place of each in the stream."""

    codes: np.ndarray
    event: np.ndarray
    objects: ObjectColumns
    first_seq: int


class Subsets(NamedTuple):
    """SOP's subsets: that of each row i32[n], and of each its worker i32[r] and f64[r, 4]."""

    of_row: np.ndarray
    worker: np.ndarray
    rectangles: np.ndarray


class Tick(NamedTuple):
    """One time-stamp, in seconds; arrays have a number for each worker."""

    route_s: float
    knn_s: np.ndarray
    merge_s: float
    assign_s: float
    release_s: float
    insert_s: np.ndarray
    delete_s: np.ndarray
    copies: float
    looked: int
    entered: int
    checksum: int

    @property
    def worker_s(self) -> np.ndarray:
        return self.knn_s + self.insert_s + self.delete_s

    @property
    def update_s(self) -> float:
        """The main server's time and the busiest worker's."""
        return self.server_s + float(self.worker_s.max())

    @property
    def sum_s(self) -> float:
        """What one core needs for all of it."""
        return self.server_s + float(self.worker_s.sum())

    @property
    def server_s(self) -> float:
        return self.route_s + self.merge_s + self.assign_s + self.release_s

    @property
    def balance_s(self) -> float:
        """The paper's load balance: between the last and the first worker to end its update."""
        return float(self.knn_s.max() - self.knn_s.min())

    @property
    def inserting_s(self) -> float:
        return self.assign_s + float(self.insert_s.max())

    @property
    def deleting_s(self) -> float:
        return self.release_s + float(self.delete_s.max())


class NearestStore:
    """Subscriptions, their results, and an index of one part or of a part for each worker."""

    def __init__(self, rows: SubscriptionRows, neighbours: Neighbours, balls: CircleIndex) -> None:
        rows = map_columns(rows, read_only)
        self.segment = Segment(NEAREST, rows, balls, neighbours, *NO_DIRECTORY)
        self.results = NearestResults(
            neighbours, balls.radius, nearest_columns(rows).within_m, (), no_file
        )
        self.limits = radii_to_limits(self.results.radius)
        self.dead = np.zeros(-(-rows.total // 64), np.uint64)

    def find(self, part: int, probe: Probe, event: np.ndarray) -> Matches:
        """A worker's part for a block: what may enter, each once."""
        target = Target(self.segment, self.dead, (part,), self.limits)
        found = find_near(probe, target)
        sure = np.ones(event.size, np.bool_)
        sifted = sift_near(found, event, sure, self.segment.rows.k)
        return found._replace(object=sifted.object, row=sifted.row, measure=sifted.distance)

    def enter(self, row: np.ndarray, seq: np.ndarray, distance: np.ndarray) -> NearestEntrants:
        """Let candidates by (row, seq) enter, and shrink the balls."""
        entered, _ = self.results.enter(NearestEntrants(row, seq, distance))
        self.results.fresh = []
        shrunk = np.unique(row[entered])
        self.limits[shrunk] = radii_to_limits(self.results.radius[shrunk])
        return NearestEntrants(row[entered], seq[entered], distance[entered])

    def end(self, rows: np.ndarray) -> None:
        bits = np.uint64(1) << (rows & 63).astype(np.uint64)
        np.bitwise_or.at(self.dead, rows >> 6, bits)


def put_in_subsets(rows: SubscriptionRows, subset: np.ndarray) -> SubscriptionRows:
    """The rows with their terms as those of the inverted files of their subsets.

    All are posted under each term and none is checked against an object's terms again, which are
    not in the order of their hashes any more.
    """
    mixed = rows_into_subsets(
        read_only(rows.literal_offsets), read_only(rows.literal_term), read_only(subset)
    )
    return rows._replace(literal_term=mixed, cover_mode=np.full(rows.total, COVER_ALL, np.uint8))


def index_words(rows: SubscriptionRows, radius: np.ndarray, deal: RowPartition) -> CircleIndex:
    """An inverted file by keyword for each part: one list a term, wherever the balls are."""
    everywhere = index_circles(rows, np.full(rows.total, np.inf), deal)
    return everywhere._replace(radius=read_only(radius))


class EntryTally:
    """What entered in a time-stamp: how many, and a sum that does not depend on their order."""

    def __init__(self) -> None:
        self.entered = self.looked = self.checksum = 0

    def add(self, numbers: np.ndarray, entrants: NearestEntrants, looked: int) -> None:
        """`numbers` i64 are the subscriptions, counted the same way under every plan."""
        key = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        key ^= entrants.seq.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
        key = (key ^ (key >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        self.checksum = (self.checksum + int(np.add.reduce(key, dtype=np.uint64))) % (1 << 64)
        self.entered += entrants.row.size
        self.looked += looked


class TickChanges:
    """The stream of one experiment: blocks, new subscriptions, ends; the same for every plan."""

    def __init__(self, standing: StandingResults, ticks: int) -> None:
        self.standing = standing
        self.ticks = ticks
        self.fresh = draw_rows(
            standing.source,
            ticks * TICK_INSERTS,
            seed=8,
            k_max=standing.k_max,
            within_m=standing.within_m,
        )
        rng = np.random.default_rng(9)
        total = standing.rows.total
        most = min(ticks * TICK_DELETES, total)
        self.ends = np.resize(rng.choice(total, most, replace=False), ticks * TICK_DELETES)

    def blocks(self) -> Iterator[TickBlock]:
        stream = self.standing.source.stream
        for tick in range(self.ticks):
            first = tick * TICK_OBJECTS
            here = np.arange(first, first + TICK_OBJECTS)
            codes = points_to_codes(stream.lon[here], stream.lat[here])
            order = codes_to_order(codes)
            seq = self.standing.source.initial.lon.size + first
            yield TickBlock(codes[order], order.astype(np.uint32), stream.take(here[order]), seq)

    def inserts(self, tick: int) -> np.ndarray:
        return np.arange(tick * TICK_INSERTS, (tick + 1) * TICK_INSERTS)

    def deletes(self, tick: int) -> np.ndarray:
        return self.ends[tick * TICK_DELETES : (tick + 1) * TICK_DELETES]


def everyone(block: TickBlock, workers: int) -> dict[int, RoutedShare]:
    """The papers' broadcast."""
    o = block.objects
    size = block.codes.size
    share = RoutedShare(
        0,
        np.arange(size),
        o.term_offsets,
        o.terms,
        np.ones(o.terms.size, np.uint8),
        np.zeros(size, np.uint8),
    )
    return {worker: share._replace(worker=worker) for worker in range(workers)}


def probe_share(block: TickBlock, share: RoutedShare) -> tuple[Probe, np.ndarray]:
    """A share as a worker probes with it, and the events of its objects."""
    o, of = block.objects, share.objects
    probe = make_probe(
        block.codes[of],
        o.lon[of],
        o.lat[of],
        np.zeros(of.size, np.int64),
        share.term_offsets,
        share.terms,
        share.probed,
        share.alone,
    )
    return probe, block.event[of]


def probe_subsets(
    block: TickBlock, numbers: np.ndarray, rectangles: np.ndarray
) -> tuple[Probe, np.ndarray]:
    """All objects, with their terms in the files of the subsets that look where they are."""
    o = block.objects
    offsets, terms = objects_into_subsets(
        *map(read_only, (o.lon, o.lat, o.term_offsets, o.terms, numbers, rectangles))
    )
    nows = np.zeros(block.codes.size, np.int64)
    return make_probe(block.codes, o.lon, o.lat, nows, offsets, terms), block.event


class Young:
    """The subscriptions that one worker got since the start.

    The index is rebuilt for each insert, so that the insert time includes what merging small
    segments would cost.
    """

    def __init__(self, way: str) -> None:
        self.way = way
        self.number = np.empty(0, np.int64)
        self.store: NearestStore | None = None
        self.rectangle = np.empty((0, 4))

    def add(self, fresh: SubscriptionRows, numbers: np.ndarray) -> None:
        if self.way == "subsets":
            fresh = put_in_subsets(fresh, np.zeros(fresh.total, np.int32))
        rows, neighbours = fresh, no_neighbours(fresh.k)
        if self.store is not None:
            rows = concat_rows([self.store.segment.rows, rows])
            neighbours = concat_columns([self.store.results.neighbours, neighbours])
        self.number = np.concatenate([self.number, numbers])
        own = nearest_columns(rows)
        lon, lat, within_m = own.lon, own.lat, own.within_m
        radius = within_m.copy()
        if self.store is not None:
            radius[: self.store.results.radius.size] = self.store.results.radius
        if self.way == "subsets":
            around = circles_to_rectangles(lon, lat, radius)
            self.rectangle = rectangles_enclosed(around, np.arange(rows.total))[None]
        make = index_circles if self.way == "balls" else index_words
        self.store = NearestStore(rows, neighbours, make(rows, radius, one_part(rows.total)))


class Dealt:
    """Subscriptions dealt out by an assignment; `way` is what workers search, see above."""

    def __init__(
        self,
        standing: StandingResults,
        assignment: Assignment,
        way: str = "balls",
        pruned: bool = True,
        subsets: Subsets | None = None,
    ) -> None:
        self.workers = assignment.workers
        self.rule, self.loads = assignment.rule, assignment.loads.copy()
        self.way, self.pruned, self.subsets = way, pruned, subsets
        rows = standing.rows
        if subsets is not None:
            rows = put_in_subsets(rows, subsets.of_row)
        deal = RowPartition(self.workers, assignment.worker, assignment.cost.astype(np.float32))
        started = time.monotonic()
        make = index_circles if way == "balls" else index_words
        self.base = NearestStore(rows, standing.neighbours, make(rows, standing.radius, deal))
        self.build_s = time.monotonic() - started
        self.deal = deal
        self.young = [Young(way) for _ in range(self.workers)]
        self.live = WorkerMap()
        if pruned:
            assert self.base.segment.index is not None
            base = self.base.segment
            self.live.rebuild([post_circles(base.rows, base.index, self.workers)])

    def step(self, changes: TickChanges, tick: int, block: TickBlock) -> Tick:
        """One time-stamp."""
        tally = EntryTally()
        started = clock()
        if self.pruned:
            o = block.objects
            route = WorkerMapRoute(self.workers, self.live.words, CELL_LEVEL)
            shares = {s.worker: s for s in route.cut(Objects(block.codes, o.term_offsets, o.terms))}
            route_s = clock() - started
        else:
            shares, route_s = everyone(block, self.workers), 0.0
        knn = np.zeros(self.workers)
        for worker in range(self.workers):
            started = clock()
            if worker in shares:
                met = self._update(worker, block, shares[worker])
                knn[worker] = clock() - started
                for numbers, entrants, looked in met:
                    tally.add(numbers, entrants, looked)
        assign_s, insert = self._insert(changes, tick)
        delete = np.zeros(self.workers)
        ended = changes.deletes(tick)
        owner = self.deal.owner[ended]
        started = clock()
        self.loads = release(self.loads, owner, self.deal.cost[ended].astype(np.float64))
        release_s = clock() - started
        for worker in range(self.workers):
            mine = ended[owner == worker]
            started = clock()
            self.base.end(mine)
            delete[worker] = clock() - started
        copies = sum(share.objects.size for share in shares.values()) / block.codes.size
        return Tick(
            route_s, knn, 0.0, assign_s, release_s, insert, delete, copies,
            tally.looked, tally.entered, tally.checksum,
        )  # fmt: skip

    def _update(
        self, worker: int, block: TickBlock, share: RoutedShare
    ) -> list[tuple[np.ndarray, NearestEntrants, int]]:
        """kNN update of one worker: (numbers of subscriptions, what entered, postings met)."""
        young = self.young[worker]
        if self.subsets is None:
            probe, event = probe_share(block, share)
        else:
            mine = np.flatnonzero(self.subsets.worker == worker)
            probe, event = probe_subsets(block, mine, self.subsets.rectangles[mine])
        met = []
        for store, part in ((self.base, worker), (young.store, 0)):
            if store is None:
                continue
            if store is not self.base and self.subsets is not None:
                probe, event = probe_subsets(block, np.zeros(1, np.int64), young.rectangle)
            found = store.find(part, probe, event)
            assert found.measure is not None
            seq = block.first_seq + event[found.object].astype(np.int64)
            entrants = store.enter(found.row, seq, found.measure)
            numbers = entrants.row.astype(np.int64)
            if store is not self.base:
                numbers = self.base.segment.rows.total + young.number[numbers]
            met.append((numbers, entrants, found.candidates))
        return met

    def _insert(self, changes: TickChanges, tick: int) -> tuple[float, np.ndarray]:
        """The main server prices the new ones and notes their balls; workers index them."""
        numbers = changes.inserts(tick)
        fresh = take_rows(changes.fresh, numbers)
        own = nearest_columns(fresh)
        lon, lat, within_m = own.lon, own.lat, own.within_m
        started = clock()
        owner, _, self.loads = assign_new(
            self.rule,
            self.loads,
            lon,
            lat,
            fresh.k.astype(np.int32),
            fresh.literal_offsets,
            fresh.literal_term,
            self.workers,
        )
        if self.pruned:
            noted = CircleIndex(
                np.empty((0, 3), np.float32),
                within_m,
                RowPartition(self.workers, owner, np.zeros(owner.size, np.float32)),
                (),
                (),
            )
            self.live.add(post_circles(fresh, noted, self.workers))
        assign_s = clock() - started
        insert = np.zeros(self.workers)
        for worker in np.unique(owner).tolist():
            mine = np.flatnonzero(owner == worker)
            started = clock()
            self.young[worker].add(take_rows(fresh, mine), numbers[mine])
            insert[worker] = clock() - started
        return assign_s, insert


class Undealt:
    """Every worker has every subscription and objects are divided; one writer keeps results."""

    def __init__(self, standing: StandingResults, route: Route, workers: int) -> None:
        self.workers = workers
        self.route = route
        started = time.monotonic()
        deal = one_part(standing.rows.total)
        balls = index_circles(standing.rows, standing.radius, deal)
        self.build_s = time.monotonic() - started
        self.base = NearestStore(standing.rows, standing.neighbours, balls)
        self.young = Young("balls")

    @property
    def stores(self) -> list[NearestStore]:
        return [store for store in (self.base, self.young.store) if store is not None]

    def step(self, changes: TickChanges, tick: int, block: TickBlock) -> Tick:
        """One time-stamp; inserts and ends are the writer's too."""
        tally = EntryTally()
        knn = np.zeros(self.workers)
        started = clock()
        o = block.objects
        shares = list(self.route.cut(Objects(block.codes, o.term_offsets, o.terms)))
        route_s = clock() - started
        stores = self.stores
        found: list[list[tuple[Matches, np.ndarray]]] = [[] for _ in stores]
        for share in shares:
            started = clock()
            probe, event = probe_share(block, share)
            for at, store in enumerate(stores):
                matches = store.find(0, probe, event)
                found[at].append((matches, event[matches.object].astype(np.int64)))
            knn[share.worker] = clock() - started
        started = clock()
        entered = [
            enter_together(store, block, parts) for store, parts in zip(stores, found, strict=True)
        ]
        merge_s = clock() - started
        for store, entrants, parts in zip(stores, entered, found, strict=True):
            numbers = entrants.row.astype(np.int64)
            if store is not self.base:
                numbers = self.base.segment.rows.total + self.young.number[numbers]
            tally.add(numbers, entrants, sum(m.candidates for m, _ in parts))
        fresh = take_rows(changes.fresh, changes.inserts(tick))
        started = clock()
        self.young.add(fresh, changes.inserts(tick))
        assign_s = clock() - started
        started = clock()
        self.base.end(changes.deletes(tick))
        release_s = clock() - started
        nothing = np.zeros(self.workers)
        copies = sum(share.objects.size for share in shares) / block.codes.size
        return Tick(
            route_s, knn, merge_s, assign_s, release_s, nothing, nothing, copies,
            tally.looked, tally.entered, tally.checksum,
        )  # fmt: skip


def enter_together(
    store: NearestStore, block: TickBlock, parts: list[tuple[Matches, np.ndarray]]
) -> NearestEntrants:
    """Candidates of several workers enter by (row, event)."""
    row = np.concatenate([m.row for m, _ in parts])
    event = np.concatenate([e for _, e in parts])
    distance = np.concatenate([m.measure for m, _ in parts if m.measure is not None])
    order = np.argsort((row.astype(np.uint64) << np.uint64(32)) | event.astype(np.uint64))
    return store.enter(row[order], block.first_seq + event[order], distance[order])


def run_ticks(
    changes: TickChanges,
    cluster: Dealt | Undealt,
    told: Callable[[int, Tick], None] | None = None,
) -> list[Tick]:
    """All time-stamps."""
    ticks = []
    for tick, block in enumerate(changes.blocks()):
        ticks.append(cluster.step(changes, tick, block))
        if told:
            told(tick, ticks[-1])
    return ticks
