"""The planner of a kind whose rows are partitioned among workers, each row to one or a few.

The plan is made once enough of the log was sampled and a subscription of the kind exists. Until
then rows are assigned by the hash of their id, or objects are matched where they are read. When
the load of workers drifts, rows are reassigned; segments are rewritten and swapped in by the next
commit. Some methods divide objects instead, and every worker has all rows.

`RowPlanner` decides when. The strategy of a kind knows its methods: how rows are priced and
assigned to workers, which workers an object is sent to, and how assignments follow the load.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from placewire.model.arrays import F64, I64
from placewire.model.subscriptions import SubscriptionRows, concat_rows
from placewire.plans.boolean.methods import memory_of_machine
from placewire.plans.cost.measures import Machines, PlanChoice, spread_workers
from placewire.plans.cost.model import Prices, calibrate
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.leaves import NOTHING, Leaves
from placewire.plans.names import UNPLANNED
from placewire.plans.rebalance.rebalancer import Rebalancer
from placewire.plans.route.leaf_route import PlanRef, write_plan
from placewire.plans.route.live_terms import LiveTerms
from placewire.plans.route.worker_map import MapPosts, PartitionRef, WorkerMap
from placewire.plans.sample.sampler import FEW, Sampler
from placewire.segments.compaction import divide_by
from placewire.segments.live import LiveSegments
from placewire.segments.live_segment import LiveSegment
from placewire.segments.segment import Segment, whole_rows
from placewire.storage.arrays import open_arrays, write_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import RowPlanEntry

PartsOf = Callable[[LiveSegment, SubscriptionRows, Any], Any]  # segment, rows, results -> partition


class PlanInput(NamedTuple):
    """What a plan is made of: all rows of a kind, those that are live, and sampled objects."""

    segments: Sequence[LiveSegment]
    rows: SubscriptionRows
    alive: I64
    objects: Objects


class Division(NamedTuple):
    """A new division of rows among workers: the partition of each segment, and two phrases."""

    parts_of: PartsOf
    way: str
    balance: str


class PartitionStrategy(ABC):
    """How one kind partitions its rows; `rule` assigns new rows once a plan was made.

    `map_key` names the map of what workers hold, in the manifest and in file names; `sent_key`
    names the count that objects sent are compared with.
    """

    kind: int
    name: str  # of the kind
    methods: Collection[str]
    object_methods: Collection[str] = ()  # divide objects; every worker has all rows
    map_key: str
    map_level: int  # of the map's cells, 0: one cell
    sent_key: str
    rule_type: Any  # has `to_arrays` and `from_arrays`
    rule: Any = None
    loads: F64 | None = None  # of workers, where assignments follow them

    def __init__(self, workers: int) -> None:
        self.workers = workers

    # Assignments.

    @abstractmethod
    def assign(self, rows: SubscriptionRows, held: Any) -> Any:
        """Assign new rows to workers by the rule, or by the hash of their ids without one."""

    @abstractmethod
    def count_parts(self, segment: Segment) -> int:
        """Count the parts that a segment's rows are divided into."""

    @abstractmethod
    def count_held(self, segment: Segment) -> F64:
        """Count the rows f64[workers] of a segment that each worker has."""

    def is_undivided(self, segment: Segment) -> bool:
        """Whether a segment must be rewritten because its rows are not divided."""
        return False

    def release(self, live: LiveSegment, rows: I64) -> None:
        """Take rows that have ended off the loads, if there are any."""
        return

    def refresh_loads(self, segments: Sequence[LiveSegment], now_us: int) -> None:
        """Recompute the loads after segments were merged, if there are any."""
        return

    # Routes.

    @abstractmethod
    def post_segment(self, segment: Segment) -> MapPosts:
        """List the keys of a segment in the map of what workers hold."""

    def count_offered(self, objects: int) -> int:
        """The count that objects sent are compared with, for so many objects of a batch."""
        return objects

    # Plans.

    @abstractmethod
    def choose(self, seen: PlanInput, prices: Prices, machines: Machines) -> PlanChoice:
        """Choose a method, or `shared`, by cost."""

    @abstractmethod
    def divide(self, method: str, seen: PlanInput, counted: F64 | None) -> Division:
        """Divide all rows by a method, or rebalance them by what workers were `counted` to cost."""

    def divide_objects(self, seen: PlanInput) -> Leaves:
        """Divide objects instead of rows; only for `object_methods`."""
        raise NotImplementedError

    def can_rebalance(self, method: str) -> bool:
        """Whether assignments of a method follow what workers were counted to cost."""
        return True


MAX_BACKOFF = 64


