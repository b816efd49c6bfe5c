"""Placewire on Spark from files to committed matches: throughput, and the anatomy of a batch."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
from pyspark.sql import SparkSession

from bench.columns import KEY, rows_of
from bench.figures import Figures, Table
from bench.harness import Setup
from bench.peers import passthrough, spark_sql
from bench.workload import Workload, write_objects_log, write_objects_parquet
from placewire.batch.coordinator import Coordinator, Run
from placewire.ingest.sources import LogSource
from placewire.kinds.boolean.kind import make_boolean_segment
from placewire.model.kinds import BOOLEAN
from placewire.model.settings import Settings
from placewire.plans.messages import BatchContext, Ran
from placewire.segments.live import LiveSegments
from placewire.segments.segment import write_segment
from placewire.spark.session import make_session
from placewire.spark.stages import replay_on_spark
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest, Offset, SegmentEntry
from placewire.text.analyzer import Analyzer


def no_fingerprint(_: Offset) -> str:
    """The benchmark's states never outlive their log."""
    return "benchmark"


class PipelineRun(NamedTuple):
    """One pass of the stream: matches, seconds after the first batch, objects a second, batches."""

    matches: int
    seconds: float
    objects_per_s: float
    batches: int


class StandingSegment(NamedTuple):
    """Subscriptions as a segment file, ready to be the state before the first batch."""

    file: Path
    rows: int


def make_standing(workload: Workload, folder: Path) -> StandingSegment:
    """Index the workload's subscriptions into a segment file.

    The rows are built without the detour through JSON; loading them as events is measured apart.
    """
    file = folder / f"standing-{workload.subscriptions.num_rows}.plw"
    file.unlink(missing_ok=True)
    rows = rows_of(workload, Analyzer(*KEY))
    write_segment(file, make_boolean_segment(rows))
    return StandingSegment(file, rows.total)


def open_standing(standing: StandingSegment, plan: str, workers: int) -> Coordinator:
    """A coordinator on a new state directory in which the subscriptions stand already."""
    root = standing.file.parent / "state"
    shutil.rmtree(root, ignore_errors=True)
    coordinator = Coordinator(StateDir(root), Settings(), no_fingerprint, plan, workers)
    name = coordinator.state.new_name(0, "segment")
    os.link(standing.file, coordinator.state.file(name))
    entry = SegmentEntry(name, BOOLEAN, standing.rows)
    coordinator.live = LiveSegments(coordinator.state, [entry])
    coordinator.settler.live = coordinator.live
    coordinator.latest = msgspec.structs.replace(
        coordinator.latest,
        key=KEY,
        segments=[entry],
        offset=Offset(standing.rows, 0),
        next_seq=standing.rows,
    )
    coordinator.expect_changes = False
    return coordinator


def run_pipeline(
    session: SparkSession,
    standing: StandingSegment,
    path: Path,
    *,
    source_format: str,
    plan: str = "shared",
    workers: int = 2,
    batch_rows: int = 1_000_000,
) -> PipelineRun:
    """Stream a file of objects through the pipeline; every match is in a committed file."""
    coordinator = open_standing(standing, plan, workers)
    batches: list[Manifest] = []
    times: list[float] = []

    def after(manifest: Manifest) -> None:
        batches.append(manifest)
        times.append(time.perf_counter())
        coordinator.delivered = manifest.batch

    replay_on_spark(
        session,
        coordinator,
        LogSource(str(path), source_format),
        batch_rows=batch_rows,
        workers=workers,
        after=after,
    )
    # The first batch pays for starting the query; what follows is the steady rate.
    seconds = times[-1] - times[0]
    steady = batches[-1].next_seq - batches[0].next_seq
    coordinator.close()
    shutil.rmtree(coordinator.state.root)
    return PipelineRun(batches[-1].counters.results, seconds, steady / seconds, len(batches))


