"""Change the plan: on request, or when the workers' loads drift.

The next plan is written and named by one commit and in force with the next one. In between,
workers prefetch what they are about to get.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import codes_to_points
from placewire.kinds.boolean.kernels.probes import ranges_touching_postings
from placewire.kinds.boolean.match import make_probe, match_all
from placewire.model.arrays import F64, U64, Array, Bools
from placewire.model.kinds import kind_numbered
from placewire.model.subscriptions import SubscriptionRows
from placewire.plans.boolean.methods import METHODS, live_rows, look_up
from placewire.plans.cost.measures import post_rows
from placewire.plans.cost.model import LoadModel, calibrate
from placewire.plans.kernels.owners import RouteTables
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.leaves import Leaves
from placewire.plans.rebalance.adjustment import reweigh
from placewire.plans.rebalance.rebalancer import LoadSource, Rebalancer
from placewire.plans.route.leaf_route import (
    LeafRoute,
    PlanRef,
    PreviousRef,
    RouteRef,
    make_tables,
    read_plan,
    write_plan,
)
from placewire.plans.route.live_terms import LiveTerms
from placewire.plans.sample.sample import make_sample, pick_objects
from placewire.plans.sample.sampler import Reservoir, Sampler
from placewire.segments.live_segment import LiveSegment
from placewire.segments.segment import Segment
from placewire.storage.layout import StateDir
from placewire.storage.manifest import PreviousPlanEntry
from placewire.storage.runtime_files import PlanRequest, read_request


class NextPlan(NamedTuple):
    """A plan that one commit has named and the next brings into force."""

    leaves: Leaves | None  # None: objects are matched where they are read
    file: str
    why: str
    dual: bool = False  # the plan in force is kept for existing subscriptions


@dataclass
class PlanChanger:
    """Finds the next boolean plan of a number of workers."""

    state: StateDir
    workers: int
    key: tuple[int, int]
    sampler: Sampler
    rebalancer: Rebalancer | None
    retained: Callable[[], Objects] = field(default=Reservoir(1).in_order)

    def read_request(self, handled: str) -> PlanRequest | None:
        """Read the requested plan, unless that request was handled before."""
        request = read_request(self.state)
        return None if request is None or request.id == handled else request

    def plan_requested(
        self, plan: str, batch: int, segments: Sequence[LiveSegment], cost: LoadModel | None
    ) -> NextPlan | None:
        """A plan of another name, made of the recent sample; None if there is no such plan."""
        why = f"{plan}, requested"
        if plan == "shared":
            return NextPlan(None, "", why)
        if plan not in METHODS or cost is None:
            return None
        objects = self.sampler.take_recent(self.retained)
        sample = make_sample(*objects, live_rows(segments), cost.posting_work)
        return self.write(METHODS[plan](sample, self.workers, cost), why, batch, cost)

    def adjust(
        self, leaves: Leaves, batch: int, segments: Sequence[LiveSegment], cost: LoadModel | None
    ) -> NextPlan | None:
        """The adjusted plan, if the loads of the one in force want one."""
        if self.rebalancer is None or not self.rebalancer.active:
            return None
        known = cost or calibrate().load
        found = self.rebalancer.decide(leaves, known, self.source(leaves.name, segments, known))
        if found is None:
            return None
        plan = self.write(found.leaves, self.rebalancer.why, batch, cost)
        return plan._replace(dual=self.rebalancer.rule.dual)

    def write(self, leaves: Leaves, why: str, batch: int, cost: LoadModel | None) -> NextPlan:
        """Write the next plan."""
        file = self.state.new_name(batch, "plan")
        write_plan(self.state.file(file), leaves, self.key, cost)
        return NextPlan(leaves, file, why)

    def source(self, plan: str, segments: Sequence[LiveSegment], cost: LoadModel) -> LoadSource:
        """What a decision about a plan needs, each computed once."""
        rows = cache(lambda: live_rows(segments))
        recent = cache(lambda: self.sampler.take_recent(self.retained))
        # A plan is balanced for the objects that it was made from: simulate it with others.
        objects = cache(lambda: every_second(recent(), 0))
        whole = cache(lambda: make_sample(*objects(), rows(), cost.posting_work))
        weighed = cache(lambda: reweigh(whole(), look_up(objects(), segments), cost.posting_work))
        method = METHODS.get(plan)
        return LoadSource(
            cache(lambda: post_rows(rows())),
            weighed,
            None if method is None else lambda: method(weighed(), self.workers, cost),
            lambda leaves: simulate_plan(leaves, every_second(recent(), 1), rows(), segments, cost),
        )


def every_second(objects: Objects, first: int) -> Objects:
    """Every second object, from the first or the second on."""
    return pick_objects(objects, np.arange(first, objects.total, 2))


def simulate_plan(
    leaves: Leaves,
    objects: Objects,
    rows: SubscriptionRows,
    segments: Sequence[LiveSegment],
    cost: LoadModel,
) -> F64:
    """The load f64[workers] of each worker when recent objects are matched under a plan.

    Models estimate what a plan costs, and plans are balanced by them. Here objects, each at the
    centre of its cell, are routed and matched with the segments; `rows` are the live ones.
    """
    live = LiveTerms(leaves)
    live.rebuild([rows])
    route = LeafRoute(leaves.workers, leaves.summary, make_tables(leaves), live.tables)
    lon, lat = codes_to_points(objects.codes)
    pairs = [(one.segment, one.dead) for one in segments]
    loads = np.zeros(leaves.workers)
    for share in route.cut(objects):
        at = share.objects
        probe = make_probe(
            objects.codes[at],
            lon[at],
            lat[at],
            np.zeros(at.size, np.int64),
            share.term_offsets,
            share.terms,
            share.probed,
            share.alone,
        )
        looked = sum(found.candidates for found in match_all(probe, pairs))
        loads[share.worker] = cost.per_object * at.size + cost.per_posting * looked
    return loads


FEW = 0.1  # of all live subscriptions: below it the previous plan is dropped


class PreviousPlan(NamedTuple):
    """The previous plan, and the names of the segments that still use it."""

    plan: PlanRef
    leaves: Leaves
    version: int
    segments: frozenset[str]

    @property
    def ref(self) -> PreviousRef:
        return PreviousRef(self.plan, tuple(sorted(self.segments)))

    def select(self, segments: Sequence[LiveSegment]) -> list[LiveSegment]:
        """Those of the segments that use the previous plan."""
        return [live for live in segments if live.name in self.segments]

    def is_nearly_empty(self, segments: Sequence[LiveSegment]) -> bool:
        """Whether few subscriptions still use the previous plan."""
        older, total = (sum(map(count_live, some)) for some in (self.select(segments), segments))
        return older <= FEW * total

    def without_removed(self, segments: Sequence[LiveSegment]) -> PreviousPlan:
        """The previous plan without segments that no longer exist."""
        return self._replace(segments=frozenset(live.name for live in self.select(segments)))

    def entry(self, segments: Sequence[LiveSegment]) -> PreviousPlanEntry:
        """Return the plan's entry for the manifest."""
        return PreviousPlanEntry(
            method=self.leaves.name,
            version=self.version,
            file=self.plan.file,
            live=self.plan.live,
            segments=sorted(self.segments),
            subscriptions=sum(map(count_live, self.select(segments))),
        )