class RowPlanner:
    """Keeps the plan of one kind, and the map of what each worker holds."""

    def __init__(
        self,
        state: StateDir,
        name: str,
        strategy: PartitionStrategy,
        saved: RowPlanEntry,
        key: tuple[int, int],
        sampler: Sampler,
        rebalancer: Rebalancer | None = None,
    ) -> None:
        self.state = state
        self.name = name
        self.strategy = strategy
        self.kind = strategy.kind
        self.workers = strategy.workers
        self.key = key
        self.sampler = sampler
        self.rebalancer = rebalancer
        self.machines: Callable[[], int] = lambda: 1
        self.needed = False  # whether there are subscriptions of the kind
        self.why = ""
        self.made: int | None = None  # the batch at whose end the plan was made, in this run
        self.method = "shared" if name == "auto" else name
        self.version = 1 if name in UNPLANNED else 0
        self.pending = name not in UNPLANNED  # still without a sample, or without a subscription
        self.backoff = 1  # factor of the usual pause before rows are reassigned again
        self.rule_file = ""
        self.leaves: PlanRef | None = None  # of a method that divides objects
        self.map = WorkerMap()
        self.map_file = ""
        self._mapped: set[str] = set()  # names of the segments in the map
        self.sent = self.offered = 0  # objects sent, and the count to compare them with
        self._resume(saved)

    # The manifest.

    def _resume(self, saved: RowPlanEntry) -> None:
        """Resume the plan of the last commit if it has the same name and number of workers.

        Versions continue from the last one in any case.
        """
        if saved.name != self.name or saved.workers != self.workers:
            same = saved.name == self.name and self.name in UNPLANNED
            self.version = max(self.version, saved.version + (not same))
            return
        self.version, self.pending = saved.version, saved.waits
        self.method, self.why = saved.method, saved.why
        self.sent, self.offered = saved.sent, getattr(saved, self.strategy.sent_key)
        self.rule_file = saved.rule
        if self.rule_file:
            arrays = open_arrays(self.state.file(self.rule_file)).arrays
            self.strategy.rule = self.strategy.rule_type.from_arrays(self.method, arrays)
        if saved.loads:
            self.strategy.loads = np.array(saved.loads)
        if saved.leaves:
            self.leaves = PlanRef(self.workers, NOTHING, saved.leaves, saved.live)

    def entry(self) -> RowPlanEntry:
        """Return the plan's entry for the manifest."""
        loads = self.strategy.loads if self.strategy.rule is not None else None
        own = {self.strategy.sent_key: self.offered, self.strategy.map_key: self.map_file}
        return msgspec.structs.replace(
            RowPlanEntry(
                name=self.name,
                method=self.method,
                workers=self.workers,
                version=self.version,
                why=self.why,
                waits=self.pending,
                made=self.made,
                rule=self.rule_file,
                loads=[] if loads is None else loads.tolist(),
                leaves="" if self.leaves is None else self.leaves.file,
                live="" if self.leaves is None else self.leaves.live,
                sent=self.sent,
            ),
            **own,
        )

    @property
    def files(self) -> list[str]:
        """The files of a plan that was prepared."""
        leaves = () if self.leaves is None else (self.leaves.file, self.leaves.live)
        return [name for name in (self.rule_file, *leaves) if name]

    # Batches.

    @property
    def sampling(self) -> bool:
        """Whether all objects of the next batch are wanted for the sample.

        `auto` samples once there is a subscription of the kind, any other plan from the start.
        """
        wanted = self.needed or self.name != "auto"
        return self.pending and wanted and not self.sampler.enough

    @property
    def waiting(self) -> bool:
        """Whether the plan of existing subscriptions is still to be made."""
        return self.needed and self.pending

    @property
    def partitions(self) -> bool:
        """Whether rows are partitioned among workers."""
        return self.method in self.strategy.methods

    def assign(self, rows: SubscriptionRows, held: Any) -> Any:
        """Assign rows to workers; None if they are not partitioned."""
        return self.strategy.assign(rows, held) if self.partitions else None

    def route(self, batch: int, segments: Sequence[LiveSegment]) -> PartitionRef | None:
        """The route of the next batch; None if objects are matched where they are read."""
        level = self.strategy.map_level
        if self.leaves is not None:
            return PartitionRef(self.workers, self.state.name, level, leaves=self.leaves)
        if not self.partitions or not segments:
            return None
        self._update_map(batch, segments)
        return PartitionRef(self.workers, self.state.name, level, self.map_file)

    def _update_map(self, batch: int, segments: Sequence[LiveSegment]) -> None:
        """Add new segments to the map, and write it if it changed."""
        fresh = [live for live in segments if live.name not in self._mapped]
        if not fresh:
            return
        post = self.strategy.post_segment
        if self._mapped and not self.map.crowded:
            for live in fresh:
                self.map.add(post(live.segment))
        if not self._mapped or self.map.crowded:
            self.map.rebuild([post(live.segment) for live in segments])
        self._mapped = {live.name for live in segments}
        self.map_file = self.state.new_name(batch, self.strategy.map_key)
        write_arrays(self.state.file(self.map_file), {"words": self.map.words})

    def discard_map(self) -> None:
        """Rebuild the map before the next batch, since segments were rewritten."""
        self._mapped = set()

    def count_sent(self, sent: int, objects: int) -> None:
        """Count the objects of a batch that were sent to workers."""
        if self.partitions and self.map_file:
            self.sent += sent
            self.offered += self.strategy.count_offered(objects)

    # Plans.

    def prepare(self, batch: int, live: LiveSegments, now_us: int) -> None:
        """Make the plan before it is in force."""
        self.needed = bool(live.of_kind(self.kind))
        if self.waiting and self.sampler.enough:
            self._plan(batch, live, now_us, ahead=True)

    def next_version(self, batch: int, live: LiveSegments, now_us: int) -> RowPlanEntry:
        """Make the plan once enough was sampled, or rebalance it; returns its manifest entry."""
        self.needed = bool(live.of_kind(self.kind))
        counted = self._detect_drift() if self.needed else None
        if (self.waiting and self.sampler.enough) or counted is not None:
            self._plan(batch, live, now_us, counted, ahead=counted is not None)
        elif self.partitions and any(
            self.strategy.is_undivided(one.segment) for one in live.of_kind(self.kind)
        ):
            # They come from a run under another plan.
            live.wait()
            self._rewrite(batch, live, live.of_kind(self.kind), self._assign_segment)
        self.strategy.refresh_loads(live.of_kind(self.kind), now_us)
        return self.entry()

    def assign_rest(self, batch: int, live: LiveSegments) -> None:
        """Assign rows that arrived for another number of workers while this plan was prepared."""
        if self.strategy.rule is None:
            return
        live.wait()
        rest = [
            one
            for one in live.of_kind(self.kind)
            if self.strategy.count_parts(one.segment) != self.workers
        ]
        if rest:
            self._rewrite(batch, live, rest, self._assign_segment)

    def _assign_segment(self, live: LiveSegment, rows: SubscriptionRows, held: Any) -> Any:
        return self.assign(rows, held)

    def _rewrite(
        self,
        batch: int,
        live: LiveSegments,
        segments: Sequence[LiveSegment],
        parts_of: PartsOf,
        ahead: bool = False,
    ) -> None:
        """Rewrite segments with their rows divided; `ahead`: swapped in by the next commit."""
        live.hand_over(batch, segments, divide_by(parts_of))
        if not ahead:
            live.swap_rewrites((self.kind,))
            self.discard_map()

    def _detect_drift(self) -> F64 | None:
        """What the workers cost, if that was uneven long enough to reassign rows.

        Each time the next pause is twice as long.
        """
        if self.rebalancer is None or not self.rebalancer.active or not self.partitions:
            return None
        planned = not self.pending and self.workers > 1
        known = self.sampler.objects.seen >= FEW or self.rebalancer.rule.eager
        if not planned or not known or not self.strategy.can_rebalance(self.method):
            return None
        since = -1 if self.made is None else self.made
        counted = self.rebalancer.detect_row_drift(self.kind, since, self.backoff, self.workers)
        if counted is not None:
            self.backoff = min(2 * self.backoff, MAX_BACKOFF)
        return counted

    def _plan(
        self,
        batch: int,
        live: LiveSegments,
        now_us: int,
        counted: F64 | None = None,
        ahead: bool = False,
    ) -> None:
        """Make the plan from the sample, or rebalance it by what workers were `counted` to cost.

        Made `ahead` it is in force with the next commit.
        """
        live.wait()
        segments = live.of_kind(self.kind)
        if not segments:  # the merge left none
            return
        chooses = self.name == "auto" and self.pending
        # A plan that is prepared for other workers has its version from the start.
        self.version += not (ahead and self.pending)
        self.pending, self.made = False, batch
        seen = self._gather(segments, now_us)
        if self.method in self.strategy.object_methods:
            self._divide_objects(batch, seen)
            return
        if chooses:
            machines = spread_workers(self.workers, self.machines(), memory_of_machine())
            self.method, self.why = self.strategy.choose(seen, calibrate().prices, machines)
            if not self.partitions:
                return
        division = self.strategy.divide(self.method, seen, counted)
        self.rule_file = self.state.new_name(batch, "rule")
        write_arrays(self.state.file(self.rule_file), self.strategy.rule.to_arrays())
        self._rewrite(batch, live, segments, division.parts_of, ahead)
        if not chooses:
            self.why = (
                f"{seen.alive.size} subscriptions {division.way} by {self.sampler.source},"
                f" {division.balance}"
            )

    def _gather(self, segments: Sequence[LiveSegment], now_us: int) -> PlanInput:
        """All rows of the kind with the sampled objects."""
        rows = concat_rows([whole_rows(one.segment) for one in segments])
        ended = np.concatenate([one.ended_mask() for one in segments])
        alive = np.flatnonzero(~ended & (rows.expires_us > now_us))
        return PlanInput(segments, rows, alive, self.sampler.objects.in_order())

    def _divide_objects(self, batch: int, seen: PlanInput) -> None:
        """Write the leaves among which objects are divided."""
        leaves = self.strategy.divide_objects(seen)
        file, live = self.state.new_name(batch, "plan"), self.state.new_name(batch, "live")
        write_plan(self.state.file(file), leaves, self.key)
        write_arrays(self.state.file(live), LiveTerms(leaves).tables._asdict())
        self.leaves = PlanRef(self.workers, NOTHING, file, live)
        self.why = f"{leaves.total} leaves, made of {self.sampler.source}"
