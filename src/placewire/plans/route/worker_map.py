"""Route objects to workers that hold only some rows, by a map of what each of them holds.

The map is a Bloom filter with a key for every worker, cell and term. Published systems broadcast
every object to every worker. Here a worker gets an object only if one of its rows may reach the
object's cell and has one of its terms.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import MAX_LEVEL
from placewire.model.arrays import F64, I32, I64, U64
from placewire.model.subscriptions import take_slices
from placewire.plans.kernels.term_maps import Objects, objects_to_map_workers, posts_into_map
from placewire.plans.leaves import NOTHING
from placewire.plans.route.leaf_route import PlanRef, Route, RoutedShare
from placewire.plans.route.live_terms import CELL_LEVEL, empty_map
from placewire.storage.arrays import open_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import RowPlanEntry


class WorkerMapRoute:
    """Routes by a map whose keys have cells of `level`; at level 0 only terms count."""

    def __init__(self, workers: int, words: U64, level: int) -> None:
        self.workers = workers
        self.words = read_only(words)
        self.level = level

    def cut(self, objects: Objects) -> Iterator[RoutedShare]:
        """The shares of all workers that may need any of a block's objects, in code order.

        A worker looks up all terms: a row that asks for several is posted under one of them, and
        its index may have picked another one than the map.
        """
        codes, cell_shift = objects.codes, 2 * (MAX_LEVEL - self.level)
        if self.level == 0:
            codes, cell_shift = np.zeros(codes.size, np.uint32), 0
        offsets, received = objects_to_map_workers(
            *objects._replace(codes=codes).frozen(),
            self.words,
            self.workers,
            1 << (2 * self.level),
            cell_shift,
        )
        for worker in np.flatnonzero(np.diff(offsets)).tolist():
            picked = received[offsets[worker] : offsets[worker + 1]]
            share_offsets, at = take_slices(objects.term_offsets, picked)
            every, alone = np.ones(at.size, np.uint8), np.zeros(picked.size, np.uint8)
            yield RoutedShare(worker, picked, share_offsets, objects.terms[at], every, alone)


class MapPosts(NamedTuple):
    """Posts of a segment: the row and term u64 of each, and each row's worker and cells.

    `cells` is a CSR column of numbers of cells of `level`, or WIDE_CELL for all of them.
    """

    row: NDArray[np.integer[Any]]
    term: U64
    worker: I32
    cell_offsets: I64
    cells: I64
    level: int

    @property
    def keys(self) -> int:
        """How many keys they set."""
        return int(np.diff(self.cell_offsets)[self.row].sum())


class WorkerMap:
    """The map; new segments are added to it.

    Rows that end or reach less far leave it unchanged until it is rebuilt: some objects are sent
    without need, and none is missed.
    """

    def __init__(self) -> None:
        self.keys = 0
        self.words = empty_map(1)

    def add(self, posts: MapPosts) -> None:
        """Add the posts of a segment."""
        posts_into_map(
            read_only(posts.row),
            read_only(posts.term),
            read_only(posts.worker),
            read_only(posts.cell_offsets),
            read_only(posts.cells),
            1 << (2 * posts.level),
            self.words,
        )
        self.keys += posts.keys

    def rebuild(self, segments: Sequence[MapPosts]) -> None:
        """Build the map of all segments, with room to grow."""
        self.keys = 0
        self.words = empty_map(2 * max(sum(posts.keys for posts in segments), 1 << 10))
        for posts in segments:
            self.add(posts)

    @property
    def crowded(self) -> bool:
        """Whether the map has too many keys to be selective."""
        return 4 * self.keys > self.words.size * 64 // 3


def route_sample(posts: MapPosts, workers: int, objects: Objects) -> tuple[F64, float]:
    """Count the objects that each worker would receive; also returns the seconds it took."""
    held = WorkerMap()
    held.rebuild([posts])
    started = time.perf_counter()
    sent = np.zeros(workers)
    for share in WorkerMapRoute(workers, held.words, posts.level).cut(objects):
        sent[share.worker] = share.objects.size
    return sent, time.perf_counter() - started


class PartitionRef(NamedTuple):
    """The route of objects to rows that are partitioned, as files.

    `map` is the map of what each worker holds, with cells of `level`. With `leaves`, objects are
    divided instead, and every worker has all rows.
    """

    workers: int
    root: str
    level: int
    map: str = ""
    leaves: PlanRef | None = None

    def open(self, root: str) -> Route:
        """Open the route, its tables mapped."""
        if self.leaves is not None:
            return self.leaves.open(self.root)
        words = open_arrays(StateDir.at(self.root).file(self.map)).arrays["words"]
        return WorkerMapRoute(self.workers, words, self.level)

    def parts(self, worker: int, parts: int) -> Sequence[int]:
        """The parts of a segment that a worker probes; parts past the last worker wrap around."""
        return range(parts) if self.leaves is not None else range(worker, parts, self.workers)


def route_of_entry(plan: RowPlanEntry, root: str) -> PartitionRef | None:
    """Return the route of a plan that partitions rows; None if objects stay in place."""
    if plan.leaves:
        leaves = PlanRef(plan.workers, NOTHING, plan.leaves, plan.live)
        return PartitionRef(plan.workers, root, 0, leaves=leaves)
    for file, level in ((plan.circles, CELL_LEVEL), (plan.terms, 0)):
        if file:
            return PartitionRef(plan.workers, root, level, file)
    return None
