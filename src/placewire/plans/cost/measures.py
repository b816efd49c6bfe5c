"""Measure a plan on given data: copies, dropped objects, and the load of each worker."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kinds.boolean.index import counts_among_rows, cover_posts
from placewire.model.subscriptions import SubscriptionRows, lengths_to_offsets
from placewire.plans.cost.model import CostModel
from placewire.plans.kernels.owners import (
    NO_WORKER,
    RouteTables,
    owners_to_work,
    owners_to_workers,
    rows_to_holders,
)
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.leaves import Leaves
from placewire.plans.route.leaf_route import LeafRoute, Owners, make_tables
from placewire.plans.route.live_terms import LeafMap, LiveTerms, make_leaf_map
from placewire.plans.sample.sample import (
    NearPosts,
    Sample,
    cells_of_boxes,
    count_near,
    note_posts,
)


class PlanWork(NamedTuple):
    """The work of a plan with sampled objects; arrays have an entry for each worker."""

    name: str
    objects: int
    subscriptions: int
    sent: NDArray[np.floating[Any] | np.integer[Any]]
    held: NDArray[np.floating[Any] | np.integer[Any]]
    candidates: NDArray[np.floating[Any] | np.integer[Any]]
    route_ns: float


def shared_work(objects: int, subscriptions: int, candidates: NDArray[np.float64]) -> PlanWork:
    """The work of the plan `shared`, which sends nothing; `candidates` may be in any parts."""
    none = np.zeros(1)
    return PlanWork("shared", objects, subscriptions, none, none, candidates, 0.0)


class Measures(NamedTuple):
    """One plan measured; arrays have an entry a worker."""

    name: str
    leaves: int
    objects: int
    subscriptions: int
    sent: NDArray[np.int64]
    held: NDArray[np.int64]
    candidates: NDArray[np.float64]
    loads: NDArray[np.float64]
    dropped: int
    router_bytes: int
    route_ns: float
    follow_ns: float

    @property
    def objects_replicated(self) -> float:
        """Copies sent for each object."""
        return float(self.sent.sum()) / max(self.objects, 1)

    @property
    def subscriptions_replicated(self) -> float:
        """Copies held for each subscription."""
        return float(self.held.sum()) / max(self.subscriptions, 1)

    @property
    def workload(self) -> float:
        return float(self.loads.sum())

    @property
    def balance(self) -> float:
        """L_max / L_min."""
        least = float(self.loads.min())
        return float(self.loads.max()) / least if least > 0 else float("inf")


class Posted(NamedTuple):
    """Subscriptions as plans are measured with them; `near` says how many are near an object."""

    rows: SubscriptionRows
    post_row: NDArray[np.uint32]
    post_offsets: NDArray[np.int64]
    post_term: NDArray[np.uint64]
    near: NearPosts


def post_rows(rows: SubscriptionRows, *, near: bool = True) -> Posted:
    """Post subscriptions once, to measure several plans with them.

    Without `near` only holders can be found, not what objects would match.
    """
    post_row, post_term = cover_posts(rows, counts_among_rows(rows))
    post_offsets = lengths_to_offsets(np.bincount(post_row, minlength=rows.total))
    noted = note_posts(rows) if near else NearPosts(np.empty(0, np.uint64), 0.0)
    return Posted(rows, post_row, post_offsets, post_term, noted)


def hold_parts(leaves: Leaves, posted: Posted) -> NDArray[np.float64]:
    """How many subscriptions each part of a plan has."""
    offsets, _ = find_holders(give_parts_workers(leaves), posted)
    return np.diff(offsets).astype(np.float64)


class Flow(NamedTuple):
    """Where everything goes by a plan; rows of worker w lie between its offset and the next.

    `candidates` f64[workers] are the postings near the objects that each worker looks at.
    """

    owners: Owners
    sent_offsets: NDArray[np.int64]
    sent: NDArray[np.int64]
    held_offsets: NDArray[np.int64]
    held: NDArray[np.int64]
    candidates: NDArray[np.float64]
    router_bytes: int
    route_s: float
    follow_s: float


def measure_plan(
    leaves: Leaves, objects: Objects, posted: Posted, sample: Sample, cost: CostModel
) -> Measures:
    """Route everything by the plan, and count; loads are those of the cost model.

    `sample` has the same objects and subscriptions in the same order.
    """
    near = count_near(objects, posted.near)
    flow = route_all(leaves, objects, posted, near)
    if cost.by_part:
        parts = route_all(give_parts_workers(leaves), objects, posted, near)
        loads = np.zeros(leaves.workers)
        np.add.at(loads, leaves.part_worker, charge(parts, sample, cost))
    else:
        loads = charge(flow, sample, cost)
    total = int(objects.codes.size)
    return Measures(
        name=leaves.name,
        leaves=leaves.total,
        objects=total,
        subscriptions=posted.rows.total,
        sent=np.diff(flow.sent_offsets),
        held=np.diff(flow.held_offsets),
        candidates=flow.candidates,
        loads=loads,
        dropped=total - count_sent(objects.term_offsets, flow.owners),
        router_bytes=flow.router_bytes,
        route_ns=1e9 * flow.route_s / max(total, 1),
        follow_ns=1e9 * flow.follow_s / max(posted.rows.total, 1),
    )


def route_all(
    leaves: Leaves,
    objects: Objects,
    posted: Posted,
    near: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> Flow:
    """Find the workers of all subscriptions and objects, and time both."""
    tables = make_tables(leaves)
    live = LiveTerms(leaves)
    leaf_map = make_leaf_map(leaves)
    started = time.perf_counter()
    held_offsets, held = find_holders(leaves, posted, leaf_map, tables)
    live.rebuild([posted.rows])
    follow_s = time.perf_counter() - started
    route = LeafRoute(leaves.workers, leaves.summary, tables, live.tables)
    route.own(Objects(objects.codes[:1], objects.term_offsets[:2], objects.terms))
    started = time.perf_counter()
    owners = route.own(objects)
    sent_offsets, sent = owners_to_workers(read_only(objects.term_offsets), *owners, leaves.workers)
    route_s = time.perf_counter() - started
    return Flow(
        owners,
        sent_offsets,
        sent,
        held_offsets,
        held,
        owners_to_work(owners.of_pair, owners.alone, *near, leaves.workers),
        sum(array.nbytes for part in (tables, live.tables) for array in part),
        route_s,
        follow_s,
    )


def give_parts_workers(leaves: Leaves) -> Leaves:
    """The same plan with a worker for each part."""
    parts = leaves.part_worker.size
    return leaves._replace(workers=parts, part_worker=np.arange(parts, dtype=np.int32))


def charge(flow: Flow, sample: Sample, cost: CostModel) -> NDArray[np.float64]:
    """The load of each worker: f64[workers]."""
    return np.array(
        [
            cost.cost(
                sample,
                flow.sent[flow.sent_offsets[w] : flow.sent_offsets[w + 1]],
                flow.held[flow.held_offsets[w] : flow.held_offsets[w + 1]],
                float(postings),
            )
            for w, postings in enumerate(flow.candidates)
        ]
    )


def find_holders(
    leaves: Leaves,
    posted: Posted,
    leaf_map: LeafMap | None = None,
    tables: RouteTables | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The subscriptions that each worker would hold: offsets i64[workers + 1] and rows i64.

    `leaf_map` and `tables` are those of the leaves, if they are at hand.
    """
    leaf_map, tables = leaf_map or make_leaf_map(leaves), tables or make_tables(leaves)
    leaf_offsets, leaf = leaf_map.leaves_of_ranges(cells_of_boxes(posted.rows.box))
    found: tuple[NDArray[np.int64], NDArray[np.int64]] = rows_to_holders(
        read_only(leaf_offsets),
        read_only(leaf),
        read_only(posted.post_offsets),
        read_only(posted.post_term),
        read_only(tables.part_offsets),
        read_only(tables.part_worker),
        read_only(tables.term_table),
        leaves.workers,
    )
    return found


def count_sent(term_offsets: NDArray[np.int64], owners: Owners) -> int:
    """How many objects go to at least one worker."""
    live = np.concatenate([[0], np.cumsum(owners.of_pair != NO_WORKER)])
    some = live[term_offsets[1:]] > live[term_offsets[:-1]]
    return int(np.count_nonzero(some | (owners.alone != NO_WORKER)))
