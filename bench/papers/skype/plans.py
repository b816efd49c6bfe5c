"""Compare the DSkype paper's plans: throughput, messages and copies by the number of workers.

Workers are run one after another, each with an index of its own, and timed apart. Throughput is of
dispatch (one dispatcher) and then the busiest worker. A plan decides how fast, never what: all find
the same pairs.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from bench.clock import say
from bench.figures import Figures, LinePlot, Table
from bench.harness import Setup
from bench.papers.skype.costs import USUAL_RULE, make_store, warm_up
from bench.papers.skype.data import LONG, POSTS, draw_rows, read_corpus
from bench.papers.skype.index import cut_block
from bench.papers.skype.store import clock
from bench.papers.skype.window import Sliding
from placewire.kinds.relevant.index import TermPartition, build_groups, index_parts
from placewire.kinds.relevant.kernels.score import RelevanceBlock
from placewire.kinds.relevant.match import find_relevant
from placewire.model.subscriptions import SubscriptionRows, take_rows
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.relevant.methods import RELEVANT_METHODS, RelevantSample, plan_relevant
from placewire.plans.relevant.strategy import ONE_CELL, count_copies, post_literals
from placewire.plans.route.worker_map import WorkerMap, WorkerMapRoute

WORKERS = (4, 8, 16, 32)
FIRSTS = (2, 4, 8, 16)
WINDOW = 100_000
SAMPLED = 20_000  # objects that plans are made of
BLOCK, BLOCKS = 5_000, 1
REPEATS = 3
LARGE = (5_000_000, 10_000_000, 20_000_000)
SINGLE = ("hash", "location", "keyword", "prefix")
SHARED = "shared"
HEADER = (
    "plan, workers",
    "objects/s",
    "dispatch, ms",
    "busiest worker, ms",
    "all workers, ms",
    "busiest / mean",
    "tuples an object",
    "copies a subscription",
    "plan, s",
    "index, s",
)


class RelevantOutcome(NamedTuple):
    """One plan: milliseconds an object of dispatch and of every worker, and what it sends."""

    name: str
    workers: int
    dispatch_ms: float
    worker_ms: np.ndarray
    tuples: float
    copies: float
    plan_s: float
    index_s: float
    pairs: int

    @property
    def per_s(self) -> float:
        return 1e3 / (self.dispatch_ms + float(self.worker_ms.max()))

    def row(self) -> tuple[object, ...]:
        busiest = float(self.worker_ms.max())
        return (
            f"{self.name}, {self.workers}",
            self.per_s,
            self.dispatch_ms,
            busiest,
            float(self.worker_ms.sum()),
            busiest / float(self.worker_ms.mean()),
            self.tuples,
            self.copies,
            self.plan_s,
            self.index_s,
        )


class RelevantCase(NamedTuple):
    """Rows with their thresholds, a sample of the stream, and blocks of it."""

    rows: SubscriptionRows
    theta: np.ndarray
    sample: RelevantSample
    blocks: list[RelevanceBlock]

    @property
    def objects(self) -> int:
        return sum(block.lon.size for block in self.blocks)

    def thinned(self, count: int) -> RelevantCase:
        """The first so many rows."""
        rows = take_rows(self.rows, np.arange(count))
        theta = self.theta[:count]
        return RelevantCase(rows, theta, self.sample._replace(rows=rows, theta=theta), self.blocks)


def prepare(setup: Setup, name: str, count: int, window: int = WINDOW) -> RelevantCase:
    """Fill buffers for their thresholds, and cut blocks of the stream."""
    corpus = read_corpus(setup, window + BLOCK * BLOCKS, name)
    say(f"{name}: {count:,} subscriptions, {corpus.terms.size / corpus.total:.1f} terms")
    sliding = Sliding(make_store(setup, corpus, window), draw_rows(corpus, count), USUAL_RULE)
    seen, _ = corpus.block(0, min(SAMPLED, window))
    theta = sliding.theta.copy()
    sample = RelevantSample(sliding.rows, theta, seen.lon, seen.lat, seen.term_offsets, seen.terms)
    firsts = range(window, corpus.total, BLOCK)
    blocks = [corpus.block(at, min(at + BLOCK, corpus.total))[0] for at in firsts]
    return RelevantCase(sliding.rows, theta, sample, blocks)


def run_dealt(
    case: RelevantCase, name: str, workers: int, first: int | None = None
) -> RelevantOutcome:
    """A plan that deals postings out."""
    rows, theta = case.rows, case.theta
    marks = [clock()]
    rule = plan_relevant(name, case.sample, workers, first)
    owner = rule.assign(rows, theta)
    marks.append(clock())
    live = WorkerMap()
    dealt = TermPartition(workers, owner, rule.order_terms(rows))
    live.rebuild([post_literals(rows, dealt, workers)])
    indexes = index_parts(rows, theta, dealt)
    marks.append(clock())
    route = WorkerMapRoute(workers, live.words, ONE_CELL)
    dispatch_s, worker_s, sent, pairs = 0.0, np.zeros(workers), 0, []
    for number, block in enumerate(case.blocks):
        started = clock()
        shares = list(route.cut(Objects(block.codes, block.term_offsets, block.terms)))
        dispatch_s += clock() - started
        for share in shares:
            part = cut_block(block, share.objects)
            started = clock()
            found = find_relevant(part, rows, indexes[share.worker], theta)
            worker_s[share.worker] += clock() - started
            sent += share.objects.size
            at = share.objects[found.object].astype(np.int64) + number * BLOCK
            pairs.append(at * rows.total + found.row)
    label = name if first is None else f"{name} {first} x {workers // first}"
    return RelevantOutcome(
        label,
        workers,
        1e3 * dispatch_s / case.objects,
        1e3 * worker_s / case.objects,
        sent / case.objects,
        count_copies(rows, owner),
        marks[1] - marks[0],
        marks[2] - marks[1],
        np.unique(np.concatenate(pairs)).size,
    )


def run_shared(case: RelevantCase, workers: int) -> RelevantOutcome:
    """All rows at every worker, objects divided."""
    started = clock()
    index = build_groups(case.rows, case.theta)
    index_s = clock() - started
    worker_s, pairs = np.zeros(workers), 0
    for block in case.blocks:
        for worker in range(workers):
            part = cut_block(block, np.arange(worker, block.lon.size, workers))
            started = clock()
            pairs += find_relevant(part, case.rows, index, case.theta).row.size
            worker_s[worker] += clock() - started
    worker_ms = 1e3 * worker_s / case.objects
    return RelevantOutcome(
        SHARED, workers, 0.0, worker_ms, 1.0, float(workers), 0.0, index_s, pairs
    )


def run_plan(
    case: RelevantCase, name: str, workers: int, first: int | None = None
) -> RelevantOutcome:
    """One plan, the least of a few times: each is a few milliseconds."""
    runs = [
        run_shared(case, workers) if name == SHARED else run_dealt(case, name, workers, first)
        for _ in range(REPEATS)
    ]
    return runs[0]._replace(
        dispatch_ms=min(run.dispatch_ms for run in runs),
        worker_ms=np.min([run.worker_ms for run in runs], axis=0),
    )


def compare_plans(
    setup: Setup,
    subscriptions: int = 40_000,
    long_subscriptions: int = 10_000,
    window: int = WINDOW,
    workers: tuple[int, ...] = WORKERS,
) -> Figures:
    """All plans and workers on short and on long texts, the hybrids' cuts, and a projection."""
    warm_up(setup)
    for name, count in ((POSTS, subscriptions), (LONG, long_subscriptions)):
        case = prepare(setup, name, count, window)
        yield from compare(case, name, workers)
        yield from cut_hybrids(case, name, workers[-1])
        yield from project(case, name, workers[-1])


