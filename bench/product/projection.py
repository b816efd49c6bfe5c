"""Project the throughput of larger clusters from measured costs.

Costs of each step are measured at some sizes and fitted (`bench.product.costs`). A batch is one
job: the driver plans it and starts its tasks, workers decode, retain and match their share of the
objects and write their files, the driver settles and commits, and a sink on the driver writes the
matches. Workers run in parallel, the driver's steps one after another. A size that was not fitted
is predicted and measured too, alone and on Spark, and a table shows the difference.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from bench.clock import processor_seconds, say
from bench.figures import Figures, LinePlot, Table
from bench.harness import Setup
from bench.product.costs import (
    Jobs,
    MeasuredBatch,
    first_of,
    measure_batches,
    measure_jobs,
    measure_routing,
)
from bench.product.pipeline import make_standing, open_standing
from bench.workload import Workload, write_objects_log
from placewire.ingest.sources import LogSource
from placewire.spark.session import make_session
from placewire.spark.stages import replay_on_spark
from placewire.storage.manifest import Manifest

TASKS_A_WORKER = 2  # as the pipeline has it
OBJECTS_A_TASK = 25_000  # of a batch that is as large as it should be


class Line(NamedTuple):
    """A cost that is a sum of so much of each thing."""

    each: tuple[float, ...]

    def __call__(self, *amounts: float) -> float:
        return sum(cost * amount for cost, amount in zip(self.each, amounts, strict=True))


class Costs(NamedTuple):
    """Seconds of processors: decode by (objects, blocks), match by (objects, candidates), ..

    `candidates` and `matches` are counts: of an object, by (1, subscriptions).
    """

    decode: Line
    retain: Line
    match: Line  # objects, candidates
    write: Line  # blocks, matches
    commit: Line  # 1, blocks, matches
    sink: Line  # blocks, matches
    job: Line  # 1, tasks: of the driver
    task: Line  # tasks: of the workers
    candidates: Line
    matches: Line
    result_bytes: float  # of a match, as a line
    segment_bytes: float  # of a subscription


class ClusterSize(NamedTuple):
    """So many workers, a core each, and so many subscriptions."""

    workers: int
    subscriptions: float
    matches_an_object: float | None = None  # as the workload has them, unless given
    objects: int | None = None  # of a batch


class CriticalPath(NamedTuple):
    """Seconds of one batch, part after part, and what it had."""

    objects: int
    matches: float
    job_s: float
    decode_s: float
    match_s: float
    write_s: float
    commit_s: float
    sink_s: float

    @property
    def seconds(self) -> float:
        """From the plan to the commit; the sink works beside the next batch."""
        return sum(self[2:7])

    @property
    def objects_per_s(self) -> float:
        """What can go on for ever: the sink has to keep up."""
        return self.objects / max(self.seconds, self.sink_s)

    @property
    def slowest(self) -> str:
        """The part that it waits for most."""
        parts = dict(zip(("job", "decode", "match", "write", "commit"), self[2:7], strict=True))
        return "sink" if self.sink_s > self.seconds else max(parts, key=lambda name: parts[name])


def fit(amounts: Sequence[Sequence[float]], seconds: Sequence[float]) -> Line:
    """Costs of each thing, none below zero, that explain the seconds best, in proportion."""
    rows, target = np.array(amounts, float), np.array(seconds, float)
    weight = 1 / np.maximum(target, 1e-12)
    left = list(range(rows.shape[1]))
    each = np.zeros(rows.shape[1])
    while left:
        found = np.linalg.lstsq(rows[:, left] * weight[:, None], target * weight, rcond=None)[0]
        if (found >= 0).all():
            each[left] = found
            break
        left.pop(int(np.argmin(found)))
    return Line(tuple(each.tolist()))


def fit_costs(batches: Sequence[MeasuredBatch], jobs: Sequence[Jobs]) -> Costs:
    """The costs of what was measured."""

    def line(name: str, *things: str) -> Line:
        amounts = [[1.0 if t == "1" else getattr(b, t) for t in things] for b in batches]
        return fit(amounts, [getattr(b, name) for b in batches])

    sizes = [(1.0, b.subscriptions) for b in batches]
    return Costs(
        decode=line("decode_s", "objects", "blocks"),
        retain=line("retain_s", "objects", "blocks"),
        match=line("match_s", "objects", "candidates"),
        write=line("write_s", "blocks", "matches"),
        commit=line("commit_s", "1", "blocks", "matches"),
        sink=line("sink_s", "blocks", "matches"),
        job=fit([(1.0, job.tasks) for job in jobs], [job.driver_s for job in jobs]),
        task=fit([(job.tasks,) for job in jobs], [job.all_s - job.driver_s for job in jobs]),
        candidates=fit(sizes, [b.candidates / b.objects for b in batches]),
        matches=fit(sizes, [b.matches / b.objects for b in batches]),
        result_bytes=sum(b.result_bytes for b in batches) / sum(b.matches for b in batches),
        segment_bytes=max(b.bytes_a_subscription for b in batches),
    )


def project(costs: Costs, cluster: ClusterSize) -> CriticalPath:
    """The critical path of a batch on a cluster, under plan `shared`."""
    tasks = TASKS_A_WORKER * cluster.workers
    objects = cluster.objects or OBJECTS_A_TASK * tasks
    matches = costs.matches(1.0, cluster.subscriptions)
    candidates = costs.candidates(1.0, cluster.subscriptions)
    if cluster.matches_an_object is not None:
        # Fewer subscriptions in every place: candidates that are no matches stay.
        candidates += min(0.0, cluster.matches_an_object - matches)
        matches = cluster.matches_an_object
    share, blocks = objects / cluster.workers, float(TASKS_A_WORKER)
    return CriticalPath(
        objects,
        objects * matches,
        costs.job(1.0, tasks) + costs.task(blocks),
        costs.decode(share, blocks) + costs.retain(share, blocks),
        costs.match(share, share * candidates),
        costs.write(blocks, share * matches),
        costs.commit(1.0, tasks, objects * matches),
        costs.sink(tasks, objects * matches),
    )


STEPS = ("decode_s", "retain_s", "match_s", "write_s", "commit_s", "sink_s")
WORKERS = (1, 2, 5, 10, 20, 50, 100)
SUBSCRIPTIONS = (1e6, 1e7, 1e8)
SELECTIVE = 30.0  # matches an object, where subscriptions are many but far apart
ROUTED = (2, 8, 32)
CLUSTER = "local-cluster[2,1,1024]"  # executors of their own: the driver's time is apart


def measure_and_project(
    setup: Setup,
    objects: int = 200_000,
    rows: int = 40_000,
    sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000),
    held_out: int = 300_000,
    turns: int = 3,
) -> Figures:
    """Measure, fit, check on a size that was left out, and project."""
    whole = setup.workload(objects, max(sizes))
    batches: dict[int, list[MeasuredBatch]] = {}
    for turn in range(turns):
        for size in sorted((*sizes, held_out)):
            started = time.perf_counter()
            seen = measure_batches(first_of(whole, objects, size), setup.folder, rows)
            batches[size] = least(batches.get(size, seen), seen)
            seconds = time.perf_counter() - started
            say(f"{size:,} subscriptions, turn {turn}: {seconds:.0f} s")
    session = make_session(CLUSTER, more={"spark.executor.memory": "1g"})
    jobs = measure_jobs(session)
    session.stop()
    say(f"jobs: {jobs}")
    costs = fit_costs([batch for size in sizes for batch in batches[size]], jobs)
    yield from save_costs(costs)
    yield Table(
        "simulation-check",
        (f"{held_out:,} subscriptions", "predicted, s", "measured, s", "error, %"),
        [
            *check_steps(costs, batches[held_out]),
            check_spark(costs, first_of(whole, objects, held_out), setup.folder, rows),
        ],
    )
    yield from save_routing(setup, first_of(whole, objects, sizes[1]), rows)
    yield from save_projection(costs)


def least(some: list[MeasuredBatch], others: list[MeasuredBatch]) -> list[MeasuredBatch]:
    """The same batches, each step as fast as it was seen."""
    return [
        one._replace(**{name: min(getattr(one, name), getattr(other, name)) for name in STEPS})
        for one, other in zip(some, others, strict=True)
    ]


def save_costs(costs: Costs) -> Figures:
    """What each step costs, in microseconds."""
    things = {
        "decode": ("object", "block"), "retain": ("object", "block"),
        "match": ("object", "candidate"), "write": ("block", "match"),
        "commit": ("batch", "block", "match"), "sink": ("block", "match"),
        "job": ("batch", "task"), "task": ("task",),
    }  # fmt: skip
    rows = [
        (step, *(f"{1e6 * each:.3g} a {thing}" for each, thing in zip(
            getattr(costs, step).each, names, strict=True)), *[""] * (3 - len(names)))
        for step, names in things.items()
    ]  # fmt: skip
    yield Table("simulation-costs", ("step", "µs", "and", "and "), rows)
    for name in ("candidates", "matches"):
        fixed, more = getattr(costs, name).each
        say(f"{name} an object: {fixed:.3g} + {1e6 * more:.3g} for each million subscriptions")
    say(f"bytes: {costs.result_bytes:.0f} a match, {costs.segment_bytes:.0f} a subscription")


def check_steps(
    costs: Costs, measured: list[MeasuredBatch]
) -> list[tuple[str, float, float, float]]:
    """Steps at a size that was not fitted, with the model's own counts of candidates."""
    rows = []
    for step in ("decode", "retain", "match", "write", "commit", "sink"):
        said = []
        for b in measured:
            candidates = b.objects * costs.candidates(1.0, b.subscriptions)
            matches = b.objects * costs.matches(1.0, b.subscriptions)
            amounts = {
                "decode": (b.objects, b.blocks), "retain": (b.objects, b.blocks),
                "match": (b.objects, candidates), "write": (b.blocks, matches),
                "commit": (1.0, b.blocks, matches), "sink": (b.blocks, matches),
            }  # fmt: skip
            said.append(getattr(costs, step)(*amounts[step]))
        rows.append(compare(step, sum(said), sum(getattr(b, f"{step}_s") for b in measured)))
    every = [sum(row[at] for row in rows) for at in (1, 2)]
    return [*rows, compare("all of these", *every)]


