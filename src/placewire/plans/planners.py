"""The planners of all kinds of subscriptions, which share one sample of the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from placewire.ingest.clock import BlockFacts
from placewire.model.arrays import F64, I64
from placewire.model.subscriptions import SubscriptionRows
from placewire.plans.boolean.planner import LeafPlanner
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.messages import BlockSummary, WorkerSummary
from placewire.plans.names import UNPLANNED, PlanNames
from placewire.plans.nearest.strategy import NearestStrategy
from placewire.plans.rebalance.rebalancer import Rebalancer, RebalanceRule
from placewire.plans.rebalance.signals import RowCounts, Signals
from placewire.plans.relevant.strategy import RelevantStrategy
from placewire.plans.route.leaf_route import PlanRef, PreviousRef, RouteRef
from placewire.plans.row_planner import RowPlanner
from placewire.plans.sample.sampler import Sampler
from placewire.segments.live import LiveSegments
from placewire.segments.live_segment import LiveSegment
from placewire.storage.layout import StateDir
from placewire.storage.manifest import (
    LeafPlanEntry,
    Manifest,
    NextPlanEntry,
    PlanEntry,
    RowPlanEntry,
    SignalsEntry,
)

USUAL_REBALANCE = RebalanceRule()
LEAF_PLAN = "boolean"  # the kind whose plan has leaves, in names and in the manifest
STRATEGIES = (NearestStrategy, RelevantStrategy)  # of the kinds whose rows may be partitioned


class Routes(NamedTuple):
    """The fields of `BatchContext` that plans decide: how objects reach subscriptions."""

    leaves: PlanRef | None
    routes: dict[int, RouteRef]
    previous: PreviousRef | None


class Planners:
    """The plans in force: `leaf` divides space and terms, those of `rows` partition rows."""

    def __init__(
        self,
        state: StateDir,
        names: PlanNames,
        workers: int | None,
        latest: Manifest,
        sample_events: int,
        rebalance: RebalanceRule = USUAL_REBALANCE,
        sampler: Sampler | None = None,
    ) -> None:
        self.state = state
        self.names = names
        self.rebalance = rebalance
        self.successor: Planners | None = None  # for other workers, in force with the next commit
        self.sampler = sampler or Sampler(sample_events)
        self.signals = Signals(state, latest.signals)
        self.rebalancer = Rebalancer(rebalance, self.signals)
        self.leaf = LeafPlanner(
            state,
            names.leaf,
            workers,
            latest.leaf_plan,
            latest.key,
            self.sampler,
            self.rebalancer,
        )
        self.workers = self.leaf.workers
        self.counts = RowCounts(self.workers)
        self.previous_counts = RowCounts(self.workers)  # of segments under the previous plan
        self.rows: dict[int, RowPlanner] = {
            strategy.kind: RowPlanner(
                state,
                getattr(names, strategy.name),
                strategy(self.workers),
                latest.row_plan(strategy.name),
                latest.key,
                self.sampler,
                self.rebalancer,
            )
            for strategy in STRATEGIES
        }
        for number, planner in self.rows.items():
            planner.needed = any(entry.kind == number for entry in latest.segments)

    @property
    def all(self) -> dict[int, LeafPlanner | RowPlanner]:
        """The planners by kind."""
        return {self.leaf.kind: self.leaf, **self.rows}

    def resized(self, workers: int, why: str, latest: Manifest) -> Planners:
        """Planners for another number of workers that start with what these know."""
        plans: dict[str, PlanEntry] = {
            planner.strategy.name: RowPlanEntry(name=planner.name, version=planner.version)
            for planner in self.rows.values()
        }
        plans[LEAF_PLAN] = LeafPlanEntry(
            name=self.leaf.name,
            version=self.leaf.version,
            asked=self.leaf.asked,
            by_hand=self.leaf.by_hand,
        )
        former = msgspec.structs.replace(latest, plans=plans, signals=None)
        successor = Planners(
            self.state,
            self.names,
            workers,
            former,
            self.sampler.sample_events,
            self.rebalance,
            self.sampler,
        )
        successor.set_machines(self.leaf.machines)
        successor.leaf.changer.retained = self.leaf.changer.retained
        successor.leaf.sized = why
        return successor

    def prepare(self, batch: int, live: LiveSegments, now_us: int) -> NextPlanEntry:
        """Make the plans before they are in force, and return their entry for the manifest."""
        for planner in self.rows.values():
            planner.prepare(batch, live, now_us)
        return NextPlanEntry(
            why=self.leaf.sized,
            file=self.leaf.prepare(batch, live),
            workers=self.workers,
            files=[name for planner in self.rows.values() for name in planner.files],
        )

    def assign_rest(self, batch: int, live: LiveSegments) -> None:
        """Assign rows that arrived for other workers while these plans were prepared."""
        for planner in self.rows.values():
            planner.assign_rest(batch, live)

    def refill(self, latest: Manifest, retained: Callable[[int], Objects]) -> None:
        """Start the sample of a plan that is still to be made with retained objects."""
        if self.waiting and latest.batch >= 0 and not self.sampler.enough:
            self.sampler.refill(retained)

    @property
    def waiting(self) -> bool:
        """Whether a plan of existing subscriptions is still to be made."""
        return any(planner.waiting for planner in self.all.values())

    def set_machines(self, count: Callable[[], int]) -> None:
        """Set how `auto` counts the machines that the workers run on."""
        for planner in self.all.values():
            planner.machines = count

    @property
    def next_file(self) -> str:
        """The file of a leaf plan for all segments that is in force with the next commit."""
        if self.successor is not None:
            ref = self.successor.leaf.ref
            return "" if ref is None else ref.file
        later = self.leaf.next
        return later.file if later is not None and not later.dual else ""

    @property
    def sampling(self) -> bool:
        """Whether all objects of the next batch are wanted for the sample."""
        return any(planner.sampling for planner in self.all.values())

    @property
    def planned(self) -> bool:
        """Whether any kind has a plan that a sample is for."""
        names = {planner.name for planner in self.all.values()}
        return not names <= set(UNPLANNED) or bool(self.leaf.asked)

    def observe(
        self, blocks: list[BlockSummary], facts: list[BlockFacts], now_us: int | None
    ) -> None:
        """Add the objects of a batch to the sample."""
        self.sampler.set_time(now_us)
        for block, fact in zip(blocks, facts, strict=True):
            self.sampler.observe(fact.arrays, block.events, self.sampling)

    def routes(self, batch: int, live: LiveSegments) -> Routes:
        """The routes of the next batch."""
        routes: dict[int, RouteRef] = {}
        for kind, planner in self.all.items():
            route = planner.route(batch, live.of_kind(kind))
            if route is not None:
                routes[kind] = route
        previous = self.leaf.previous
        return Routes(self.leaf.ref, routes, None if previous is None else previous.ref)

    @property
    def scans(self) -> frozenset[int]:
        """The kinds that match by scanning."""
        return frozenset(kind for kind, planner in self.all.items() if planner.name == "scan")

    def partition(self, kind: int, rows: SubscriptionRows, held: Any) -> Any:
        """Assign rows of a kind to workers; None if they are not partitioned."""
        return self.rows[kind].assign(rows, held) if kind in self.rows else None

    def release(self, live: LiveSegment, rows: I64) -> None:
        """Take rows that have ended off the loads of their workers."""
        if live.segment.kind in self.rows:
            self.rows[live.segment.kind].strategy.release(live, rows)

    @property
    def counts_leaves(self) -> bool:
        """Whether workers have to count their work by leaf."""
        return self.rebalancer.active and self.leaf.ref is not None

    @property
    def counts_lines(self) -> bool:
        """Whether workers have to sum their work along columns and rows as well."""
        leaves = self.leaf.leaves
        return self.counts_leaves and leaves is not None and self.rebalancer.wants_lines(leaves)

    def record_work(self, batch: int, workers: list[WorkerSummary], live: LiveSegments) -> None:
        """Record what the workers of a batch did and hold."""
        leaves = self.leaf.leaves if self.counts_leaves else None
        held: dict[int, F64] = {}
        by_leaf = None
        if leaves is not None and not self.leaf.pending:
            kind = self.leaf.kind
            segments = live.of_kind(kind)
            held[kind], by_leaf = self.counts.count_by_leaf(batch, leaves, self.leaf.own(segments))
            previous = self.leaf.previous
            if previous is not None:
                older = previous.select(segments)
                counted = self.previous_counts.count_by_leaf(batch, previous.leaves, older)
                held[kind] = held[kind] + counted.by_worker
        if self.rebalancer.active:
            for kind, planner in self.rows.items():
                some = live.of_kind(kind)
                if planner.partitions:
                    count = planner.strategy.count_held
                    held[kind] = self.counts.count_partitioned(some, count)
                elif planner.leaves is not None:  # objects are divided: every worker has all rows
                    total = sum(one.segment.rows.total - one.ended for one in some)
                    held[kind] = np.full(self.workers, float(total))
            self.counts.forget({one.name for one in live.segments})
        self.signals.observe(batch, workers, leaves, self.workers, held)
        if by_leaf is not None:
            self.signals.held = by_leaf

    def count_sent(self, blocks: list[BlockSummary]) -> None:
        """Count the objects of a batch that were sent to workers, by kind."""
        objects = sum(b.objects for b in blocks)
        for kind, planner in self.rows.items():
            planner.count_sent(sum(b.sent_by_kind.get(kind, 0) for b in blocks), objects)

    def next_versions(
        self, batch: int, live: LiveSegments, now_us: int
    ) -> tuple[dict[str, PlanEntry], SignalsEntry]:
        """Make or change plans that are due; return their manifest entries by kind."""
        for kind, planner in self.rows.items():
            if live.swap_rewrites((kind,)):
                planner.discard_map()
        entries: dict[str, PlanEntry] = {
            planner.strategy.name: planner.next_version(batch, live, now_us)
            for planner in self.rows.values()
        }
        # Last, since planning may finish a merge, whose index is of earlier thresholds.
        live.reindex_rows(batch)
        leaf_plan = self.leaf.next_version(batch, live)
        signals = self.signals.save(batch, self.leaf.leaves if self.counts_leaves else None)
        return {LEAF_PLAN: leaf_plan, **entries}, signals
