"""The strategy of a kind whose rows are partitioned among workers.

A strategy knows the methods of its kind: how rows are priced and assigned to workers, which workers
an object is sent to, and how assignments change when the load drifts. `RowPlanner` decides when.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.model.subscriptions import SubscriptionRows
from placewire.plans.cost.choice import Machines, PlanChoice
from placewire.plans.cost.model import Prices
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.leaves import Leaves
from placewire.plans.route.worker_map import MapPosts
from placewire.segments.live_segment import LiveSegment
from placewire.segments.segment import Segment

PartsOf = Callable[[LiveSegment, SubscriptionRows, Any], Any]  # segment, rows, results -> partition


class PlanInput(NamedTuple):
    """What a plan is made of: all rows of a kind, those that are live, and sampled objects."""

    segments: Sequence[LiveSegment]
    rows: SubscriptionRows
    alive: NDArray[np.int64]
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
    loads: NDArray[np.float64] | None = None  # of workers, where assignments follow them

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
    def count_held(self, segment: Segment) -> NDArray[np.float64]:
        """Count the rows f64[workers] of a segment that each worker has."""

    def is_undivided(self, segment: Segment) -> bool:
        """Whether a segment must be rewritten because its rows are not divided."""
        return False

    def release(self, live: LiveSegment, rows: NDArray[np.int64]) -> None:
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
    def divide(self, method: str, seen: PlanInput, counted: NDArray[np.float64] | None) -> Division:
        """Divide all rows by a method, or rebalance them by what workers were `counted` to cost."""

    def divide_objects(self, seen: PlanInput) -> Leaves:
        """Divide objects instead of rows; only for `object_methods`."""
        raise NotImplementedError

    def can_rebalance(self, method: str) -> bool:
        """Whether assignments of a method follow what workers were counted to cost."""
        return True
