"""Compare the plans of the DkM-SKS paper: update time per time-stamp, balance, and its parts.

Each plan is run with our index of balls in every worker and the pruned broadcast (`balls`), and
those of the paper with its broadcast and the index that it gives them: KOP an inverted file
(`words`), SOP one for each subset with its rectangle (`subsets`), DkM balls in cells.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bench.clock import say
from bench.figures import Figures, LinePlot, Table
from bench.harness import Setup
from bench.papers.dkm_sks.cluster import Dealt, Subsets, Tick, TickChanges, Undealt, run_ticks
from bench.papers.dkm_sks.data import (
    INITIAL,
    MADE_UP,
    VENUES,
    NearestSource,
    StandingResults,
    read_source,
    stand,
)
from placewire.kernels.blocks import codes_to_order
from placewire.kernels.space.cells import points_to_codes
from placewire.kernels.space.circles import circles_to_boxes
from placewire.model.regions import CIRCLE
from placewire.plans.boolean.qt import plan_qt
from placewire.plans.leaves import NOTHING
from placewire.plans.nearest.assignment import Assignment
from placewire.plans.nearest.baselines import split_space
from placewire.plans.nearest.methods import NEAREST_METHODS
from placewire.plans.nearest.sample import CircleSample, enclose_circles, place_circles
from placewire.plans.route.leaf_route import LeafRoute, SpreadRoute, make_tables
from placewire.plans.route.live_terms import LiveTerms
from placewire.plans.sample.questions import assume_kind
from placewire.plans.sample.sample import CKQ, make_sample

WORKERS = 20
NEAR_M = 50_000.0  # `within_m` of the second setting
PLANNED_OBJECTS = 100_000  # what `sstd` is planned by, as the engine does
HEADER = (
    "plan, what workers search",
    "update, ms",
    "max - min, ms",
    "kNN, ms",
    "insert, ms",
    "delete, ms",
    "route, ms",
    "merge, ms",
    "all workers, ms",
    "copies an object",
    "postings an object",
    "plan, s",
    "index, s",
)
PAPER = ("kop words", "sop subsets", "dkm broadcast")
OURS = ("kop balls", "sop balls", "dkm balls", "ps2 balls", "shared", "sstd")


class PlanOutcome(NamedTuple):
    """One plan: its time-stamps, and the seconds to make the plan and to index."""

    name: str
    ticks: list[Tick]
    plan_s: float
    index_s: float

    def mean_ms(self, of: Callable[[Tick], float]) -> float:
        return 1e3 * float(np.mean([of(tick) for tick in self.ticks]))

    @property
    def update_ms(self) -> float:
        return self.mean_ms(lambda tick: tick.update_s)

    @property
    def balance_ms(self) -> float:
        return self.mean_ms(lambda tick: tick.balance_s)

    def row(self) -> tuple[object, ...]:
        ticks = self.ticks
        return (
            self.name,
            self.update_ms,
            self.balance_ms,
            self.mean_ms(lambda tick: float(tick.knn_s.max())),
            self.mean_ms(lambda tick: tick.inserting_s),
            self.mean_ms(lambda tick: tick.deleting_s),
            self.mean_ms(lambda tick: tick.route_s),
            self.mean_ms(lambda tick: tick.merge_s),
            self.mean_ms(lambda tick: tick.sum_s),
            float(np.mean([tick.copies for tick in ticks])),
            float(np.mean([tick.looked for tick in ticks])) / 1e3,
            self.plan_s,
            self.index_s,
        )


class Plans:
    """The assignments of one standing set, each made once."""

    def __init__(self, standing: StandingResults, workers: int = WORKERS) -> None:
        self.standing = standing
        self.workers = workers
        self._made: dict[str, tuple[Assignment, float]] = {}

    def make(self, name: str) -> tuple[Assignment, float]:
        if name not in self._made:
            started = time.monotonic()
            made = NEAREST_METHODS[name](self.standing.sample(), self.workers)
            self._made[name] = made, time.monotonic() - started
        return self._made[name]


def find_subsets(sample: CircleSample, assignment: Assignment, theta: int = 20) -> Subsets:
    """The subsets that `plan_sop` made, and the rectangles about their balls."""
    balls = place_circles(sample)
    quarters = split_space(assignment.rule.object_counts, balls, theta * assignment.workers)
    of_row = np.zeros(sample.subscriptions, np.int32)
    for number, quarter in enumerate(quarters):
        of_row[quarter.rows] = number
    worker = np.array([assignment.worker[quarter.rows[0]] for quarter in quarters])
    around = np.array([enclose_circles(balls, quarter.rows) for quarter in quarters])
    return Subsets(of_row, worker, around.reshape(-1, 4))


def plan_sstd(standing: StandingResults, workers: int) -> LeafRoute:
    """SSTD's leaves, as the engine makes them: objects are divided, all workers have all rows."""
    sample = standing.sample()
    o = standing.source.initial.take(
        np.arange(min(PLANNED_OBJECTS, standing.source.initial.lon.size))
    )
    codes = points_to_codes(o.lon, o.lat)
    order = codes_to_order(codes)
    o = o.take(order)
    rows = standing.rows
    balls = rows._replace(
        region_kind=np.full(rows.total, CIRCLE, np.uint8),
        box=circles_to_boxes(sample.lon, sample.lat, standing.radius),
    )
    cut = make_sample(codes[order], o.term_offsets, o.terms, balls)
    leaves = plan_qt(cut._replace(traits=assume_kind(cut, CKQ)), workers)
    leaves = leaves._replace(summary=NOTHING)
    return LeafRoute(workers, NOTHING, make_tables(leaves), LiveTerms(leaves).tables)


