"""The planners of all kinds of subscription, one each, over one sample of the log."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewire.ingest.clock import BlockFacts
from placewire.model.subscriptions import BOOLEAN, NEAREST, RELEVANT, TRENDING, SubscriptionRows
from placewire.plans.boolean.planner import Planner
from placewire.plans.messages import BlockSummary, WorkerSummary
from placewire.plans.names import UNPLANNED, PlanNames
from placewire.plans.nearest.planner import NearPlanner
from placewire.plans.rebalance.holdings import Holdings
from placewire.plans.rebalance.rebalancer import Rebalancer, RebalanceRule
from placewire.plans.rebalance.signals import Signals
from placewire.plans.ref import BesideRef, PlanRef, RouteRef
from placewire.plans.relevant.planner import RelevantPlanner
from placewire.plans.sample.batch_queries import ask_trending
from placewire.plans.sample.sampler import Columns, Sampler
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


class Routes(NamedTuple):
    """How a batch's objects reach subscriptions: the fields of `BatchContext` that plans decide."""

    leaves: PlanRef | None
    routes: dict[int, RouteRef]
    beside: BesideRef | None


class Planners:
    """The plans in force, by kind."""

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
        self.coming: Planners | None = None  # of other workers, in force with the next commit
        self.sampler = sampler or Sampler(sample_events)
        self.signals = Signals(state, latest.signals)
        self.rebalancer = Rebalancer(rebalance, self.signals)
        self.boolean = Planner(
            state,
            names.boolean,
            workers,
            latest.leaf_plan,
            latest.key,
            self.sampler,
            self.rebalancer,
        )
        self.workers = self.boolean.workers
        self.holdings = Holdings(self.workers)
        self.older = Holdings(self.workers)  # of segments that go by a plan beside the one in force
        self.near = NearPlanner(
            state, names.nearest, self.workers, latest.row_plan("nearest"), latest.key, self.sampler
        )
        self.relevant = RelevantPlanner(
            state, names.relevant, self.workers, latest.row_plan("relevant"), self.sampler
        )
        self.near.rebalancer = self.relevant.rebalancer = self.rebalancer
        self.near.asked = any(entry.kind == NEAREST for entry in latest.segments)
        self.relevant.asked = any(entry.kind == RELEVANT for entry in latest.segments)

    def resized(self, workers: int, why: str, latest: Manifest) -> Planners:
        """Planners of another number of workers that go on with what these know."""
        plans: dict[str, PlanEntry] = {
            "boolean": LeafPlanEntry(
                name=self.boolean.name,
                version=self.boolean.version,
                asked=self.boolean.asked,
                by_hand=self.boolean.by_hand,
            ),
            "nearest": RowPlanEntry(name=self.near.name, version=self.near.version),
            "relevant": RowPlanEntry(name=self.relevant.name, version=self.relevant.version),
        }
        former = msgspec.structs.replace(latest, plans=plans, signals=None)
        coming = Planners(
            self.state,
            self.names,
            workers,
            former,
            self.sampler.sample_events,
            self.rebalance,
            self.sampler,
        )
        coming.know_machines(self.boolean.machines)
        coming.boolean.changer.retained = self.boolean.changer.retained
        coming.boolean.sized = why
        return coming

    def prepare(self, batch: int, live: LiveSegments, now_us: int) -> NextPlanEntry:
        """Make the plans before they are in force, and return their entry for the manifest."""
        self.near.prepare(batch, live, now_us)
        self.relevant.prepare(batch, live, now_us)
        file = self.boolean.prepare(
            batch, live.of_kind(BOOLEAN), partial(ask_trending, live.of_kind(TRENDING))
        )
        files = [self.near.rule_file, self.relevant.rule_file]
        if self.near.leaves is not None:
            files += [self.near.leaves.file, self.near.leaves.live]
        return NextPlanEntry(
            why=self.boolean.sized,
            file=file,
            workers=self.workers,
            files=[name for name in files if name],
        )

    def refill(self, latest: Manifest, retained: Callable[[int], Columns]) -> None:
        """Let a plan that is still to be made begin with what the state retains."""
        if self.waiting and latest.batch >= 0 and not self.sampler.enough:
            self.sampler.refill(retained)

    @property
    def waiting(self) -> bool:
        """Whether a plan of subscriptions that there are is still to be made."""
        others = (self.near, self.relevant)
        return self.boolean.waits or any(p.asked and p.waits for p in others)

    def know_machines(self, count: Callable[[], int]) -> None:
        """How many machines the workers run on, as `auto` will ask."""
        self.boolean.machines = self.near.machines = self.relevant.machines = count

    @property
    def next_file(self) -> str:
        """The file of a boolean plan for all that comes into force with the next commit."""
        if self.coming is not None:
            ref = self.coming.boolean.ref
            return "" if ref is None else ref.file
        later = self.boolean.next
        return later.file if later is not None and not later.beside else ""

    @property
    def sampling(self) -> bool:
        """Whether all objects of the next batch are wanted for the sample."""
        return self.boolean.sampling or self.near.sampling or self.relevant.sampling

    @property
    def planned(self) -> bool:
        """Whether any kind has a plan that a sample is for."""
        names = {self.boolean.name, self.near.name, self.relevant.name}
        return not names <= set(UNPLANNED) or bool(self.boolean.asked)

    def observe(
        self, blocks: list[BlockSummary], facts: list[BlockFacts], now_us: int | None
    ) -> None:
        """Take the objects of a batch into the sample."""
        self.sampler.tell_time(now_us)
        for block, fact in zip(blocks, facts, strict=True):
            self.sampler.observe(fact.arrays, block.events, self.sampling)

    def routes(self, batch: int, live: LiveSegments) -> Routes:
        """The routes of the next batch."""
        leaves = self.boolean.route(batch, live.of_kind(BOOLEAN))
        found: dict[int, RouteRef | None] = {
            BOOLEAN: leaves,
            NEAREST: self.near.route(batch, live.of_kind(NEAREST)),
            RELEVANT: self.relevant.route(batch, live.of_kind(RELEVANT)),
        }
        return Routes(
            leaves,
            {kind: route for kind, route in found.items() if route is not None},
            None if self.boolean.beside is None else self.boolean.beside.ref,
        )

    @property
    def scans(self) -> frozenset[int]:
        """The kinds that match by scanning."""
        names = {BOOLEAN: self.boolean.name, NEAREST: self.near.name, RELEVANT: self.relevant.name}
        return frozenset(kind for kind, name in names.items() if name == "scan")

    def partition(self, kind: int, rows: SubscriptionRows, held: Any) -> Any:
        """How rows are divided among workers, None if they are not."""
        if kind == NEAREST:
            return self.near.deal(rows)
        return self.relevant.deal(rows, held.theta) if kind == RELEVANT else None

    def release(self, live: LiveSegment, rows: NDArray[np.int64]) -> None:
        """Rows have ended: they are nobody's load any more."""
        if live.segment.kind == NEAREST:
            self.near.release(live, rows)

    @property
    def tallying(self) -> bool:
        """Whether workers have to count what they do by leaf."""
        return self.rebalancer.active and self.boolean.ref is not None

    @property
    def lining(self) -> bool:
        """Whether they have to sum it up along columns and rows as well."""
        leaves = self.boolean.leaves
        return self.tallying and leaves is not None and self.rebalancer.wants_lines(leaves)

    def hear(self, batch: int, workers: list[WorkerSummary], live: LiveSegments) -> None:
        """Take in what the workers of a batch tell."""
        leaves = self.boolean.leaves if self.tallying else None
        held: dict[int, NDArray[np.float64]] = {}
        by_leaf = None
        if leaves is not None and not self.boolean.waits:
            boolean = live.of_kind(BOOLEAN)
            own = self.boolean.own(boolean)
            held[BOOLEAN], by_leaf = self.holdings.count_boolean(batch, leaves, own)
            beside = self.boolean.beside
            if beside is not None:
                older = self.older.count_boolean(batch, beside.leaves, beside.among(boolean))
                held[BOOLEAN] = held[BOOLEAN] + older.by_worker
        if self.rebalancer.active:
            for planner in (self.near, self.relevant):
                if planner.deals:
                    some = live.of_kind(planner.kind)
                    held[planner.kind] = self.holdings.count_dealt(planner.kind, some)
            if self.near.leaves is not None:  # objects are divided: everybody has all
                total = sum(one.segment.rows.total - one.ended for one in live.of_kind(NEAREST))
                held[NEAREST] = np.full(self.workers, float(total))
            self.holdings.forget({one.name for one in live.segments})
        self.signals.observe(batch, workers, leaves, self.workers, held)
        if by_leaf is not None:
            self.signals.held = by_leaf

    def count_sent(self, blocks: list[BlockSummary]) -> None:
        """Note how many objects of a batch were sent to workers, by kind."""
        objects = sum(b.objects for b in blocks)
        if self.near.broadcasts:
            self.near.count_sent(sum(b.sent_by_kind.get(NEAREST, 0) for b in blocks), objects)
        self.relevant.count_sent(sum(b.sent_by_kind.get(RELEVANT, 0) for b in blocks), objects)

    def next_versions(
        self, batch: int, live: LiveSegments, now_us: int
    ) -> tuple[dict[str, PlanEntry], SignalsEntry]:
        """Make plans once enough was seen; return the manifest's entries, plans by kind."""
        for planner in (self.near, self.relevant):
            if live.swap_rewrites((planner.kind,)):
                planner.forget_map()
        near = self.near.next_version(batch, live, now_us)
        relevant = self.relevant.next_version(batch, live, now_us)
        # Last, since planning may take a merge over, whose index is of earlier thresholds.
        live.reindex_rows(batch)
        boolean = self.boolean.next_version(
            batch, live.of_kind(BOOLEAN), partial(ask_trending, live.of_kind(TRENDING))
        )
        signals = self.signals.save(batch, self.boolean.leaves if self.tallying else None)
        return {"boolean": boolean, "nearest": near, "relevant": relevant}, signals