def compare(name: str, predicted: float, measured: float) -> tuple[str, float, float, float]:
    return name, predicted, measured, 100 * (predicted / measured - 1)


def check_spark(
    costs: Costs, workload: Workload, folder: Path, rows: int
) -> tuple[str, float, float, float]:
    """All processor time of a batch on Spark, of the driver and of two workers."""
    log = folder / "objects.jsonl"
    write_objects_log(workload, log)
    coordinator = open_standing(make_standing(workload, folder), "shared", 2)
    session = make_session("local[2]")
    seen: list[float] = []

    def after(manifest: Manifest) -> None:
        seen.append(processor_seconds())
        coordinator.delivered = manifest.batch

    replay_on_spark(
        session, coordinator, LogSource(str(log)), batch_rows=rows, workers=2, after=after
    )
    coordinator.close()
    session.stop()
    measured = median([later - former for former, later in pairwise(seen)][1:])
    path = project(costs, ClusterSize(2, workload.subscriptions.num_rows, objects=rows))
    predicted = 2 * (path.decode_s + path.match_s + path.write_s) + path.job_s + path.commit_s
    predicted += costs.task(2.0)  # of the other worker
    return compare("a batch on Spark, without a sink", predicted, measured)


def save_routing(setup: Setup, workload: Workload, batch_rows: int) -> Figures:
    """What a plan that routes adds, and what it saves."""
    rows = []
    for workers in ROUTED:
        r = measure_routing(workload, setup.folder, batch_rows, workers)
        rows.append((
            r.workers, r.sent / r.objects, r.bytes / r.objects, 1e6 * r.route_s / r.objects,
            1e6 * r.pack_s / r.objects, 1e6 * r.match_s / r.objects,
            r.busiest_s * r.workers / r.match_s,
        ))  # fmt: skip
    yield Table(
        "simulation-routing",
        (
            "workers, plan grid", "copies an object", "bytes an object", "routing, µs",
            "packing, µs", "matching, µs", "busiest to mean",
        ),
        rows,
    )  # fmt: skip