def read_previous(state: StateDir, workers: int, entry: PreviousPlanEntry) -> PreviousPlan:
    """Read the previous plan of a manifest entry."""
    leaves = read_plan(state.file(entry.file)).leaves
    plan = PlanRef(workers, leaves.summary, entry.file, entry.live)
    return PreviousPlan(plan, leaves, entry.version, frozenset(entry.segments))


def count_live(live: LiveSegment) -> int:
    return live.segment.rows.total - live.ended


PAGE = 4_096  # bytes
MOST_RANGES = 64  # more are joined, nearest first: a little too much is read
WORLD_END = np.uint64(1) << np.uint64(32)
WORLD = np.zeros(1, np.uint64), np.full(1, WORLD_END)  # all codes
Ranges = tuple[U64, U64]


def gained_ranges(now: RouteTables, later: RouteTables, worker: int, workers: int) -> Ranges:
    """The ranges of codes that a worker gains under the later plan: where they begin and end.

    If the later plan has more workers, the current ones also prefetch for the new ones, in turn.
    """
    cuts = np.union1d(now.range_start, later.range_start).astype(np.uint64)
    has = has_worker(now, [worker])[np.searchsorted(now.range_start, cuts, "right") - 1]
    most = int(later.part_worker.max(initial=0)) + 1
    mine = has_worker(later, range(worker, most, workers))
    will = mine[np.searchsorted(later.range_start, cuts, "right") - 1]
    gained = np.flatnonzero(will & ~has)
    ends = np.append(cuts[1:], WORLD_END)
    return join_ranges(cuts[gained], ends[gained], MOST_RANGES)


def has_worker(tables: RouteTables, some: Sequence[int]) -> Bools:
    """Whether some workers have a part of the leaf of each range."""
    leaf = np.repeat(
        np.arange(tables.part_offsets.size - 1), np.diff(tables.part_offsets).astype(np.int64)
    )
    mine = np.zeros(tables.part_offsets.size - 1, np.bool_)
    mine[leaf[np.isin(tables.part_worker, some)]] = True
    return mine[tables.range_leaf]


def join_ranges(start: U64, end: U64, most: int) -> Ranges:
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
    now, later = plan.tables(root), PlanRef(0, "", next_file, "").tables(root)
    start, end = gained_ranges(now, later, worker, plan.workers)
    return touch(start, end, segments) if start.size else 0


def touch(start: U64, end: U64, segments: Sequence[Segment]) -> int:
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


def touch_pages(array: Array) -> int:
    """Read a byte of each page of an array."""
    return int(array.reshape(-1).view(np.uint8)[::PAGE].sum(dtype=np.uint64))
