"""Compare plans for snapshot queries: latency and throughput of eight workers (SSTD, section 7.3).

All of the retained objects are asked for: 72 hours of the paper's month are five million of its
objects, more than we have in a month. Plans are made of every tenth object and of queries of the
three kinds, drawn from other objects than those that are timed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from bench.clock import say
from bench.figures import Figures, LinePlot, Table
from bench.harness import Setup
from bench.papers.sstd.cluster import (
    EVERYTHING,
    Fields,
    RoutedQuery,
    SnapshotCluster,
    Trace,
    ask,
    clock,
    make_cluster,
    whole_section,
)
from bench.papers.sstd.data import DAYS, RetainedObjects, retain
from bench.papers.sstd.queries import (
    BOOLEAN,
    KEYWORDS,
    KS,
    NEAREST,
    SHARES,
    TRENDING,
    Setting,
    draw_sources,
    make_queries,
)
from placewire import api
from placewire.model.subscriptions import no_rows, take_slices
from placewire.objects.index import Rows, join_retained, rows_of
from placewire.objects.sections import Section
from placewire.plans.boolean.methods import METHODS
from placewire.plans.boolean.qt import plan_qt
from placewire.plans.cost.model import calibrate
from placewire.plans.leaves import Leaves
from placewire.plans.sample.questions import Questions, add_questions, ask_query, join_questions
from placewire.plans.sample.sample import Sample, make_sample
from placewire.queries.answer import answer_query
from placewire.queries.snapshot import Snapshot
from placewire.text.analyzer import Analyzer
from placewire.text.words import Words

OF_REGIONS = "qt of regions"  # made without nearest queries, whose balls reach far
SHARED = "shared"  # no plan: every worker reads the whole store, and queries are dealt out evenly
PLANS = ("qt", OF_REGIONS, "quadtree", "text", "agrid", "kdt", "grid", "kdtree")
BY_SPACE = ("quadtree", "agrid", "kdt", "grid", "kdtree")  # and kdt, where it cuts by space
WORKERS = 8
PLANNING = 1_000  # queries of each kind that plans are made of
SAMPLED = 10  # of so many objects one is in the sample
PASSES = 2
HOURS = DAYS * 24
MEASURES = {
    "critical": "critical path, ms",
    "p95": "p95 of it, ms",
    "speed": "queries/s of the cluster",
    "work": "all work, ms",
    "workers": "workers asked",
    "parts": "parts asked",
}
ABSENT = "zzabsentzz"  # a keyword that no object has


class ReplayedMonth(NamedTuple):
    """The retained objects and their words; queries are read by the state's own analyzer."""

    retained: RetainedObjects
    rows: Rows
    words: Words
    snapshot: Snapshot
    analyzer: Analyzer


class QueryLoad(NamedTuple):
    """Queries of one setting under one plan, on average; times in milliseconds."""

    critical: float
    p95: float
    speed: float
    work: float
    workers: float
    parts: float


def compare_plans(
    setup: Setup, objects: int = 1_000_000, queries: int = 150, planning: int = PLANNING
) -> Figures:
    """Every kind by its parameters, under every plan."""
    ground = read_ground(setup, objects)
    sources = draw_sources(ground.retained, queries + planning)
    asked, planned = sources[:queries], sources[queries:]
    whole = whole_section(ground.rows, ground.words)
    questions = {
        kind: ask_questions(
            ground, whole, make_queries(ground.retained, planned, Setting(kind, hours=HOURS))
        )
        for kind in (BOOLEAN, NEAREST, TRENDING)
    }
    clusters = {}
    for name, leaves in make_plans(ground, questions).items():
        clusters[name] = make_cluster(leaves, ground.rows, ground.words)
    yield from save_plans(clusters)
    for kind, settings in settings_of_kinds().items():
        loads = {}
        for label, setting in settings.items():
            made = make_queries(ground.retained, asked, setting)
            loads[label] = time_plans(ground, whole, clusters, made)
            say(f"{kind}, {label}")
        if kind == BOOLEAN:
            absent = [query | {"where": ABSENT} for query in made]
            loads["a keyword that is nowhere, 1%"] = time_plans(ground, whole, clusters, absent)
        yield from save_kind(kind, settings, loads)
    ground.snapshot.close()