def save_projection(costs: Costs) -> Figures:
    """The table and the plot, and the first thing that gives way."""
    rows, lines = [], {}
    for chosen, matches in (("as drawn", None), ("selective", SELECTIVE)):
        for subscriptions in SUBSCRIPTIONS:
            for workers in WORKERS:
                path = project(costs, ClusterSize(workers, subscriptions, matches))
                named = f"{subscriptions / 1e6:,.0f} M, {chosen}"
                alone = path.objects / path.seconds
                result_rate = alone * costs.result_bytes * path.matches / path.objects / 1e9
                lines.setdefault(named, []).append((workers, path.objects_per_s))
                if workers in (1, 10, 100):
                    rows.append((
                        f"{named}: {workers}", path.matches / path.objects, path.seconds,
                        alone, (path.job_s + path.commit_s) / path.seconds, path.objects_per_s,
                        path.slowest, result_rate,
                        subscriptions * costs.segment_bytes / 1e9,
                    ))  # fmt: skip
    yield Table(
        "simulation",
        (
            "subscriptions: workers", "matches an object", "batch, s", "committed, objects/s",
            "driver's share", "with the sink, objects/s", "waits for", "results, GB/s",
            "index on each machine, GB",
        ),
        rows,
    )  # fmt: skip
    yield LinePlot("simulation", lines, x_label="workers", y_label="objects/s, with the sink")
