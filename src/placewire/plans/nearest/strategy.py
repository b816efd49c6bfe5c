"""Partition `nearest` subscriptions: each row goes to one worker, or objects are divided.

Under `kop`, `sop`, `dkm` and `ps2` a row has one worker, and an object goes to every worker with a
circle that it may enter. Under `sstd` every worker has all rows, and objects are divided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import MAX_LEVEL, boxes_to_ranges, codes_to_points
from placewire.kernels.space.circles import circles_to_boxes, radii_to_limits
from placewire.kernels.space.z_curve import points_to_curve
from placewire.kinds.boolean.index import counts_among_rows, cover_posts
from placewire.kinds.boolean.match import make_probe
from placewire.kinds.candidates import Target
from placewire.kinds.nearest.index import CircleIndex, RowPartition, index_circles, one_part
from placewire.kinds.nearest.match import find_near
from placewire.kinds.nearest.rows import nearest_columns
from placewire.model.arrays import F64, I32, I64, U32
from placewire.model.kinds import NEAREST
from placewire.model.regions import CIRCLE
from placewire.model.subscriptions import SubscriptionRows, map_columns, take_rows
from placewire.plans.allocation import hand_over, imbalance, scale_costs, sum_loads
from placewire.plans.boolean.qt import plan_qt
from placewire.plans.cost.measures import (
    Machines,
    PlanChoice,
    PlanWork,
    choose_partition,
    shared_work,
)
from placewire.plans.cost.model import Prices
from placewire.plans.kernels.term_maps import Objects, cells_of_ranges
from placewire.plans.leaves import NOTHING, Leaves
from placewire.plans.nearest.assignment import Assignment, Rule, release
from placewire.plans.nearest.methods import NEAREST_METHODS, assign_new
from placewire.plans.nearest.sample import CircleSample
from placewire.plans.route.live_terms import CELL_LEVEL, MOST_SCOPES
from placewire.plans.route.worker_map import MapPosts, route_sample
from placewire.plans.row_planner import Division, PartitionStrategy, PlanInput
from placewire.plans.sample.questions import assume_kind
from placewire.plans.sample.sample import CKQ, every_nth, make_sample, pick_objects
from placewire.segments.live_segment import LiveSegment
from placewire.segments.segment import Segment, make_directory

AUTO = ("kop", "dkm")  # what `auto` compares with `shared`
CLEARLY = 0.9
SAMPLED_ROWS = 100_000
SAMPLED_OBJECTS = 4_000
BYTES_A_NEAREST = 480.0


class NearestStrategy(PartitionStrategy):
    """Assigns each row to the worker with the least load, priced by a method's rule."""

    kind = NEAREST
    name = "nearest"
    methods = NEAREST_METHODS
    object_methods = ("sstd",)
    map_key = "circles"
    map_level = CELL_LEVEL
    sent_key = "broadcast"
    rule_type = Rule
    rule: Rule | None = None
    loads: F64

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.loads = np.zeros(workers)
        self._counted: set[str] = set()  # segments whose rows are in the loads
        self._candidates: dict[str, Assignment] = {}  # assignments that `choose` compared

    def assign(self, rows: SubscriptionRows, held: Any) -> RowPartition:
        if self.rule is None:
            owner = (rows.id_hash % np.uint64(self.workers)).astype(np.int32)
            return RowPartition(self.workers, owner, np.zeros(rows.total, np.float32))
        own = nearest_columns(rows)
        lon, lat = own.lon, own.lat
        owner, cost, self.loads = assign_new(
            self.rule,
            self.loads,
            lon,
            lat,
            rows.k.astype(np.int32),
            rows.literal_offsets,
            rows.literal_term,
            self.workers,
        )
        return RowPartition(self.workers, owner, cost.astype(np.float32))

    def count_parts(self, segment: Segment) -> int:
        return int(segment.index.partition.parts)

    def count_held(self, segment: Segment) -> F64:
        owner = segment.index.partition.owner % self.workers
        return np.bincount(owner, minlength=self.workers).astype(np.float64)

    def release(self, live: LiveSegment, rows: I64) -> None:
        circles = live.segment.index
        if self.rule is None or circles is None or circles.partition.parts != self.workers:
            return
        owner, cost = circles.partition.owner[rows], circles.partition.cost[rows]
        self.loads = release(self.loads, owner, cost.astype(np.float64))

    def refresh_loads(self, segments: Sequence[LiveSegment], now_us: int) -> None:
        names = {one.name for one in segments}
        merged, self._counted = not self._counted <= names, names
        if self.rule is None or not merged:
            return
        self.loads = np.zeros(self.workers)
        for one in segments:
            partition = one.segment.index.partition
            if partition.parts == self.workers:
                alive = ~one.ended_mask() & (one.segment.rows.expires_us > now_us)
                self.loads += np.bincount(
                    partition.owner[alive], partition.cost[alive], self.workers
                )

    def post_segment(self, segment: Segment) -> MapPosts:
        return post_circles(segment.rows, segment.index, self.workers)

    def count_offered(self, objects: int) -> int:
        """What a plain broadcast would have sent."""
        return objects * self.workers

    def choose(self, seen: PlanInput, prices: Prices, machines: Machines) -> PlanChoice:
        rows, radius = take_rows(seen.rows, seen.alive), radii_of(seen.segments)[seen.alive]
        sample = make_circle_sample(rows, radius, seen.objects)
        self._candidates = {name: NEAREST_METHODS[name](sample, self.workers) for name in AUTO}
        owners = {name: one.worker for name, one in self._candidates.items()}
        return choose_nearest(rows, radius, seen.objects, owners, self.workers, prices, machines)

    def divide(self, method: str, seen: PlanInput, counted: F64 | None) -> Division:
        alive = seen.alive
        sample = make_circle_sample(
            take_rows(seen.rows, alive), radii_of(seen.segments)[alive], seen.objects
        )
        assignment = self._candidates.get(method)
        if assignment is None:
            assignment = NEAREST_METHODS[method](sample, self.workers)
        self._candidates = {}
        way = "assigned"
        before = [one.segment.index.partition for one in seen.segments]
        if counted is not None and all(one.parts == self.workers for one in before):
            former = np.concatenate([one.owner for one in before])[alive]
            assignment = rebalance_assignment(assignment, former, counted, sample)
            way = f"rebalanced, {int((assignment.worker != former).sum())} moved"
        self.rule, self.loads = assignment.rule, assignment.loads
        owner = np.zeros(seen.rows.total, np.int32)
        cost = np.zeros(seen.rows.total, np.float32)
        owner[alive], cost[alive] = assignment.worker, assignment.cost
        starts = np.cumsum([0, *(one.segment.rows.total for one in seen.segments)])
        parts = {
            one.name: RowPartition(self.workers, owner[first:last], cost[first:last])
            for one, first, last in zip(seen.segments, starts[:-1], starts[1:], strict=True)
        }
        return Division(
            lambda one, rows, held: parts[one.name],
            way,
            f"the largest load {imbalance(self.loads):.2f} x the mean",
        )

    def divide_objects(self, seen: PlanInput) -> Leaves:
        """SSTD: divide objects among the leaves of a quadtree over the circles."""
        own = nearest_columns(seen.rows)
        lon, lat = own.lon, own.lat
        circles = seen.rows._replace(
            region_kind=np.full(seen.rows.total, CIRCLE, np.uint8),
            box=circles_to_boxes(lon, lat, radii_of(seen.segments)),
        )
        sample = make_sample(*seen.objects, circles)
        sample = sample._replace(traits=assume_kind(sample, CKQ))
        return plan_qt(sample, self.workers)._replace(summary=NOTHING)