def save_kind(
    kind: str, settings: dict[str, Setting], loads: dict[str, dict[str, QueryLoad]]
) -> Figures:
    """A table of each measure, settings by plans, and the critical path against the region."""
    for measure, title in MEASURES.items():
        rows = []
        for label, by_plan in loads.items():
            figures = {plan: getattr(load, measure) for plan, load in by_plan.items()}
            best = (max if measure == "speed" else min)(figures[plan] for plan in BY_SPACE)
            rows.append((label, *figures.values(), best / figures["qt"]))
        header = (f"{kind}: {title}", SHARED, *PLANS, "best by space / qt")
        yield Table(f"snapshot-plans-{kind}-{measure}", header, rows)
    regions = {label: s.share for label, s in settings.items() if label.startswith("region")}
    if regions:
        yield LinePlot(
            f"snapshot-plans-{kind}",
            {
                plan: [(share, loads[label][plan].critical) for label, share in regions.items()]
                for plan in (SHARED, *PLANS)
            },
            x_label="region, % of the space",
            y_label=f"{kind}, critical path, ms",
        )


def settings_of_kinds() -> dict[str, dict[str, Setting]]:
    """What is varied, by kind; all ask for the whole month."""
    regions = {f"region {share:g}%": share for share in SHARES}
    words = {f"{number} keywords": number for number in KEYWORDS[1:]}
    usual = {kind: Setting(kind, hours=HOURS) for kind in (BOOLEAN, NEAREST, TRENDING)}
    return {
        BOOLEAN: {label: usual[BOOLEAN]._replace(share=share) for label, share in regions.items()}
        | {label: usual[BOOLEAN]._replace(keywords=number) for label, number in words.items()}
        | {"frequent keyword": usual[BOOLEAN]._replace(frequent=True)}
        | {"frequent, 1%": usual[BOOLEAN]._replace(frequent=True, share=SHARES[-1])},
        NEAREST: {"1 keyword": usual[NEAREST]}
        | {label: usual[NEAREST]._replace(keywords=number) for label, number in words.items()}
        | {f"k {KS[-1]}": usual[NEAREST]._replace(k=KS[-1])}
        | {"frequent keyword": usual[NEAREST]._replace(frequent=True)},
        TRENDING: {
            label: usual[TRENDING]._replace(share=share) for label, share in regions.items()
        },
    }


def read_ground(setup: Setup, count: int) -> ReplayedMonth:
    """Objects as a replay retains them."""
    retained = retain(setup, count)
    state = replay_month(retained, setup.folder / f"snapshot-plans-{count}")
    snapshot = api.open_snapshot(state)
    assert snapshot.manifest is not None
    sources = [section.retained for section in snapshot.sections]
    rows, words = join_retained([(rows_of(one), one.words) for one in sources])
    assert rows.seq.size == count
    return ReplayedMonth(retained, rows, words, snapshot, Analyzer(*snapshot.manifest.key))


def replay_month(
    retained: RetainedObjects,
    folder: Path,
    slice: str | None = None,
    batch_rows: int = api.BATCH_ROWS,
) -> Path:
    """The state of the month's log; everything is retained."""
    folder.mkdir(parents=True)
    api.replay(
        retained.log,
        folder / "results.jsonl",
        state=folder / "state",
        settings={"retention": f"P{DAYS}D"},
        slice=slice,
        batch_rows=batch_rows,
    )
    return folder / "state"


def read(ground: ReplayedMonth, query: dict[str, object]) -> RoutedQuery:
    """A query as routers and workers take it."""
    asked, _ = ground.snapshot.read(query)
    return RoutedQuery(asked, ground.analyzer.hash_terms(list(asked.terms)))


def ask_questions(
    ground: ReplayedMonth, whole: Section, queries: Sequence[dict[str, object]]
) -> list[Questions]:
    """Queries as planners know them; a nearest one as far as its answer reaches."""
    found = []
    for query in queries:
        asked = read(ground, query).query
        answer: dict[str, object] = {}
        if asked.kind == NEAREST:
            answer = answer_query(asked, EVERYTHING, [whole])
        found.append(ask_query(asked, msgspec.json.encode(answer), ground.analyzer))
    return found


