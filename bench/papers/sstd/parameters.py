"""Vary SSTD's own parameters: leaves of its tree, and time slices of the store (section 7.7)."""

from __future__ import annotations

import shutil
import time

import numpy as np

from bench.clock import say
from bench.figures import Figures, LinePlot, Table
from bench.harness import Setup
from bench.papers.sstd.cluster import make_cluster, whole_section
from bench.papers.sstd.data import DAYS, retain
from bench.papers.sstd.plans import (
    HOURS,
    PLANNING,
    WORKERS,
    ask_questions,
    read_ground,
    replay_month,
    sample_objects,
    time_plans,
)
from bench.papers.sstd.queries import (
    BOOLEAN,
    NEAREST,
    TRENDING,
    Query,
    Setting,
    draw_sources,
    make_queries,
)
from placewire import api
from placewire.plans.boolean.qt import BY_SPACE, plan_qt
from placewire.queries.snapshot import Snapshot

KINDS = (BOOLEAN, NEAREST, TRENDING)
THETAS = (32, 64, 128, 256)
SLICES = (2, 4, 8, 16, 32, 64)  # in the time that objects are retained
SLICE_HOURS = (24, 72, 168)
BATCHES = 124  # of the slices' replays, four a day: files are merged as they would be in a stream


def vary_theta(
    setup: Setup, objects: int = 300_000, queries: int = 100, planning: int = PLANNING
) -> Figures:
    """Critical path and throughput by theta, of `qt` and of its cut by space alone."""
    ground = read_ground(setup, objects)
    sources = draw_sources(ground.retained, queries + planning)
    whole = whole_section(ground.rows, ground.words)
    questions = [
        question
        for kind in KINDS
        for question in ask_questions(
            ground,
            whole,
            make_queries(ground.retained, sources[queries:], Setting(kind, hours=HOURS)),
        )
    ]
    sample = sample_objects(ground, questions)
    clusters = {}
    for theta in THETAS:
        for leaves in (
            plan_qt(sample, WORKERS, theta=theta),
            plan_qt(sample, WORKERS, theta=theta, way=BY_SPACE),
        ):
            name = f"{leaves.name}, theta {theta}"
            clusters[name] = make_cluster(leaves, ground.rows, ground.words)
    say("plans made")
    loads = {
        kind: time_plans(
            ground,
            whole,
            clusters,
            make_queries(ground.retained, sources[:queries], Setting(kind, hours=HOURS)),
        )
        for kind in KINDS
    }
    yield Table(
        "snapshot-theta",
        ("plan", "parts", *(f"{kind}, critical path, ms" for kind in KINDS),
         *(f"{kind}, queries/s" for kind in KINDS)),
        [
            (
                name,
                int(cluster.leaves.part_worker.size),
                *(loads[kind][name].critical for kind in KINDS),
                *(loads[kind][name].speed for kind in KINDS),
            )
            for name, cluster in clusters.items()
        ],
    )  # fmt: skip
    ground.snapshot.close()


def vary_slices(setup: Setup, objects: int = 300_000, queries: int = 100) -> Figures:
    """The three kinds by how many slices there are and how far back queries look."""
    retained = retain(setup, objects)
    sources = draw_sources(retained, queries)
    asked = {
        (kind, hours): make_queries(retained, sources, Setting(kind, hours=hours))
        for kind in KINDS
        for hours in SLICE_HOURS
    }
    rows, series = [], {}
    for slices in SLICES:
        folder = setup.folder / f"snapshot-slices-{slices}"
        started = time.process_time()
        length = f"PT{DAYS * 24 * 3600 // slices}S"
        rows_each = retained.objects.num_rows // BATCHES
        state = replay_month(retained, folder, length, rows_each)
        load_s = time.process_time() - started
        with api.open_snapshot(state) as snapshot:
            for some in asked.values():
                time_queries(snapshot, some[:10])
            medians = {what: time_queries(snapshot, some) for what, some in asked.items()}
            rows.append((f"1/{slices}", len(snapshot.sections), load_s, *medians.values()))
        for (kind, hours), ms in medians.items():
            series.setdefault(f"{kind}, {hours} h", []).append((slices, ms))
        say(f"{slices} slices")
        shutil.rmtree(folder)
    yield Table(
        "snapshot-slices",
        ("slice of the retention", "files", "replay, s of a core",
         *(f"{kind}, {hours} h, ms" for kind, hours in asked)),
        rows,
    )  # fmt: skip
    yield LinePlot("snapshot-slices", series, x_label="slices in the retention", y_label="p50, ms")


def time_queries(snapshot: Snapshot, queries: list[Query]) -> float:
    """The median milliseconds of a core."""
    seconds = []
    for query in queries:
        started = time.thread_time()
        snapshot.answer(query)
        seconds.append(time.thread_time() - started)
    return 1e3 * float(np.median(seconds))