def run_plan(
    name: str,
    plans: Plans,
    changes: TickChanges,
    told: Callable[[int, Tick], None] | None = None,
) -> PlanOutcome:
    """One plan in one of its ways, from the standing results on."""
    standing, workers = plans.standing, plans.workers
    plan, _, way = name.partition(" ")
    cluster: Dealt | Undealt
    if plan == "shared":
        plan_s = 0.0
        cluster = Undealt(standing, SpreadRoute(workers), workers)
    elif plan == "sstd":
        started = time.monotonic()
        route = plan_sstd(standing, workers)
        plan_s = time.monotonic() - started
        cluster = Undealt(standing, route, workers)
    else:
        assignment, plan_s = plans.make(plan)
        cluster = deal_out(standing, assignment, way)
    return PlanOutcome(name, run_ticks(changes, cluster, told), plan_s, cluster.build_s)


def deal_out(standing: StandingResults, assignment: Assignment, way: str, theta: int = 20) -> Dealt:
    """A cluster of an assignment, `way` being what is broadcast and searched."""
    if way == "subsets":
        subsets = find_subsets(standing.sample(), assignment, theta)
        return Dealt(standing, assignment, "subsets", pruned=False, subsets=subsets)
    if way == "words":
        return Dealt(standing, assignment, "words", pruned=False)
    return Dealt(standing, assignment, "balls", pruned=way == "balls")


def compare(
    standing: StandingResults, names: tuple[str, ...], ticks: int, workers: int = WORKERS
) -> dict[str, PlanOutcome]:
    """Plans on the same stream; all must let the same objects enter."""
    plans, changes = Plans(standing, workers), TickChanges(standing, ticks)
    outcomes: dict[str, PlanOutcome] = {}
    for name in names:
        outcomes[name] = run_plan(name, plans, changes)
        update, balance, busiest = outcomes[name].row()[1:4]
        say(f"{name}: update {update:.4g} ms, kNN {busiest:.4g}, max - min {balance:.4g}")
        check_same(next(iter(outcomes.values())), outcomes[name])
    return outcomes


def check_same(one: PlanOutcome, other: PlanOutcome) -> None:
    """Exactness: a plan decides how fast, never what."""
    for tick, (a, b) in enumerate(zip(one.ticks, other.ticks, strict=True)):
        same = (a.entered, a.checksum) == (b.entered, b.checksum)
        assert same, f"time-stamp {tick}: {one.name} {a.entered}, {other.name} {b.entered}"


def warm_up(source: NearestSource) -> None:
    """Compile or load every kernel before anything is timed."""
    compare(stand(source, 500), PAPER + OURS, ticks=2)


def describe(standing: StandingResults) -> tuple[object, ...]:
    """Radii of the standing balls, and how large the rectangles about dkm's subsets are."""
    radius = standing.radius
    known = radius[np.isfinite(radius)]
    quantiles = np.percentile(known, [10, 50, 90, 99, 99.9]) / 1e3
    around = NEAREST_METHODS["dkm"](standing.sample(), WORKERS).rule.rectangles
    world = (around[:, 2] - around[:, 0]) > 300.0
    full = standing.neighbours.counts == standing.rows.k
    return (*quantiles.tolist(), 100.0 * float((~full).mean()), 100.0 * float(world.mean()))


def compare_plans(
    setup: Setup, subscriptions: int = 200_000, initial: int = INITIAL, ticks: int = 20
) -> Figures:
    """All plans on both sets, with balls as they are and with balls of 50 km at most."""
    radii = []
    for name in (VENUES, MADE_UP) if setup.data else (MADE_UP,):
        source = read_source(setup, name, ticks, initial)
        say(f"{name}: {source.initial.lon.size:,} initial objects")
        warm_up(source)
        for within_m in (np.inf, NEAR_M):
            setting = name if np.isinf(within_m) else f"{name}-50km"
            standing = stand(source, subscriptions, within_m=within_m)
            radii.append((setting, *describe(standing)))
            outcomes = compare(standing, PAPER + OURS, ticks)
            say(f"{setting}: {subscriptions:,} subscriptions, {WORKERS} workers")
            yield Table(f"nearest-{setting}", HEADER, [o.row() for o in outcomes.values()])
            entered = np.mean([tick.entered for tick in outcomes["shared"].ticks])
            say(f"{entered:,.0f} objects enter a result in a time-stamp")
            series = {
                name: [(t + 1, 1e3 * tick.update_s) for t, tick in enumerate(outcomes[name].ticks)]
                for name in (*PAPER, "dkm balls", "shared")
            }
            yield LinePlot(
                f"nearest-series-{setting}",
                series,
                x_label="time-stamp",
                y_label="update time, ms",
                x_scale="linear",
            )
    yield Table(
        "nearest-radii",
        ("set", "10%, km", "50%", "90%", "99%", "99.9%", "not full, %",
         "dkm subsets around the world, %"),
        radii,
    )  # fmt: skip
