"""The plan of `nearest` subscriptions: who has which of them, or where objects go to meet all.

Under `kop`, `sop`, `dkm` and `ps2` subscriptions are dealt out to workers, each to one, and objects
go to every worker that may need them; new ones join by the method's rule. Under `sstd` all workers
have all of them, and objects are divided. A plan is made once enough of the log was seen; until
then subscriptions are dealt out by the hash of their id, or objects stay where they are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.space.cells import codes_to_points
from placewire.kernels.space.circles import circles_to_boxes
from placewire.kernels.space.z_curve import points_to_curve
from placewire.kinds.nearest.index import RowPartition
from placewire.kinds.nearest.rows import read_points
from placewire.model.regions import CIRCLE
from placewire.model.subscriptions import NEAREST, SubscriptionRows, concat_rows, take_rows
from placewire.plans.boolean.methods import memory_of_machine
from placewire.plans.boolean.qt import plan_qt
from placewire.plans.cost.calibrate import calibrate
from placewire.plans.cost.choice import spread_workers
from placewire.plans.cost.measures import Objects
from placewire.plans.leaves import NOTHING, Leaves
from placewire.plans.nearest.choice import choose_near
from placewire.plans.nearest.methods import (
    NEAREST_METHODS,
    Assignment,
    BallSample,
    Rule,
    arrays_to_rule,
    assign_new,
    release,
    rule_to_arrays,
)
from placewire.plans.rebalance.adjustment import sum_loads
from placewire.plans.rebalance.handover import hand_over, scale_costs
from placewire.plans.ref import NearRef, PlanRef, write_plan
from placewire.plans.route.live_terms import LiveTerms
from placewire.plans.route.radius_route import LiveCircles
from placewire.plans.row_planner import DealingPlanner
from placewire.plans.sample.questions import assume_kind
from placewire.plans.sample.sample import CKQ, make_sample
from placewire.plans.sample.sampler import Sampler
from placewire.segments.compaction import divide_by
from placewire.segments.live import LiveSegments
from placewire.segments.live_segment import LiveSegment
from placewire.segments.segment import whole_rows
from placewire.storage.arrays import open_arrays, write_arrays
from placewire.storage.layout import StateDir

CLEARLY = 0.9
AUTO = ("kop", "dkm")  # what `auto` holds against `shared`


class NearPlanner(DealingPlanner):
    """Deals `nearest` subscriptions out, and keeps the map of what each worker has."""

    methods = NEAREST_METHODS
    kind = NEAREST

    def __init__(
        self,
        state: StateDir,
        name: str,
        workers: int,
        saved: dict[str, Any],
        key: tuple[int, int],
        sampler: Sampler,
    ) -> None:
        super().__init__(state, name, workers, sampler)
        self.key = key
        self.loads = np.zeros(workers)
        self.rule: Rule | None = None
        self.leaves: PlanRef | None = None
        self.circles = LiveCircles(workers)
        self.circles_file = ""
        self._known: set[str] = set()  # segments whose circles the map has
        self._counted: set[str] = set()  # segments whose rows are in the loads
        self.sent = self.broadcast = 0  # objects to workers, and what a broadcast would have sent
        if self.goes_on(saved):
            self._resume(saved)

    def _resume(self, saved: dict[str, Any]) -> None:
        """Go on with the rule, the loads and the leaves of the last commit."""
        self.sent, self.broadcast = saved.get("sent", 0), saved.get("broadcast", 0)
        if self.rule_file:
            self.loads = np.array(saved["loads"])
            self.rule = arrays_to_rule(
                self.method, open_arrays(self.state.file(self.rule_file)).arrays
            )
        if saved.get("leaves"):
            self.leaves = PlanRef(self.workers, NOTHING, saved["leaves"], saved["live"])

    @property
    def broadcasts(self) -> bool:
        """Whether objects go to every worker that may need them."""
        return self.deals and bool(self.circles_file)

    def deal(self, rows: SubscriptionRows) -> RowPartition | None:
        """Who gets the batch's new rows; None when nothing is dealt out."""
        if not self.deals:
            return None
        if self.rule is None:
            owner = (rows.id_hash % np.uint64(self.workers)).astype(np.int32)
            return RowPartition(self.workers, owner, np.zeros(rows.total, np.float32))
        lon, lat, _ = read_points(rows)
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

    def release(self, live: LiveSegment, rows: NDArray[np.int64]) -> None:
        """Rows have ended: their workers have less to do."""
        circles = live.segment.index
        if (
            self.rule is not None
            and circles is not None
            and circles.partition.parts == self.workers
        ):
            self.loads = release(
                self.loads,
                circles.partition.owner[rows],
                circles.partition.cost[rows].astype(np.float64),
            )

    def route(self, batch: int, segments: Sequence[LiveSegment]) -> NearRef | None:
        """The route of the next batch; None when objects stay where they are read."""
        root = self.state.name
        if self.leaves is not None:
            return NearRef(self.workers, root, leaves=self.leaves)
        if not self.deals or not segments:
            return None
        self._follow(batch, segments)
        return NearRef(self.workers, root, circles=self.circles_file)

    def _follow(self, batch: int, segments: Sequence[LiveSegment]) -> None:
        """Bring the map of circles up to date, and write it if it changed."""
        fresh = [live for live in segments if live.name not in self._known]
        if not fresh:
            return
        if self._known and not self.circles.crowded:
            for live in fresh:
                self.circles.add(live.segment.rows, live.segment.index)
        if not self._known or self.circles.crowded:
            self.circles.rebuild((live.segment.rows, live.segment.index) for live in segments)
        self._known = {live.name for live in segments}
        self.circles_file = self.state.new_name(batch, "balls")
        write_arrays(self.state.file(self.circles_file), {"words": self.circles.words})

    def _settle_loads(self, live: LiveSegments, now_us: int) -> None:
        """Take the loads anew where segments were merged: rows that expired went with them."""
        names = {one.name for one in live.of_kind(NEAREST)}
        merged, self._counted = not self._counted <= names, names
        if self.rule is None or not merged:
            return
        self.loads = np.zeros(self.workers)
        for one in live.of_kind(NEAREST):
            if one.segment.index.partition.parts == self.workers:
                deal = one.segment.index.partition
                alive = ~one.ended_mask() & (one.segment.rows.expires_us > now_us)
                self.loads += np.bincount(deal.owner[alive], deal.cost[alive], self.workers)

    def count_sent(self, sent: int, objects: int) -> None:
        """Note how many objects were sent, and how many a plain broadcast would have sent."""
        self.sent += sent
        self.broadcast += objects * self.workers

    def forget_map(self) -> None:
        """Segments were dealt out anew: the map of circles has to be made anew, too."""
        self._known = set()

    def deal_rest(self, batch: int, live: LiveSegments) -> None:
        """RowPartition out what came for another number of workers while the plan was still to
        come."""
        if self.rule is None:
            return
        live.wait()
        rest = [
            one
            for one in live.of_kind(NEAREST)
            if one.segment.index.partition.parts != self.workers
        ]
        if rest:
            deals = {one.name: self.deal(whole_rows(one.segment)) for one in rest}
            live.hand_over(batch, rest, divide_by(lambda one, rows, held: deals[one.name]))
            live.swap_rewrites((NEAREST,))

    def prepare(self, batch: int, live: LiveSegments, now_us: int) -> None:
        """Make the plan before it is in force."""
        self.asked = bool(live.of_kind(NEAREST))
        if self.waits and self.sampler.enough:
            self._plan(batch, live, now_us, ahead=True)

    def next_version(self, batch: int, live: LiveSegments, now_us: int) -> dict[str, Any]:
        """The plan's entry for the manifest: made once enough was seen, and then dealt anew."""
        self.asked = bool(live.of_kind(NEAREST))
        counted = self.drifted() if self.asked else None
        if (self.waits and self.sampler.enough) or counted is not None:
            self._plan(batch, live, now_us, counted, ahead=counted is not None)
        self._settle_loads(live, now_us)
        entry = self.entry()
        if self.broadcast:
            entry |= {"sent": self.sent, "broadcast": self.broadcast}
        if self.rule is not None:
            entry["loads"] = self.loads.tolist()
        if self.leaves is not None:
            entry |= {"leaves": self.leaves.file, "live": self.leaves.live}
        if self.circles_file:
            entry["balls"] = self.circles_file
        return entry

    def _plan(
        self,
        batch: int,
        live: LiveSegments,
        now_us: int,
        counted: NDArray[np.float64] | None = None,
        ahead: bool = False,
    ) -> None:
        """Make the plan of what was seen, or level it by what the workers were counted to do.

        Made `ahead` it comes into force with the next commit.
        """
        if not self.asked:
            return
        live.wait()
        near = live.of_kind(NEAREST)
        if not near:  # the merge has left none
            return
        chooses = self.name == "auto" and self.waits
        # One that is made before its workers come has had its version from the start.
        self.version += not (ahead and self.waits)
        self.waits, self.made = False, batch
        codes, term_offsets, terms = self.sampler.objects.in_order()
        rows = concat_rows([whole_rows(one.segment) for one in near])
        radius = np.concatenate([one.results.radius for one in near])
        if self.name == "sstd":
            self._divide_objects(batch, codes, term_offsets, terms, rows, radius)
            return
        ended = np.concatenate([one.ended_mask() for one in near])
        alive = np.flatnonzero(~ended & (rows.expires_us > now_us))
        rows_alive = take_rows(rows, alive)
        sample = ball_sample(rows_alive, radius[alive], codes, term_offsets, terms)
        candidates = AUTO if chooses else (self.method,)
        assignments = {name: NEAREST_METHODS[name](sample, self.workers) for name in candidates}
        if chooses:
            self.method, self.why = choose_near(
                rows_alive,
                radius[alive],
                Objects(codes, term_offsets, terms),
                {name: assignment.worker for name, assignment in assignments.items()},
                self.workers,
                calibrate().prices,
                spread_workers(self.workers, self.machines(), memory_of_machine()),
            )
            if self.method not in assignments:
                return
        assignment = assignments[self.method]
        way = "dealt out"
        deals = [one.segment.index.partition for one in near]
        if counted is not None and all(deal.parts == self.workers for deal in deals):
            former = np.concatenate([deal.owner for deal in deals])[alive]
            assignment = level_assignment(assignment, former, counted, sample)
            way = f"levelled, {int((assignment.worker != former).sum())} handed over"
        self.rule, self.loads = assignment.rule, assignment.loads
        self.rule_file = self.state.new_name(batch, "rule")
        write_arrays(self.state.file(self.rule_file), rule_to_arrays(assignment.rule))
        owner = np.zeros(rows.total, np.int32)
        cost = np.zeros(rows.total, np.float32)
        owner[alive], cost[alive] = assignment.worker, assignment.cost
        starts = np.cumsum([0, *(one.segment.rows.total for one in near)])
        anew = {
            one.name: RowPartition(self.workers, owner[first:last], cost[first:last])
            for one, first, last in zip(near, starts[:-1], starts[1:], strict=True)
        }
        live.hand_over(batch, near, divide_by(lambda one, rows, held: anew[one.name]))
        if not ahead:
            live.swap_rewrites((NEAREST,))
            self.forget_map()
        if not chooses:
            self.why = (
                f"{alive.size} subscriptions {way} by {self.sampler.source},"
                f" the largest load {worst_of(self.loads):.2f} x the mean"
            )

    def _divide_objects(
        self,
        batch: int,
        codes: NDArray[np.uint32],
        term_offsets: NDArray[np.int64],
        terms: NDArray[np.uint64],
        rows: SubscriptionRows,
        radius: NDArray[np.float64],
    ) -> None:
        """SSTD's way: a tree of leaves among which objects are divided."""
        lon, lat, _ = read_points(rows)
        circles = rows._replace(
            region_kind=np.full(rows.total, CIRCLE, np.uint8),
            box=circles_to_boxes(lon, lat, radius),
        )
        sample = make_sample(codes, term_offsets, terms, circles)
        sample = sample._replace(traits=assume_kind(sample, CKQ))
        leaves: Leaves = plan_qt(sample, self.workers)._replace(summary=NOTHING)
        file, live = self.state.new_name(batch, "plan"), self.state.new_name(batch, "live")
        write_plan(self.state.file(file), leaves, self.key)
        write_arrays(self.state.file(live), LiveTerms(leaves).tables._asdict())
        self.leaves = PlanRef(self.workers, NOTHING, file, live)
        self.why = f"{leaves.total} leaves, made of {self.sampler.source}"