def sample_objects(ground: ReplayedMonth, questions: Sequence[Questions]) -> Sample:
    """Every tenth object and all questions."""
    rows = ground.rows
    picked = np.arange(0, rows.seq.size, SAMPLED)
    offsets, at = take_slices(rows.term_offsets, picked)
    hashes = ground.words.hashes[rows.terms[at]]
    sample = make_sample(rows.code[picked], offsets, hashes, no_rows())
    span_s = (int(rows.ts_us.max()) - int(rows.ts_us.min())) / 1e6
    return add_questions(sample, join_questions(questions, len(questions)), span_s)


def make_plans(ground: ReplayedMonth, questions: dict[str, list[Questions]]) -> dict[str, Leaves]:
    """Plans by name, by the costs of this machine."""
    everything = sample_objects(ground, [one for kind in questions.values() for one in kind])
    of_regions = sample_objects(ground, questions[BOOLEAN] + questions[TRENDING])
    cost = calibrate().load.in_stream(everything.objects, everything.subscriptions)
    return {
        name: plan_qt(of_regions, WORKERS)
        if name == OF_REGIONS
        else METHODS[name](everything, WORKERS, cost)
        for name in PLANS
    }


def save_plans(clusters: dict[str, SnapshotCluster]) -> Figures:
    """What the plans are: leaves, parts, and how even the objects are."""
    rows = []
    for name, cluster in clusters.items():
        objects = cluster.objects
        leaves = cluster.leaves
        split = int(np.count_nonzero(np.diff(leaves.part_offsets) > 1))
        rows.append(
            (
                name,
                leaves.total,
                int(leaves.part_worker.size),
                split,
                objects.max() / objects.mean(),
            )
        )
    yield Table(
        "snapshot-plans",
        ("plan", "leaves", "parts", "leaves divided by text", "objects, busiest/mean"),
        rows,
    )


def time_plans(
    ground: ReplayedMonth,
    whole: Section,
    clusters: dict[str, SnapshotCluster],
    queries: Sequence[dict[str, object]],
) -> dict[str, QueryLoad]:
    """The queries of one setting under each plan; answers must be those of the whole store."""
    asked = [read(ground, query) for query in queries]
    truth: list[Fields] = []
    least = np.full(len(asked), np.inf)
    for _ in range(PASSES):
        truth = []
        for number, one in enumerate(asked):
            started = clock()
            truth.append(answer_query(one.query, EVERYTHING, [whole]))
            least[number] = min(least[number], clock() - started)
    loads = {SHARED: weigh_shared(least)}
    for name, cluster in clusters.items():
        passes = [[ask(cluster, one) for one in asked] for _ in range(PASSES)]
        for expected, trace in zip(truth, passes[0], strict=True):
            assert trace.answer == expected, f"{name}: {trace.answer}, not {expected}"
        loads[name] = weigh(take_least(passes))
    return loads


def take_least(passes: Sequence[Sequence[Trace]]) -> list[Trace]:
    """Of each query the least seconds of each step."""
    return [
        traces[0]._replace(
            route_s=min(trace.route_s for trace in traces),
            busy_s=np.minimum.reduce([trace.busy_s for trace in traces]),
            merge_s=min(trace.merge_s for trace in traces),
        )
        for traces in zip(*passes, strict=True)
    ]


def weigh(traces: Sequence[Trace]) -> QueryLoad:
    """Averages; the cluster's speed is that of the worker that has most to do for all of them."""
    critical = 1e3 * np.array([trace.critical_s for trace in traces])
    busy = np.sum([trace.busy_s.sum(axis=0) for trace in traces], axis=0)
    return QueryLoad(
        float(critical.mean()),
        float(np.percentile(critical, 95)),
        len(traces) / float(busy.max()),
        1e3 * float(np.mean([trace.total_s for trace in traces])),
        float(np.mean([trace.asked for trace in traces])),
        float(np.mean([trace.parts for trace in traces])),
    )


def weigh_shared(seconds: np.ndarray) -> QueryLoad:
    """The same where one worker answers a query from the whole store and all take turns."""
    ms = 1e3 * seconds
    speed = 1e3 * WORKERS / float(ms.mean())
    return QueryLoad(
        float(ms.mean()), float(np.percentile(ms, 95)), speed, float(ms.mean()), 1.0, 1.0
    )
