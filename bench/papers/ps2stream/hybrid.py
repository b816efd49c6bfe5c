"""What partitioning by text could save, what plan `kdt` saves, and the cost of routing by plans.

By the load models alone, so that the figures are the same in every run but for the models' prices.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from bench.clock import say
from bench.figures import BarPlot, Figures, Table
from bench.harness import Setup
from bench.papers.ps2stream.partitioning import OBJECTS, SUBSCRIPTIONS, least_load, sample_half
from bench.papers.ps2stream.queries import FREQUENT_SHARE, Drawn, QuerySet, draw, query_set
from placewire.kinds.boolean.kind import make_boolean_segment
from placewire.kinds.boolean.match import make_probe, match_segment
from placewire.plans.boolean import kdt as kdt_module
from placewire.plans.boolean.kdt import plan_kdt
from placewire.plans.boolean.methods import METHODS, SPACE_METHODS, TEXT_METHODS
from placewire.plans.boolean.subset import (
    SampleSubset,
    WeighedTerms,
    text_similarity,
    weigh_subset,
    whole_sample,
)
from placewire.plans.cost.measures import Measures, Posted, measure_plan, post_rows
from placewire.plans.cost.model import LoadModel, calibrate
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.leaves import Leaves
from placewire.plans.sample.sample import Sample, make_sample

SETS = ("Q1", "Q2", "Q3", "Q2 at scale", "Q3 at scale", "Q2 rare", "Q3 rare")
WORKERS = (8, 32)
DELTAS = (0.0, 0.01, 0.1, 0.8, 1.1)
SAMES = (0.2, 0.01)
PAPER_POSTS = 280_000_000
HALVINGS = 5


class PlanCase(NamedTuple):
    """A query set under a load model: what plans are made of, and what they are measured with."""

    queries: QuerySet
    sample: Sample
    planned: LoadModel
    objects: Objects
    posted: Posted
    whole: Sample
    charged: LoadModel

    def measure(self, leaves: Leaves) -> Measures:
        return measure_plan(leaves, self.objects, self.posted, self.whole, self.charged)

    def measure_singles(self, workers: int) -> list[Measures]:
        """Every method that cuts in one way only."""
        names = (*SPACE_METHODS, *TEXT_METHODS)
        return [self.measure(METHODS[name](self.sample, workers, self.planned)) for name in names]


def compare_loads(
    setup: Setup,
    subscriptions: int = SUBSCRIPTIONS,
    objects: int = OBJECTS,
    sets: tuple[str, ...] = SETS,
) -> Figures:
    """Tables of the most frequent terms, of loads by both models, and of thresholds."""
    drawn = draw(setup, objects, subscriptions)
    yield Table(
        "hybrid-tokens",
        ("posts", "terms", "the 1% most frequent", "tokens they cover, %"),
        cover_tokens(drawn),
    )
    calibrated = calibrate()
    loads, loads_of_paper, thresholds = [], [], []
    bars: dict[str, dict[str, float]] = {"better single method": {}, "kdt": {}}
    for name in sets:
        queries = query_set(name, drawn, subscriptions)
        case = make_case(queries, calibrated.load)
        of_paper = make_case(queries, calibrated.ps2stream)
        least = least_load(queries, calibrated.load)
        similarity = text_similarity(case.sample, whole_sample(case.sample))
        for workers in WORKERS:
            label = f"{name}, {workers} workers"
            singles = case.measure_singles(workers)
            leaves = plan_kdt(case.sample, workers, case.planned)
            kdt = case.measure(leaves)
            with without_text():
                by_space = case.measure(plan_kdt(case.sample, workers, case.planned))
            lightest, levellest = least_of(singles)
            busiest = float(kdt.loads.max())
            loads.append(
                (
                    label,
                    similarity,
                    lightest.name,
                    lightest.workload / least,
                    lightest.workload / kdt.workload,
                    levellest.name,
                    float(levellest.loads.max()) * workers / least,
                    float(levellest.loads.max()) / busiest,
                    float(by_space.loads.max()) / busiest,
                    f"{count_split(leaves)} of {leaves.total}",
                )
            )
            for series, load in zip(bars, (lightest.workload, kdt.workload), strict=True):
                bars[series][f"{name}, {workers}"] = load / least
            loads_of_paper.append((label, *compare_by_paper(of_paper, workers)))
            thresholds.append((label, *try_thresholds(case, workers, kdt.workload)))
    yield Table(
        "hybrid-loads",
        ("set", "similarity", "least load of one method", "to the least possible", "to kdt's",
         "least busiest worker of one method", "to a share of the least possible", "to kdt's",
         "kdt's without cuts by text", "leaves cut by text"),
        loads,
    )  # fmt: skip
    yield BarPlot("hybrid", bars, y_label="load to the least possible (set, workers)")
    yield Table(
        "hybrid-paper-loads",
        ("set, by PS2Stream's load", "least load of one method", "to kdt's",
         "least busiest worker of one method", "to kdt's"),
        loads_of_paper,
    )  # fmt: skip
    yield Table(
        "hybrid-thresholds",
        ("load to that of kdt", *(f"delta {d}, same {s}" for s in SAMES for d in DELTAS)),
        thresholds,
    )


def make_case(queries: QuerySet, cost: LoadModel) -> PlanCase:
    o = queries.objects
    return PlanCase(
        queries,
        *sample_half(queries, cost),
        Objects(o.codes, o.term_offsets, o.terms),
        post_rows(queries.rows),
        make_sample(o.codes, o.term_offsets, o.terms, queries.rows),
        cost.in_stream(o.codes.size, queries.rows.total),
    )


def least_of(plans: list[Measures]) -> tuple[Measures, Measures]:
    """The plan with the least load, and the one whose busiest worker has the least."""
    return (
        min(plans, key=lambda plan: plan.workload),
        min(plans, key=lambda plan: float(plan.loads.max())),
    )


def compare_by_paper(case: PlanCase, workers: int) -> tuple[object, ...]:
    """Single methods against `kdt`, planned and measured by the paper's own load."""
    lightest, levellest = least_of(case.measure_singles(workers))
    kdt = case.measure(plan_kdt(case.sample, workers, case.planned))
    return (
        lightest.name,
        lightest.workload / kdt.workload,
        levellest.name,
        float(levellest.loads.max() / kdt.loads.max()),
    )


