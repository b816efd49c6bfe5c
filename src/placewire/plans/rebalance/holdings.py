"""Holdings: how many subscriptions each leaf and each worker has, counted once for each segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.model.subscriptions import RELEVANT
from placewire.plans.cost.measures import find_holders, hold_parts, post_rows
from placewire.plans.leaves import Leaves
from placewire.plans.route.leaf_route import make_tables
from placewire.plans.route.live_terms import make_dominant_route
from placewire.segments.live_segment import LiveSegment
from placewire.segments.segment import Segment


class Held(NamedTuple):
    """Subscriptions by worker, f64[workers], and by leaf and worker, f64[leaves, workers].

    One that has parts of several leaves counts in each, and once at a worker.
    """

    by_worker: NDArray[np.float64]
    by_leaf: NDArray[np.float64]


EVERY = 4  # batches: segments that are merged soon need no counting of their own


class Holdings:
    """Counts segments as they come; of rows that ended, a segment loses its share of each count."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._leaves: Leaves | None = None  # that boolean segments were counted by
        self._boolean: dict[str, Held] = {}
        self._last = Held(np.zeros(workers), np.zeros((0, workers)))
        self._dealt: dict[str, NDArray[np.float64]] = {}

    def count_boolean(self, batch: int, leaves: Leaves, segments: Sequence[LiveSegment]) -> Held:
        """What is held under a plan that cuts: counted with some batches, and with a new plan."""
        if leaves is not self._leaves:
            self._leaves, self._boolean = leaves, {}
        elif batch % EVERY:
            return self._last
        self._boolean = {
            live.name: self._boolean.get(live.name) or hold(leaves, live.segment)
            for live in segments
        }
        by_worker, by_leaf = np.zeros(leaves.workers), np.zeros((leaves.total, leaves.workers))
        for live in segments:
            held, alive = self._boolean[live.name], share_alive(live)
            by_worker += alive * held.by_worker
            by_leaf += alive * held.by_leaf
        self._last = Held(by_worker, by_leaf)
        return self._last

    def count_dealt(self, kind: int, segments: Sequence[LiveSegment]) -> NDArray[np.float64]:
        """How many subscriptions of a kind that is dealt out each worker has."""
        count = count_relevant if kind == RELEVANT else count_near
        by_worker = np.zeros(self.workers)
        for live in segments:
            if live.name not in self._dealt:
                self._dealt[live.name] = count(live.segment, self.workers)
            by_worker += share_alive(live) * self._dealt[live.name]
        return by_worker

    def forget(self, names: set[str]) -> None:
        """Keep no counts but those of segments with these names."""
        self._dealt = {name: held for name, held in self._dealt.items() if name in names}


def share_alive(live: LiveSegment) -> float:
    return 1.0 - live.ended / max(live.segment.rows.total, 1)


def hold(leaves: Leaves, segment: Segment) -> Held:
    """Who has the boolean subscriptions of a segment."""
    posted = post_rows(segment.rows, near=False)
    parts = hold_parts(leaves, posted)
    by_leaf = np.zeros((leaves.total, leaves.workers))
    leaf = np.repeat(np.arange(leaves.total), np.diff(leaves.part_offsets))
    np.add.at(by_leaf, (leaf, leaves.part_worker), parts)
    if np.unique(leaves.part_worker).size == parts.size:  # one part each
        return Held(by_leaf.sum(axis=0), by_leaf)
    offsets, _ = find_holders(leaves, make_dominant_route(leaves), make_tables(leaves), posted)
    return Held(np.diff(offsets).astype(np.float64), by_leaf)


def count_near(segment: Segment, workers: int) -> NDArray[np.float64]:
    """The rows of each worker's parts of a `nearest` segment."""
    deal = segment.index.partition
    return np.bincount(deal.owner % workers, minlength=workers).astype(np.float64)


def count_relevant(segment: Segment, workers: int) -> NDArray[np.float64]:
    """The rows that have a posting in each worker's parts of a `relevant` segment."""
    rows = segment.rows
    if segment.index.partition is None:
        return np.where(np.arange(workers) == 0, float(rows.total), 0.0)
    row = np.repeat(np.arange(rows.total), np.diff(rows.literal_offsets))
    owner = segment.index.partition.owner
    posted = owner >= 0
    pairs = np.unique(row[posted] * workers + owner[posted] % workers)
    return np.bincount(pairs % workers, minlength=workers).astype(np.float64)
