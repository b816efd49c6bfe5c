"""A cluster that is not here: 1 to 100 workers and 1 to 100 M subscriptions, from measured costs.

Costs are measured at some sizes and fitted (`bench.costs`, `bench.projection`). A size that was not
fitted is predicted and measured too, by itself and on Spark; a table says how much they differ.
"""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from statistics import median

from bench.costs import Batch, first_of, measure_batches, measure_jobs, measure_routing
from bench.pipeline import make_standing, open_standing
from bench.processor import processor_seconds
from bench.projection import Cluster, Costs, fit_costs, project
from bench.settings import Choice
from bench.tables import draw_lines, save_table
from bench.workload import Workload, write_objects_log
from placewire.ingest.sources import LogSource
from placewire.spark.replay import replay_on_spark
from placewire.spark.session import make_session
from placewire.storage.manifest import Manifest

OBJECTS, ROWS = 200_000, 40_000
SIZES, HELD_OUT = (10_000, 100_000, 1_000_000), 300_000
TURNS = 3
STEPS = ("decode_s", "retain_s", "match_s", "write_s", "commit_s", "sink_s")
WORKERS = (1, 2, 5, 10, 20, 50, 100)
SUBSCRIPTIONS = (1e6, 1e7, 1e8)
SELECTIVE = 30.0  # matches an object, where subscriptions are many but far apart
ROUTED = (2, 8, 32)
CLUSTER = "local-cluster[2,1,1024]"  # executors of their own: the driver's time is apart


def run(choice: Choice) -> None:
    """Measure, fit, check on a size that was left out, and project."""
    whole = choice.workload(OBJECTS, max(SIZES))
    batches: dict[int, list[Batch]] = {}
    for turn in range(TURNS):
        for size in sorted((*SIZES, HELD_OUT)):
            started = time.perf_counter()
            seen = measure_batches(first_of(whole, OBJECTS, size), choice.folder, ROWS)
            batches[size] = least(batches.get(size, seen), seen)
            seconds = time.perf_counter() - started
            print(f"{size:,} subscriptions, turn {turn}: {seconds:.0f} s", flush=True)
    session = make_session(CLUSTER, more={"spark.executor.memory": "1g"})
    jobs = measure_jobs(session)
    session.stop()
    print(f"jobs: {jobs}", flush=True)
    costs = fit_costs([batch for size in SIZES for batch in batches[size]], jobs)
    save_costs(costs)
    save_table(
        "simulation-check",
        (f"{HELD_OUT:,} subscriptions", "predicted, s", "measured, s", "error, %"),
        [*check_steps(costs, batches[HELD_OUT]), check_spark(costs, whole, choice.folder)],
    )
    save_routing(choice, whole)
    save_projection(costs)


def least(some: list[Batch], others: list[Batch]) -> list[Batch]:
    """The same batches, each step as fast as it was seen."""
    return [
        one._replace(**{name: min(getattr(one, name), getattr(other, name)) for name in STEPS})
        for one, other in zip(some, others, strict=True)
    ]


def save_costs(costs: Costs) -> None:
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
    save_table("simulation-costs", ("step", "µs", "and", "and "), rows)
    for name in ("candidates", "matches"):
        fixed, more = getattr(costs, name).each
        print(f"{name} an object: {fixed:.3g} + {1e6 * more:.3g} for each million subscriptions")
    print(f"bytes: {costs.result_bytes:.0f} a match, {costs.segment_bytes:.0f} a subscription\n")


def check_steps(costs: Costs, measured: list[Batch]) -> list[tuple[str, float, float, float]]:
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


def check_spark(costs: Costs, whole: Workload, folder: Path) -> tuple[str, float, float, float]:
    """All processor time of a batch on Spark, of the driver and of two workers."""
    workload = first_of(whole, OBJECTS, HELD_OUT)
    log = folder / "objects.jsonl"
    write_objects_log(workload, log)
    coordinator = open_standing(make_standing(workload, folder), "shared", 2)
    session = make_session("local[2]")
    seen: list[float] = []

    def after(manifest: Manifest) -> None:
        seen.append(processor_seconds())
        coordinator.delivered = manifest.batch

    replay_on_spark(
        session, coordinator, LogSource(str(log)), batch_rows=ROWS, workers=2, after=after
    )
    coordinator.close()
    session.stop()
    measured = median([later - former for former, later in pairwise(seen)][1:])
    path = project(costs, Cluster(2, HELD_OUT, objects=ROWS))
    predicted = 2 * (path.decode_s + path.match_s + path.write_s) + path.job_s + path.commit_s
    predicted += costs.task(2.0)  # of the other worker
    return compare("a batch on Spark, without a sink", predicted, measured)


def save_routing(choice: Choice, whole: Workload) -> None:
    """What a plan that routes adds, and what it saves."""
    rows = []
    for workers in ROUTED:
        r = measure_routing(first_of(whole, OBJECTS, SIZES[1]), choice.folder, ROWS, workers)
        rows.append((
            r.workers, r.sent / r.objects, r.bytes / r.objects, 1e6 * r.route_s / r.objects,
            1e6 * r.pack_s / r.objects, 1e6 * r.match_s / r.objects,
            r.busiest_s * r.workers / r.match_s,
        ))  # fmt: skip
    save_table(
        "simulation-routing",
        (
            "workers, plan grid", "copies an object", "bytes an object", "routing, µs",
            "packing, µs", "matching, µs", "busiest to mean",
        ),
        rows,
    )  # fmt: skip


def save_projection(costs: Costs) -> None:
    """The table and the plot, and the first thing that gives way."""
    rows, lines = [], {}
    for chosen, matches in (("as drawn", None), ("selective", SELECTIVE)):
        for subscriptions in SUBSCRIPTIONS:
            for workers in WORKERS:
                path = project(costs, Cluster(workers, subscriptions, matches))
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
    save_table(
        "simulation",
        (
            "subscriptions: workers", "matches an object", "batch, s", "committed, objects/s",
            "driver's share", "with the sink, objects/s", "waits for", "results, GB/s",
            "index on each machine, GB",
        ),
        rows,
    )  # fmt: skip
    draw_lines("simulation", lines, x_label="workers", y_label="objects/s, with the sink")
