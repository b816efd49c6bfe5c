"""Measure plans on given data, choose the cheapest, and explain the choice.

A plan is measured by copies, dropped objects and the load of each worker. Its score is the time of
the busiest worker in nanoseconds per object. That includes routing and shuffling, the objects,
postings and inserts that reach a worker, and page faults of an index that exceeds a machine's
memory. PS2Stream's load is what its plans minimise; it charges an object for every subscription of
its worker, which an index by place and term does not, so it does not decide.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kinds.boolean.index import counts_among_rows, cover_posts
from placewire.model.arrays import F64, I64, U32, U64
from placewire.model.subscriptions import SubscriptionRows, lengths_to_offsets
from placewire.plans.cost.model import CostModel, Prices
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
from placewire.plans.sample.sample import NearPosts, Sample, cells_of_boxes, count_near, note_posts


class PlanWork(NamedTuple):
    """The work of a plan with sampled objects; arrays have an entry for each worker."""

    name: str
    objects: int
    subscriptions: int
    sent: NDArray[np.floating[Any] | np.integer[Any]]
    held: NDArray[np.floating[Any] | np.integer[Any]]
    candidates: NDArray[np.floating[Any] | np.integer[Any]]
    route_ns: float


def shared_work(objects: int, subscriptions: int, candidates: F64) -> PlanWork:
    """The work of the plan `shared`, which sends nothing; `candidates` may be in any parts."""
    none = np.zeros(1)
    return PlanWork("shared", objects, subscriptions, none, none, candidates, 0.0)


class Measures(NamedTuple):
    """One plan measured; arrays have an entry a worker."""

    name: str
    leaves: int
    objects: int
    subscriptions: int
    sent: I64
    held: I64
    candidates: F64
    loads: F64
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
    post_row: U32
    post_offsets: I64
    post_term: U64
    near: NearPosts


def post_rows(rows: SubscriptionRows, *, near: bool = True) -> Posted:
    """Post subscriptions once, to measure several plans with them.

    Without `near` only holders can be found, not what objects would match.
    """
    post_row, post_term = cover_posts(rows, counts_among_rows(rows))
    post_offsets = lengths_to_offsets(np.bincount(post_row, minlength=rows.total))
    noted = note_posts(rows) if near else NearPosts(np.empty(0, np.uint64), 0.0)
    return Posted(rows, post_row, post_offsets, post_term, noted)


def hold_parts(leaves: Leaves, posted: Posted) -> F64:
    """How many subscriptions each part of a plan has."""
    offsets, _ = find_holders(give_parts_workers(leaves), posted)
    return np.diff(offsets).astype(np.float64)


class Flow(NamedTuple):
    """Where everything goes by a plan; rows of worker w lie between its offset and the next.

    `candidates` f64[workers] are the postings near the objects that each worker looks at.
    """

    owners: Owners
    sent_offsets: I64
    sent: I64
    held_offsets: I64
    held: I64
    candidates: F64
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


def route_all(leaves: Leaves, objects: Objects, posted: Posted, near: tuple[F64, F64]) -> Flow:
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


def charge(flow: Flow, sample: Sample, cost: CostModel) -> F64:
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
) -> tuple[I64, I64]:
    """The subscriptions that each worker would hold: offsets i64[workers + 1] and rows i64.

    `leaf_map` and `tables` are those of the leaves, if they are known.
    """
    leaf_map, tables = leaf_map or make_leaf_map(leaves), tables or make_tables(leaves)
    leaf_offsets, leaf = leaf_map.leaves_of_ranges(cells_of_boxes(posted.rows.box))
    return rows_to_holders(
        read_only(leaf_offsets),
        read_only(leaf),
        read_only(posted.post_offsets),
        read_only(posted.post_term),
        read_only(tables.part_offsets),
        read_only(tables.part_worker),
        read_only(tables.term_table),
        leaves.workers,
    )


def count_sent(term_offsets: I64, owners: Owners) -> int:
    """How many objects go to at least one worker."""
    live = np.concatenate([[0], np.cumsum(owners.of_pair != NO_WORKER)])
    some = live[term_offsets[1:]] > live[term_offsets[:-1]]
    return int(np.count_nonzero(some | (owners.alone != NO_WORKER)))


BYTES_A_SUBSCRIPTION = 220.0


class Score(NamedTuple):
    """What a candidate costs, in nanoseconds an object of the busiest worker."""

    name: str
    total: float
    route: float
    shuffle: float
    match: float
    insert: float
    memory: float

    def explain(self) -> str:
        """The parts in words, the largest first."""
        parts = {k: v for k, v in self._asdict().items() if k not in ("name", "total") and v >= 0.5}
        shown = sorted(parts.items(), key=lambda part: -part[1])
        return ", ".join(f"{name} {value:.0f}" for name, value in shown)


class Machines(NamedTuple):
    """What the workers run on: how many of them share a machine, and its memory for the index."""

    workers_each: int
    memory_bytes: float


def spread_workers(workers: int, machines: int, memory_bytes: float) -> Machines:
    """Workers spread evenly over so many machines, each with so much memory for the index."""
    return Machines(-(-workers // machines), memory_bytes)


def score_plan(
    measures: Measures | PlanWork,
    prices: Prices,
    machines: Machines,
    bytes_each: float = BYTES_A_SUBSCRIPTION,
) -> Score:
    """Score a plan that routes, with subscriptions of `bytes_each`."""
    objects = max(measures.objects, 1)
    workers = measures.sent.size
    inserts = prices.inserts / max(measures.subscriptions, 1)
    return score_parts(
        measures.name,
        route=measures.route_ns / workers,
        shuffle=prices.shuffle * float(measures.sent.sum()) / objects / workers,
        match=(prices.probe * measures.sent + prices.candidate * measures.candidates) / objects,
        insert=prices.insert * inserts * measures.held,
        share=float(measures.sent.max(initial=0)) / objects,
        held=machines.workers_each * float(measures.held.max(initial=0)),
        bytes_each=bytes_each,
        prices=prices,
        machines=machines,
    )


def score_shared(
    measures: Measures | PlanWork,
    workers: int,
    prices: Prices,
    machines: Machines,
    bytes_each: float = BYTES_A_SUBSCRIPTION,
) -> Score:
    """Score matching where objects are read; takes the measures of any plan that drops none.

    Every worker gets an even part of the objects and all machines hold all subscriptions, each
    once: its processes map the same files. A subscription is indexed once and read by all.
    """
    met = prices.candidate * float(measures.candidates.sum()) / max(measures.objects, 1)
    return score_parts(
        "shared",
        route=0.0,
        shuffle=0.0,
        match=np.array([(prices.probe + met) / workers]),
        insert=np.array([prices.insert * prices.inserts / workers]),
        share=1.0 / workers,
        held=float(measures.subscriptions),
        bytes_each=bytes_each,
        prices=prices,
        machines=machines,
    )


def score_parts(
    name: str,
    *,
    route: float,
    shuffle: float,
    match: NDArray[np.floating[Any]],
    insert: NDArray[np.floating[Any]],
    share: float,
    held: float,
    bytes_each: float,
    prices: Prices,
    machines: Machines,
) -> Score:
    """Put the parts together for the busiest worker.

    `share` is the part of all objects that one worker gets at most, `held` the subscriptions that
    a machine holds.
    """
    busiest = int(np.argmax(match + insert))
    beyond = max(0.0, 1.0 - machines.memory_bytes / max(held * bytes_each, 1.0))
    memory = prices.fault * beyond * share
    parts = (route, shuffle, float(match[busiest]), float(insert[busiest]), memory)
    return Score(name, sum(parts), *parts)


class Choice(NamedTuple):
    """The chosen plan, None for `shared`, and the scores of all."""

    leaves: Leaves | None
    scores: list[Score]

    @property
    def why(self) -> str:
        return explain_scores(self.scores)


def explain_scores(scores: list[Score], note: str = "") -> str:
    """The cheapest plan, a note, and the next one, in words."""
    best, *others = sorted(scores, key=lambda score: score.total)
    text = f"{best.name}: {best.total:.0f} ns an object ({best.explain()}){note}"
    if others:
        text += f"; next {others[0].name}: {others[0].total:.0f} ({others[0].explain()})"
    return text


def choose_plan(
    candidates: list[Leaves],
    measure: Callable[[Leaves], Measures],
    workers: int,
    prices: Prices,
    machines: Machines,
) -> Choice:
    """Score `shared` and every candidate; the cheapest wins, `shared` where they are even."""
    measured = [measure(leaves) for leaves in candidates]
    whole = max(measured, key=lambda m: int(m.candidates.sum()))
    scores = [score_shared(whole, workers, prices, machines)]
    scores += [score_plan(m, prices, machines) for m in measured]
    best = min(range(len(scores)), key=lambda k: scores[k].total)
    return Choice(None if best == 0 else candidates[best - 1], scores)


class PlanChoice(NamedTuple):
    """The name of the plan to use, and why."""

    name: str
    why: str


def choose_partition(
    shared: PlanWork,
    candidates: list[PlanWork],
    workers: int,
    prices: Prices,
    machines: Machines,
    bytes_each: float,
    note: str = "",
) -> PlanChoice:
    """Score `shared` and plans that partition rows of `bytes_each`; the cheapest wins."""
    scores = [score_shared(shared, workers, prices, machines, bytes_each)]
    scores += [score_plan(work, prices, machines, bytes_each) for work in candidates]
    best = min(scores, key=lambda score: score.total)
    return PlanChoice(best.name, explain_scores(scores, note))