def level_assignment(
    fresh: Assignment,
    former: NDArray[np.int32],
    counted: NDArray[np.float64],
    sample: BallSample,
) -> Assignment:
    """An assignment that is level by what was counted.

    Either workers hand some subscriptions over, or all are dealt out as the method would have it
    now: the latter if by the counts that is clearly better.
    """
    workers = fresh.workers
    cost = scale_costs(former, fresh.cost, counted)
    place = None
    if fresh.name in ("sop", "ps2"):  # they keep neighbours together
        place = points_to_curve(sample.lon, sample.lat)
    worker = hand_over(former, cost, workers, place)
    loads, others = (sum_loads(by, cost, workers) for by in (worker, fresh.worker))
    if worst_of(others) < CLEARLY * worst_of(loads):
        worker, loads = fresh.worker, others
    return fresh._replace(worker=worker, cost=cost, loads=loads)


def ball_sample(
    rows: SubscriptionRows,
    radius: NDArray[np.float64],
    codes: NDArray[np.uint32],
    term_offsets: NDArray[np.int64],
    terms: NDArray[np.uint64],
) -> BallSample:
    """Subscriptions and initial objects as the methods take them.

    Objects are at the middles of their cells, some hundred metres off at most.
    """
    lon, lat, _ = read_points(rows)
    object_lon, object_lat = codes_to_points(codes)
    return BallSample(
        lon,
        lat,
        rows.k.astype(np.int32),
        radius,
        rows.literal_offsets,
        rows.literal_term,
        object_lon,
        object_lat,
        term_offsets,
        terms,
    )


def worst_of(loads: NDArray[np.float64]) -> float:
    """The largest load, the mean being 1."""
    return float(loads.max() / loads.mean()) if loads.any() else 1.0
