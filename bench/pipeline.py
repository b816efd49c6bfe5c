"""Placewire end to end on Spark: standing subscriptions, objects from files, a counting sink."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
from pyspark.sql import SparkSession

from bench.engine import KEY, rows_of
from bench.workload import Workload
from placewire.batch.coordinator import Coordinator
from placewire.ingest.log import Offset
from placewire.ingest.sources import LogSource
from placewire.model.settings import Settings
from placewire.segments.live import LiveSegments
from placewire.segments.segment import make_segment, write_segment
from placewire.spark.replay import replay_on_spark
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest, SegmentEntry
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


class Standing(NamedTuple):
    """Subscriptions as a segment file, ready to be the state before the first batch."""

    file: Path
    rows: int


def make_standing(workload: Workload, folder: Path) -> Standing:
    """Index the workload's subscriptions into a segment file.

    The rows are built without the detour through JSON; loading them as events is measured apart.
    """
    file = folder / f"standing-{workload.subscriptions.num_rows}.plw"
    file.unlink(missing_ok=True)
    rows = rows_of(workload, Analyzer(*KEY))
    write_segment(file, make_segment(rows))
    return Standing(file, rows.total)


def open_standing(standing: Standing, plan: str, workers: int) -> Coordinator:
    """A coordinator on a new state directory in which the subscriptions stand already."""
    root = standing.file.parent / "state"
    shutil.rmtree(root, ignore_errors=True)
    coordinator = Coordinator(StateDir(root), Settings(), no_fingerprint, plan, workers)
    name = coordinator.state.new_name(0, "segment")
    os.link(standing.file, coordinator.state.file(name))
    entry = SegmentEntry(name, standing.rows)
    coordinator.live = LiveSegments(coordinator.state, [entry])
    coordinator.settler.live = coordinator.live
    coordinator.latest = msgspec.structs.replace(
        coordinator.latest,
        key=KEY,
        segments=[entry],
        offset=Offset(standing.rows, 0)._asdict(),
        next_seq=standing.rows,
    )
    coordinator.expect_changes = False
    return coordinator


def run_pipeline(
    session: SparkSession,
    standing: Standing,
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
