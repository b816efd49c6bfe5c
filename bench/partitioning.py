"""Partitioning: every plan on PS2Stream's Q1, Q2 and Q3; total work, balance, memory, speed."""

from __future__ import annotations

import numpy as np

from bench.cluster import ClusterRun, run_native, run_plan
from bench.queries import QuerySet, draw, query_set
from bench.settings import Choice
from bench.tables import draw_lines, save_table
from placewire.engine.calibrating import calibrate
from placewire.plan.cost import LoadModel
from placewire.plan.methods import METHODS, SPACE_METHODS, TEXT_METHODS
from placewire.plan.sample import make_sample
from placewire.route.measures import post_rows

SETS = ("Q1", "Q2", "Q3", "Q2 rare", "Q3 rare")
WORKERS = 8
SCALES = (4, 8, 16, 32)
SCALED = ("kdtree", "metric", "kdt", "agrid", "qt")
OBJECTS = 76_000  # the odd rows of posts_us
HEADER = (
    "plan",
    "objects/s, critical path",
    "objects/s, workers alone",
    "total work, s",
    "busiest/mean",
    "model load, s",
    "L_max/L_min",
    "copies a subscription",
    "copies an object",
    "dropped, %",
    "dispatch, ns an object",
    "router, MB",
    "largest worker, MB",
    "latency of 1,000, ms",
)


def run_all(
    queries: QuerySet, workers: int, names: tuple[str, ...], cost: LoadModel
) -> dict[str, ClusterRun]:
    """Every plan, made of half of the objects and run on all of them."""
    o = queries.objects
    half = slice(0, o.codes.size, 2)
    terms_of = np.diff(o.term_offsets)[half]
    offsets = np.concatenate([[0], np.cumsum(terms_of)])
    picked = np.repeat(o.term_offsets[:-1][half] - offsets[:-1], terms_of) + np.arange(offsets[-1])
    cost = cost.in_stream(o.codes.size, queries.rows.total)
    sample = make_sample(o.codes[half], offsets, o.terms[picked], queries.rows, cost.posting_work)
    everything = make_sample(o.codes, o.term_offsets, o.terms, queries.rows)
    posted = post_rows(queries.rows)
    native = run_native(workers, o, queries.rows)
    runs = {"native": native}
    for name in names:
        leaves = METHODS[name](sample, workers, cost)
        runs[name] = run_plan(leaves, o, posted, everything, cost, native.matches)
    return runs


def row_of(run: ClusterRun) -> tuple[object, ...]:
    m = run.measures
    busy = run.busy_s + run.insert_s
    return (
        run.name,
        run.critical_per_s,
        run.workers_per_s,
        run.total_s,
        float(busy.max() / busy.mean()),
        m.workload / 1e9 if m else "",
        m.balance if m else "",
        m.subscriptions_replicated if m else float(run.busy_s.size),
        m.objects_replicated if m else 1.0,
        100.0 * m.dropped / m.objects if m else 0.0,
        1e9 * run.dispatch_s / run.objects,
        run.router_bytes / 1e6,
        float(run.worker_bytes.max()) / 1e6,
        1e3 * run.small_batch_s,
    )


def run(choice: Choice) -> None:
    """The tables of all sets at 8 workers, and the critical path from 4 to 32 workers."""
    count = 1_000_000 if choice.full else 200_000
    drawn = draw(choice, OBJECTS, count)
    cost = calibrate().load
    print(f"load model: {cost}\n", flush=True)
    verdicts = []
    scaled: dict[str, list[tuple[float, float]]] = {}
    for name in SETS:
        queries = query_set(name, drawn, count)
        runs = run_all(queries, WORKERS, tuple(METHODS), cost)
        print(f"### {name}: {queries.rows.total:,} subscriptions, {WORKERS} workers\n")
        save_table(
            f"partitioning-{name.replace(' ', '-')}", HEADER, [row_of(r) for r in runs.values()]
        )
        verdicts.append((name, *judge(runs)))
        if name != "Q3":
            continue
        for workers in SCALES:
            some = runs if workers == WORKERS else run_all(queries, workers, SCALED, cost)
            for plan in SCALED:
                scaled.setdefault(plan, []).append((workers, some[plan].critical_per_s))
    save_table(
        "partitioning-verdicts",
        ("set", "best space", "best text", "space/text", "kdt/best other", "kdt/better single",
         "space/text, model", "kdt/better single, model"),
        verdicts,
    )  # fmt: skip
    draw_lines(
        "partitioning", scaled, x_label="workers", y_label="objects/s on the critical path (Q3)"
    )
    save_table(
        "partitioning-workers",
        ("plan", *map(str, SCALES)),
        [(plan, *(y for _, y in sorted(points))) for plan, points in scaled.items()],
    )


def run_levelling(choice: Choice) -> None:
    """Plan `kdt` levelled by PS2Stream's load and by the postings that objects meet."""
    count = 1_000_000 if choice.full else 200_000
    drawn = draw(choice, OBJECTS, count)
    calibrated = calibrate()
    rows = []
    for name in ("Q1", "Q3"):
        queries = query_set(name, drawn, count)
        for workers in (WORKERS, SCALES[-1]):
            for levelled, cost in (
                ("PS2Stream's load", calibrated.ps2stream),
                ("postings met", calibrated.load),
            ):
                kdt = run_all(queries, workers, ("kdt",), cost)["kdt"]
                rows.append((f"{name}, {workers} workers, {levelled}", *row_of(kdt)[1:5]))
    save_table("levelling", ("kdt levelled by", *HEADER[1:5]), rows)


def judge(runs: dict[str, ClusterRun]) -> tuple[object, ...]:
    """The ratios that the paper's claims are about, by measured speed and by the load model."""
    speed = {name: run.critical_per_s for name, run in runs.items()}
    load = {name: run.measures.workload for name, run in runs.items() if run.measures}
    space = max(SPACE_METHODS, key=lambda name: speed[name])
    text = max(TEXT_METHODS, key=lambda name: speed[name])
    others = max(value for name, value in speed.items() if name not in ("kdt", "native"))
    least_space = min(load[name] for name in SPACE_METHODS)
    least_text = min(load[name] for name in TEXT_METHODS)
    return (
        space,
        text,
        speed[space] / speed[text],
        speed["kdt"] / others,
        speed["kdt"] / max(speed[space], speed[text]),
        least_text / least_space,
        min(least_space, least_text) / load["kdt"],
    )