def compare(case: RelevantCase, name: str, many: tuple[int, ...]) -> Figures:
    """Every plan with every number of workers."""
    for plan in (*RELEVANT_METHODS, SHARED):  # compile before anything is timed
        run_plan(case.thinned(100), plan, 2)
    outcomes = []
    for plan in (*RELEVANT_METHODS, SHARED):
        for workers in many:
            started = time.monotonic()
            outcomes.append(run_plan(case, plan, workers))
            last = outcomes[-1]
            assert last.pairs == outcomes[0].pairs, (plan, workers)
            say(
                f"{plan}, {workers}: {last.per_s:,.0f} objects/s"
                f" ({time.monotonic() - started:.0f} s)"
            )
    yield Table(f"relevant-plans-{name}", HEADER, [outcome.row() for outcome in outcomes])
    yield LinePlot(
        f"relevant-plans-{name}",
        {
            plan: [(o.workers, o.per_s) for o in outcomes if o.name == plan]
            for plan in (*RELEVANT_METHODS, SHARED)
        },
        x_label="workers",
        y_label="objects/s",
    )


def cut_hybrids(case: RelevantCase, name: str, workers: int) -> Figures:
    """The hybrids with more or fewer parts of the first cut."""
    outcomes = [run_plan(case, plan, workers) for plan in ("location", "prefix")]
    for plan in ("location+prefix", "prefix+location"):
        for first in (f for f in FIRSTS if f < workers):
            outcomes.append(run_plan(case, plan, workers, first))
            say(f"{outcomes[-1].name}: {outcomes[-1].per_s:,.0f} objects/s")
    yield Table(f"relevant-hybrids-{name}", HEADER, [outcome.row() for outcome in outcomes])


def fit_growth(sizes: np.ndarray, times: np.ndarray) -> tuple[float, float]:
    """The slope and the fixed part of times that grow with sizes, neither of them negative."""
    slope, fixed = np.polyfit(sizes, times, 1)
    if slope <= 0.0 or fixed < 0.0:
        return float((sizes @ times) / (sizes @ sizes)), 0.0
    return float(slope), float(fixed)


def project(case: RelevantCase, name: str, workers: int) -> Figures:
    """How the busiest worker's time grows with subscriptions, and where that leads."""
    sizes = [case.rows.total // 4, case.rows.total // 2, case.rows.total]
    table = []
    for plan in (*SINGLE, SHARED):
        outcomes = [run_plan(case.thinned(size), plan, workers) for size in sizes]
        each = [1e3 / outcome.per_s for outcome in outcomes]
        slope, fixed = fit_growth(np.array(sizes, float), np.array(each))
        later = [1e3 / (fixed + slope * size) for size in LARGE]
        table.append((plan, *(outcome.per_s for outcome in outcomes), *later))
    header = (
        "plan, objects/s",
        *(f"{size:,}" for size in sizes),
        *(f"{size // 1_000_000} M (projected)" for size in LARGE),
    )
    yield Table(f"relevant-projection-{name}", header, table)