def measure_throughput(
    setup: Setup,
    sizes: tuple[tuple[int, int, int], ...] = (
        (100_000, 3_000_000, 200_000),
        (1_000_000, 3_000_000, 50_000),
    ),
    batch_rows: int = 1_000_000,
) -> Figures:
    """Objects/s from files to a counting sink, every match in a committed file.

    `sizes` are subscriptions, objects, and objects that Spark SQL gets.
    """
    session = make_session("local[2]")
    rows = []
    for subscriptions, objects, peer_objects in sizes:
        workload = setup.workload(objects, subscriptions)
        small = workload._replace(objects=workload.objects.slice(0, peer_objects))
        bare = passthrough.run(workload, session, repeats=3)
        sql = spark_sql.run(small, session, repeats=2)
        standing = make_standing(workload, setup.folder)
        parquet, log = setup.folder / "objects.parquet", setup.folder / "objects.jsonl"
        write_objects_parquet(workload, parquet)
        write_objects_log(workload, log)

        found = [
            ("pass-through", bare.objects_per_s, 0.0),
            ("Spark SQL", sql.objects_per_s, sql.matches / peer_objects),
        ]
        for name, path, source, plan in (
            ("Placewire, Parquet", parquet, "parquet", "shared"),
            ("Placewire, JSON Lines", log, "jsonl", "shared"),
            ("Placewire, Parquet, plan grid", parquet, "parquet", "grid"),
        ):
            best = max(
                (
                    run_pipeline(
                        session,
                        standing,
                        path,
                        source_format=source,
                        plan=plan,
                        batch_rows=batch_rows,
                    )
                    for _ in range(2)
                ),
                key=lambda r: r.objects_per_s,
            )
            found.append((name, best.objects_per_s, best.matches / objects))
        for name, rate, matches in found:
            rows.append(
                (
                    f"{subscriptions:,}: {name}",
                    rate,
                    matches,
                    rate / sql.objects_per_s,
                    rate / bare.objects_per_s,
                )
            )
    session.stop()
    yield Table(
        "throughput",
        (
            "subscriptions: engine",
            "objects/s",
            "matches an object",
            "times Spark SQL",
            "of pass-through",
        ),
        rows,
    )


CORES = 2
STEPS = (
    "reading and decoding", "matching", "writing the block's file", "retaining objects",
    "Spark: tasks, and cores that wait", "commit on the driver", "between two batches",
)  # fmt: skip


def measure_anatomy(
    setup: Setup,
    objects: int = 2_000_000,
    subscriptions: int = 100_000,
    large: int = 500_000,
    small: int = 3_000,
) -> Figures:
    """Where the time of large and of small batches goes, from both sources."""
    workload = setup.workload(objects, subscriptions)
    parquet, lines = setup.folder / "objects.parquet", setup.folder / "objects.jsonl"
    write_objects_parquet(workload, parquet)
    write_objects_log(workload, lines)
    standing = make_standing(workload, setup.folder)
    session = make_session(f"local[{CORES}]")
    columns = {}
    for name, source in (
        (f"Parquet, {large:,}", (parquet, "parquet", large)),
        (f"JSON Lines, {large:,}", (lines, "jsonl", large)),
        (f"JSON Lines, {small:,}", (lines, "jsonl", small)),
    ):
        coordinator = open_standing(standing, "shared", CORES)
        seen: list[list[float]] = []
        step = coordinator.step
        path, form, rows = source

        def watched(
            batch: int, end: Offset, run: Run,
            step: Callable[[int, Offset, Run], Manifest] = step, seen: list[list[float]] = seen,
        ) -> Manifest:  # fmt: skip
            inside: list[float] = []

            def timed(context: BatchContext) -> Ran:
                started = time.perf_counter()
                ran = run(context)
                wall = time.perf_counter() - started
                parts = [
                    sum(getattr(block, field) for block in ran.blocks) / CORES
                    for field in ("decode_s", "match_s", "write_s", "retain_s")
                ]
                inside[:] = [*parts, wall - sum(parts), wall]
                return ran

            started = time.perf_counter()
            manifest = step(batch, end, timed)
            whole = time.perf_counter() - started
            seen.append([*inside[:5], whole - inside[5], started, started + whole])
            return manifest

        coordinator.step = watched
        stop = partial(lambda seen, rows: len(seen) >= (4 if rows == large else 40), seen, rows)
        replay_on_spark(
            session, coordinator, LogSource(str(path), form),
            batch_rows=rows, workers=CORES, after=lambda _: None, until=stop,
        )  # fmt: skip
        coordinator.close()
        gaps = [later[6] - earlier[7] for earlier, later in pairwise(seen[1:])]
        steady = seen[1:]
        columns[name] = [
            *(sum(batch[k] for batch in steady) / len(steady) for k in range(6)),
            sum(gaps) / len(gaps),
        ]
    session.stop()
    rows_of_table = [
        (part, *(column[k] for column in columns.values())) for k, part in enumerate(STEPS)
    ]
    rows_of_table.append(("in all", *(sum(column) for column in columns.values())))
    yield Table("anatomy", ("part, seconds a batch", *columns), rows_of_table)
