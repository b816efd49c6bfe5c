"""Fetching: a worker reads what the next plan gives it, while the old one is still in force."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from placewire.engine.planref import PlanRef
from placewire.kernels.jit import read_only
from placewire.kernels.touching import ranges_touching_postings
from placewire.route.leafroute import RouteTables
from placewire.state.segment import Segment

MOST_RANGES = 64  # more are joined, nearest first: a little too much is read
WORLD_END = np.uint64(1) << np.uint64(32)
WORLD = np.zeros(1, np.uint64), np.full(1, WORLD_END)  # all codes

Ranges = tuple[NDArray[np.uint64], NDArray[np.uint64]]


def open_next(root: str, file: str) -> RouteTables:
    """The routing tables of a plan that is to come."""
    return PlanRef(0, "", file, "").tables(root)


def gained_ranges(now: RouteTables, later: RouteTables, worker: int) -> Ranges:
    """Where codes begin and end that a worker gets by the later plan and does not have now."""
    cuts = np.union1d(now.range_start, later.range_start).astype(np.uint64)
    has = has_worker(now, worker)[np.searchsorted(now.range_start, cuts, "right") - 1]
    will = has_worker(later, worker)[np.searchsorted(later.range_start, cuts, "right") - 1]
    gained = np.flatnonzero(will & ~has)
    ends = np.append(cuts[1:], WORLD_END)
    return join_ranges(cuts[gained], ends[gained], MOST_RANGES)


def has_worker(tables: RouteTables, worker: int) -> NDArray[np.bool_]:
    """Whether a worker has a part of the leaf of each range."""
    leaf = np.repeat(
        np.arange(tables.part_offsets.size - 1), np.diff(tables.part_offsets).astype(np.int64)
    )
    mine = np.zeros(tables.part_offsets.size - 1, np.bool_)
    mine[leaf[tables.part_worker == worker]] = True
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
    """Read what a worker is about to get of the live segments; gives how many postings."""
    now, later = plan.tables(root), open_next(root, next_file)
    start, end = gained_ranges(now, later, worker)
    return touch(start, end, segments) if start.size else 0


def touch(start: NDArray[np.uint64], end: NDArray[np.uint64], segments: Sequence[Segment]) -> int:
    """Read the postings of segments in ranges of codes; gives how many there are."""
    sums = np.zeros(1, np.uint32)
    total = 0
    for segment in segments:
        index = segment.boolean
        total += ranges_touching_postings(
            read_only(start),
            read_only(end),
            index.run_level,
            index.run_cells,
            index.cell_code,
            index.cell_offsets,
            index.postings,
            sums,
        )
    return total
