"""Count the subscriptions that each leaf and each worker has, once for each segment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.plans.cost.measures import find_holders, hold_parts, post_rows
from placewire.plans.leaves import Leaves
from placewire.plans.route.leaf_route import make_tables
from placewire.plans.route.live_terms import make_dominant_route
from placewire.segments.live_segment import LiveSegment
from placewire.segments.segment import Segment


class LeafCounts(NamedTuple):
    """Subscriptions by worker, f64[workers], and by leaf and worker, f64[leaves, workers].

    A subscription with parts of several leaves counts in each leaf, and once at a worker.
    """

    by_worker: NDArray[np.float64]
    by_leaf: NDArray[np.float64]


EVERY = 4  # batches: segments that are merged soon are not counted separately


class RowCounts:
    """Counts each segment once; rows that ended reduce its counts in proportion."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._leaves: Leaves | None = None  # that boolean segments were counted by
        self._boolean: dict[str, LeafCounts] = {}
        self._last = LeafCounts(np.zeros(workers), np.zeros((0, workers)))
        self._partitioned: dict[str, NDArray[np.float64]] = {}

    def count_boolean(
        self, batch: int, leaves: Leaves, segments: Sequence[LiveSegment]
    ) -> LeafCounts:
        """Count under a plan of leaves: every few batches, and when the plan is new."""
        if leaves is not self._leaves:
            self._leaves, self._boolean = leaves, {}
        elif batch % EVERY:
            return self._last
        self._boolean = {
            live.name: self._boolean.get(live.name) or count_segment(leaves, live.segment)
            for live in segments
        }
        by_worker, by_leaf = np.zeros(leaves.workers), np.zeros((leaves.total, leaves.workers))
        for live in segments:
            held, alive = self._boolean[live.name], share_alive(live)
            by_worker += alive * held.by_worker
            by_leaf += alive * held.by_leaf
        self._last = LeafCounts(by_worker, by_leaf)
        return self._last

    def count_partitioned(
        self, segments: Sequence[LiveSegment], count: Callable[[Segment], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Count the rows that each worker has, of segments that `count` counts one by one."""
        by_worker = np.zeros(self.workers)
        for live in segments:
            if live.name not in self._partitioned:
                self._partitioned[live.name] = count(live.segment)
            by_worker += share_alive(live) * self._partitioned[live.name]
        return by_worker

    def forget(self, names: set[str]) -> None:
        """Drop the counts of segments with other names."""
        self._partitioned = {
            name: held for name, held in self._partitioned.items() if name in names
        }


def share_alive(live: LiveSegment) -> float:
    return 1.0 - live.ended / max(live.segment.rows.total, 1)


def count_segment(leaves: Leaves, segment: Segment) -> LeafCounts:
    """Count the boolean subscriptions of a segment by worker and leaf."""
    posted = post_rows(segment.rows, near=False)
    parts = hold_parts(leaves, posted)
    by_leaf = np.zeros((leaves.total, leaves.workers))
    leaf = np.repeat(np.arange(leaves.total), np.diff(leaves.part_offsets))
    np.add.at(by_leaf, (leaf, leaves.part_worker), parts)
    if np.unique(leaves.part_worker).size == parts.size:  # one part each
        return LeafCounts(by_leaf.sum(axis=0), by_leaf)
    offsets, _ = find_holders(leaves, make_dominant_route(leaves), make_tables(leaves), posted)
    return LeafCounts(np.diff(offsets).astype(np.float64), by_leaf)