def radii_of(segments: Sequence[LiveSegment]) -> F64:
    """The current radius of every row's circle."""
    return np.concatenate([one.results.radius for one in segments])


def make_circle_sample(rows: SubscriptionRows, radius: F64, objects: Objects) -> CircleSample:
    """Make the sample that methods take of subscriptions and initial objects.

    Objects are at the centres of their cells, some hundred metres off at most.
    """
    own = nearest_columns(rows)
    lon, lat = own.lon, own.lat
    object_lon, object_lat = codes_to_points(objects.codes)
    return CircleSample(
        lon,
        lat,
        rows.k.astype(np.int32),
        radius,
        rows.literal_offsets,
        rows.literal_term,
        object_lon,
        object_lat,
        objects.term_offsets,
        objects.terms,
    )


def post_circles(rows: SubscriptionRows, circles: CircleIndex, workers: int) -> MapPosts:
    """Post each row under its least frequent terms, in the cells that its circle touches."""
    post_row, post_term = cover_posts(rows, counts_among_rows(rows))
    own = nearest_columns(rows)
    lon, lat = own.lon, own.lat
    boxes = circles_to_boxes(lon, lat, circles.radius)
    offsets, cells = cells_of_ranges(boxes_to_ranges(boxes), MAX_LEVEL - CELL_LEVEL, MOST_SCOPES)
    owner = circles.partition.owner % workers
    return MapPosts(post_row, post_term, owner, offsets, cells, CELL_LEVEL)