def try_thresholds(case: PlanCase, workers: int, taken: float) -> list[float]:
    """The load at each threshold, to that of the plan that is taken."""
    return [
        case.measure(plan_kdt(case.sample, workers, case.planned, delta=delta, same=same)).workload
        / taken
        for same in SAMES
        for delta in DELTAS
    ]


def without_text() -> AbstractContextManager[object]:
    """Plan `kdt` as if nothing could be cut by text."""

    def price_text(
        sample: Sample, subset: SampleSubset, weighed: WeighedTerms, most: int, cost: LoadModel
    ) -> np.ndarray:
        return np.array([weigh_subset(sample, subset, cost), *[np.inf] * (most - 1)])

    return patch.multiple(
        kdt_module, price_text=price_text, cut_by_text=lambda sample, node, parts, cost: [node]
    )


def count_split(leaves: Leaves) -> int:
    """How many leaves are cut by text."""
    return int(np.count_nonzero(np.diff(leaves.part_offsets) > 1))


def cover_tokens(drawn: Drawn) -> list[tuple[object, ...]]:
    """What the most frequent terms cover of ever more posts, and about of the paper's.

    From one doubling to the next the share that is not covered falls by a factor, and by a little
    more each time: with the last factor kept, the last row is the least that is to be expected.
    """
    o = drawn.objects
    posts = o.codes.size
    owner = np.repeat(np.arange(posts), np.diff(o.term_offsets))
    place = np.random.default_rng(5).permutation(posts)[owner]
    rows: list[tuple[object, ...]] = []
    uncovered = []
    for halving in range(HALVINGS, -1, -1):
        some = posts >> halving
        counts = np.sort(np.unique(o.terms[place < some], return_counts=True)[1])[::-1]
        frequent = int(FREQUENT_SHARE * counts.size)
        uncovered.append(1.0 - float(counts[:frequent].sum() / counts.sum()))
        rows.append((some, counts.size, frequent, 100.0 * (1.0 - uncovered[-1])))
    doublings = np.log2(PAPER_POSTS / posts)
    left = uncovered[-1] * (uncovered[-1] / uncovered[-2]) ** doublings
    return [*rows, (PAPER_POSTS, "", "", 100.0 * (1.0 - float(left)))]


ROUTED_SETS = ("Q1", "Q2", "Q3")
ROUTED_WORKERS = 8
ROUNDS = 3


def measure_routing(
    setup: Setup,
    subscriptions: int = 1_000_000,
    objects: int = OBJECTS,
    sets: tuple[str, ...] = ROUTED_SETS,
) -> Figures:
    """A table: seconds to make each plan, ns to route an object, and that over matching it."""
    drawn = draw(setup, objects, subscriptions)
    load = calibrate().load
    columns = []
    for name in sets:
        queries = query_set(name, drawn, subscriptions)
        case = make_case(queries, load)
        match_ns = match_alone(queries)
        say(f"{name}: matching {match_ns:,.0f} ns an object")
        column = {}
        for method, plan in METHODS.items():
            started = time.process_time()
            leaves = plan(case.sample, ROUTED_WORKERS, case.planned)
            build_s = time.process_time() - started
            route_ns = min(case.measure(leaves).route_ns for _ in range(ROUNDS))
            column[method] = (build_s, route_ns, 100 * route_ns / match_ns)
        columns.append(column)
    yield Table(
        "routing",
        (
            "plan",
            *(f"{s}: {what}" for s in sets for what in ("build s", "ns", "% of matching")),
        ),
        [(method, *(v for column in columns for v in column[method])) for method in METHODS],
    )


def match_alone(queries: QuerySet) -> float:
    """Nanoseconds of one core to match an object where it was read."""
    segment = make_boolean_segment(queries.rows)
    o = queries.objects
    seconds = []
    for _ in range(ROUNDS):
        started = time.process_time()
        nows = np.zeros(o.codes.size, np.int64)
        probe = make_probe(o.codes, o.lon, o.lat, nows, o.term_offsets, o.terms)
        match_segment(probe, segment)
        seconds.append(time.process_time() - started)
    return 1e9 * min(seconds) / o.codes.size
