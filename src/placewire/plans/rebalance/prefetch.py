"""Prefetch the postings that the next plan gives a worker while the old one is in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kinds.boolean.kernels.probes import ranges_touching_postings
from placewire.model.kinds import kind_numbered
from placewire.plans.kernels.owners import RouteTables
from placewire.plans.route.leaf_route import PlanRef
from placewire.plans.route.protocol import RouteRef
from placewire.segments.segment import Segment

PAGE = 4_096  # bytes
MOST_RANGES = 64  # more are joined, nearest first: a little too much is read
WORLD_END = np.uint64(1) << np.uint64(32)
WORLD = np.zeros(1, np.uint64), np.full(1, WORLD_END)  # all codes

Ranges = tuple[NDArray[np.uint64], NDArray[np.uint64]]


def open_next(root: str, file: str) -> RouteTables:
    """The routing tables of the next plan."""
    return PlanRef(0, "", file, "").tables(root)


def gained_ranges(now: RouteTables, later: RouteTables, worker: int, workers: int) -> Ranges:
    """Where codes begin and end that a worker gets by the later plan and does not have now.

    If that has more workers, those there are now fetch for the others too, turn by turn.
    """
    cuts = np.union1d(now.range_start, later.range_start).astype(np.uint64)
    has = has_worker(now, [worker])[np.searchsorted(now.range_start, cuts, "right") - 1]
    most = int(later.part_worker.max(initial=0)) + 1
    mine = has_worker(later, range(worker, most, workers))
    will = mine[np.searchsorted(later.range_start, cuts, "right") - 1]
    gained = np.flatnonzero(will & ~has)
    ends = np.append(cuts[1:], WORLD_END)
    return join_ranges(cuts[gained], ends[gained], MOST_RANGES)


def has_worker(tables: RouteTables, some: Sequence[int]) -> NDArray[np.bool_]:
    """Whether some workers have a part of the leaf of each range."""
    leaf = np.repeat(
        np.arange(tables.part_offsets.size - 1), np.diff(tables.part_offsets).astype(np.int64)
    )
    mine = np.zeros(tables.part_offsets.size - 1, np.bool_)
    mine[leaf[np.isin(tables.part_worker, some)]] = True
    return mine[tables.range_leaf]


def join_ranges(start: NDArray[np.uint64], end: NDArray[np.uint64], most: int) -> Ranges:
    """The same ranges, those with the smallest gaps joined until there are at most so many."""
    if start.size <= 1:
        return start, end
    gap = start[1:] - end[:-1]
    keep = gap > 0
    if np.count_nonzero(keep) >= most:
        keep = np.zeros(gap.size, np.bool_)
        keep[np.argsort(gap, kind="stable")[-(most - 1) :]] = True
    return start[np.append(True, keep)], end[np.append(keep, True)]


def fetch(
    root: str, plan: PlanRef, next_file: str, worker: int, segments: Sequence[Segment]
) -> int:
    """Read the postings that a worker is about to get; returns how many."""
    now, later = plan.tables(root), open_next(root, next_file)
    start, end = gained_ranges(now, later, worker, plan.workers)
    return touch(start, end, segments) if start.size else 0


def touch(start: NDArray[np.uint64], end: NDArray[np.uint64], segments: Sequence[Segment]) -> int:
    """Read the postings of segments in ranges of codes; returns how many."""
    sums = np.zeros(1, np.uint32)
    total = 0
    for segment in segments:
        total += ranges_touching_postings(read_only(start), read_only(end), segment.index, sums)
    return total


def prefetch_rewrites(
    rewrites: Sequence[Segment], routes: Mapping[int, RouteRef], worker: int
) -> int:
    """Read a worker's parts of segments in force after the batch; returns how many postings.

    Only kinds whose rows are partitioned have parts. Under other plans every worker has all of a
    segment, and there is nothing to fetch for one worker.
    """
    total = 0
    for rewritten in rewrites:
        route = routes.get(rewritten.kind)
        if route is None:
            continue
        parts = kind_numbered(rewritten.kind).parts(rewritten)
        for part in parts[worker :: route.workers]:
            total += part.size
            for array in part:
                touch_pages(array)
    return total


def touch_pages(array: NDArray[Any]) -> int:
    """Read a byte of each page of an array."""
    return int(array.reshape(-1).view(np.uint8)[::PAGE].sum(dtype=np.uint64))