def rebalance_assignment(
    fresh: Assignment, former: I32, counted: F64, sample: CircleSample
) -> Assignment:
    """Balance an assignment by what workers were counted to cost.

    Overloaded workers hand some rows over. If the method's `fresh` assignment is clearly better by
    the same costs, it replaces the former one.
    """
    workers = fresh.workers
    cost = scale_costs(former, fresh.cost, counted)
    place = None
    if fresh.name in ("sop", "ps2"):  # they keep neighbours together
        place = points_to_curve(sample.lon, sample.lat)
    worker = hand_over(former, cost, workers, place)
    loads, others = (sum_loads(by, cost, workers) for by in (worker, fresh.worker))
    if imbalance(others) < CLEARLY * imbalance(loads):
        worker, loads = fresh.worker, others
    return fresh._replace(worker=worker, cost=cost, loads=loads)


class MatchedSample(NamedTuple):
    """Sampled objects matched against every `step`-th row.

    `row` has the row of each match, and `postings` says how many postings one match stands for.
    """

    objects: Objects
    rows: SubscriptionRows
    circles: CircleIndex
    row: U32
    postings: float
    step: int


def match_sample(rows: SubscriptionRows, radius: F64, objects: Objects) -> MatchedSample:
    """Match some of the objects against some of the rows."""
    step = every_nth(rows.total, SAMPLED_ROWS)
    picked = np.arange(0, rows.total, step)
    some = map_columns(take_rows(rows, picked), read_only)
    circles = index_circles(some, radius[picked], one_part(some.total))
    chosen = np.arange(0, objects.total, every_nth(objects.total, SAMPLED_OBJECTS))
    objects = pick_objects(objects, chosen)
    lon, lat = codes_to_points(objects.codes)
    probe = make_probe(objects.codes, lon, lat, np.zeros(lon.size, np.int64), *objects[1:])
    segment = Segment(NEAREST, some, circles, None, *make_directory(some))
    found = find_near(probe, Target(segment, thresholds=radii_to_limits(read_only(radius[picked]))))
    postings = step * found.candidates / max(found.row.size, 1)
    return MatchedSample(objects, some, circles, found.row, postings, step)


def measure_owners(name: str, matched: MatchedSample, owner: I32, workers: int) -> PlanWork:
    """Measure the work of a plan that assigns rows to `owner`."""
    own = owner[:: matched.step]
    partition = RowPartition(workers, own, np.zeros(own.size, np.float32))
    circles = matched.circles._replace(partition=partition)
    posts = post_circles(matched.rows, circles, workers)
    sent, seconds = route_sample(posts, workers, matched.objects)
    return PlanWork(
        name,
        matched.objects.total,
        owner.size,
        sent,
        np.bincount(owner, minlength=workers),
        matched.postings * np.bincount(own[matched.row], minlength=workers),
        1e9 * seconds / max(matched.objects.total, 1),
    )


def choose_nearest(
    rows: SubscriptionRows,
    radius: F64,
    objects: Objects,
    owners: Mapping[str, I32],
    workers: int,
    prices: Prices,
    machines: Machines,
) -> PlanChoice:
    """Score `shared` and every assignment of rows; the cheapest wins."""
    matched = match_sample(rows, radius, objects)
    candidates = np.array([matched.postings * matched.row.size])
    shared = shared_work(matched.objects.total, rows.total, candidates)
    work = [measure_owners(name, matched, owner, workers) for name, owner in owners.items()]
    return choose_partition(shared, work, workers, prices, machines, BYTES_A_NEAREST)
