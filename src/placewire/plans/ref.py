"""A plan by the names of its files: what tasks carry, and open where they run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from placewire.model.errors import Unusable
from placewire.plans.cost.model import LoadModel, read_cost
from placewire.plans.leaves import NOTHING, Leaves, arrays_to_leaves, check_leaves, leaves_to_arrays
from placewire.plans.route.leaf_route import LeafRoute, RouteTables, make_tables
from placewire.plans.route.live_terms import CELL_LEVEL, MANNERS, LiveTables
from placewire.plans.route.protocol import Route
from placewire.plans.route.worker_map import WorkerMapRoute
from placewire.storage.arrays import map_arrays, open_arrays, write_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import RowPlanEntry


class RouteRef(Protocol):
    """The route of objects to subscriptions of one kind, by the names of its files."""

    @property
    def workers(self) -> int:
        """How many workers there are."""

    def open(self, root: str) -> Route:
        """The router, its tables mapped."""

    def parts(self, worker: int, parts: int) -> Sequence[int]:
        """Which parts of a segment's index a worker probes."""


class PlanRef(NamedTuple):
    """A plan version and what is live under it, as files of a state directory."""

    workers: int
    summary: str
    file: str
    live: str

    def open(self, root: str) -> LeafRoute:
        """The router, its tables mapped."""
        live = open_arrays(StateDir.at(root).file(self.live)).arrays
        return LeafRoute(self.workers, self.summary, self.tables(root), LiveTables(**live))

    def parts(self, worker: int, parts: int) -> Sequence[int]:
        """All of a segment: objects are divided, and subscriptions are not."""
        return range(parts)

    def tables(self, root: str) -> RouteTables:
        """The plan's part of the router."""
        plan = open_arrays(StateDir.at(root).file(self.file)).arrays
        return RouteTables(**{name: plan[f"route.{name}"] for name in RouteTables._fields})


class PreviousRef(NamedTuple):
    """The previous plan, and the segments that still use it."""

    plan: PlanRef
    segments: tuple[str, ...]


class PartitionRef(NamedTuple):
    """The route of objects to rows that are partitioned, as files.

    `map` is the map of what each worker holds, with cells of `level`. With `leaves`, objects are
    divided instead, and every worker has all rows.
    """

    workers: int
    root: str
    level: int
    map: str = ""
    leaves: PlanRef | None = None

    def open(self, root: str) -> Route:
        """Open the route, its tables mapped."""
        if self.leaves is not None:
            return self.leaves.open(self.root)
        words = open_arrays(StateDir.at(self.root).file(self.map)).arrays["words"]
        return WorkerMapRoute(self.workers, words, self.level)

    def parts(self, worker: int, parts: int) -> Sequence[int]:
        """The parts of a segment that a worker probes; surplus parts go round."""
        return range(parts) if self.leaves is not None else range(worker, parts, self.workers)


class SavedPlan(NamedTuple):
    """A plan and the key of its terms' hashes: under another key they are other terms.

    `cost` is what it was made by, None if nothing was measured for it.
    """

    leaves: Leaves
    key: tuple[int, int]
    cost: LoadModel | None = None


def write_plan(
    path: Path, leaves: Leaves, key: tuple[int, int], cost: LoadModel | None = None
) -> None:
    """Write a plan and its router tables to a new file."""
    arrays = {f"leaves.{name}": array for name, array in leaves_to_arrays(leaves).items()}
    arrays |= {f"route.{name}": array for name, array in make_tables(leaves)._asdict().items()}
    facts: dict[str, Any] = {
        "name": leaves.name,
        "workers": leaves.workers,
        "summary": leaves.summary,
        "key": key,
    }
    if cost is not None:
        facts["cost"] = cost._asdict()
    write_arrays(path, arrays, facts)


def read_plan(path: Path) -> SavedPlan:
    """The plan of a file that `write_plan` wrote; raises Unusable.

    The file is mapped again each time, because users may replace it.
    """
    try:
        file = map_arrays(path)
    except Unusable as error:
        raise Unusable(f"plan {path}: is not a plan that was saved: {error}") from None
    arrays = {
        name.removeprefix("leaves."): array
        for name, array in file.arrays.items()
        if name.startswith("leaves.")
    }
    try:
        k0, k1 = (int(half) for half in file.facts["key"])
        if not (0 <= k0 < 1 << 64 and 0 <= k1 < 1 << 64):
            raise ValueError("its key is not one of two 64-bit numbers")
        if file.facts["summary"] not in MANNERS:
            raise ValueError(f"its summary is unknown, got {file.facts['summary']!r}")
        leaves = arrays_to_leaves(
            file.facts["name"], file.facts["workers"], file.facts["summary"], arrays
        )
        check_leaves(leaves)
        cost = read_cost(file.facts["cost"]) if "cost" in file.facts else None
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise Unusable(f"plan {path}: is not a plan: {error}") from None
    return SavedPlan(leaves, (k0, k1), cost)


def route_of_entry(plan: RowPlanEntry, root: str) -> PartitionRef | None:
    """Return the route of a plan that partitions rows; None if objects stay in place."""
    if plan.leaves:
        leaves = PlanRef(plan.workers, NOTHING, plan.leaves, plan.live)
        return PartitionRef(plan.workers, root, 0, leaves=leaves)
    for file, level in ((plan.circles, CELL_LEVEL), (plan.terms, 0)):
        if file:
            return PartitionRef(plan.workers, root, level, file)
    return None
