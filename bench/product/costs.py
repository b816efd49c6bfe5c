"""Measure the cost of each step of a batch: the input of the projection.

Times are processor time of this thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from bench.clock import own_seconds, processor_seconds, processor_time
from bench.product.pipeline import make_standing, open_standing
from bench.workload import Workload, write_objects_log
from placewire.batch import dispatch as dispatcher
from placewire.batch import match as pieces
from placewire.batch.local_runner import run_blocks
from placewire.ingest.log import BlockRef, batch_end
from placewire.ingest.sources import LogSource
from placewire.model.kinds import BOOLEAN
from placewire.plans.messages import BatchContext, Ran, Routed
from placewire.sinks.outbox import result_lines
from placewire.spark import stages as pipeline

BLOCKS = (2, 8, 4, 16, 8)  # of a batch, one batch after another; the first only warms up
TASKS = (2, 16, 64)
REPEATS = 5


class MeasuredBatch(NamedTuple):
    """One batch at some thousand objects: how much there was of what, and seconds of each step."""

    subscriptions: int
    objects: int
    blocks: int
    candidates: int
    matches: int
    decode_s: float
    retain_s: float
    match_s: float
    write_s: float
    commit_s: float
    sink_s: float
    result_bytes: int
    bytes_a_subscription: float


class Routing(NamedTuple):
    """What a plan for so many workers does: objects sent, bytes, seconds, and how even it is."""

    workers: int
    objects: int
    sent: int
    bytes: int
    route_s: float
    pack_s: float
    match_s: float
    busiest_s: float


class Jobs(NamedTuple):
    """A job of Spark's with so many tasks that do nothing: seconds of the driver and of all."""

    tasks: int
    wall_s: float
    driver_s: float
    all_s: float


def first_of(workload: Workload, objects: int, subscriptions: int) -> Workload:
    """A smaller workload of the same kind: both sides are in random order."""
    # Taken and not sliced: a slice of lists still has the values of all.
    some = pa.array(np.arange(subscriptions))
    return Workload(workload.objects.slice(0, objects), workload.subscriptions.take(some))


def measure_batches(workload: Workload, folder: Path, rows: int) -> list[MeasuredBatch]:
    """Batches of `rows` objects against all subscriptions, under plan `shared`."""
    log = folder / "objects.jsonl"
    write_objects_log(workload, log)
    standing = make_standing(workload, folder)
    size = standing.file.stat().st_size / standing.rows
    coordinator = open_standing(standing, "shared", 2)
    found = []
    with processor_time():
        for blocks in BLOCKS:
            refs = LogSource(str(log)).plan(coordinator.latest.offset, rows, blocks)
            kept: list[tuple[Ran, float]] = []

            def run(
                context: BatchContext,
                refs: list[BlockRef] = refs,
                kept: list[tuple[Ran, float]] = kept,
            ) -> Ran:
                started = time.thread_time()
                ran = run_blocks(context, refs)
                kept.append((ran, time.thread_time() - started))
                return ran

            started = time.thread_time()
            manifest = coordinator.step(coordinator.latest.batch + 1, batch_end(refs), run)
            step_s = time.thread_time() - started
            started = time.thread_time()
            size_of_results = sum(len(lines) for lines in result_lines(
                coordinator.state, manifest, False
            ))  # fmt: skip
            sink_s = time.thread_time() - started
            coordinator.delivered = manifest.batch
            [(ran, run_s)] = kept
            found.append(MeasuredBatch(
                standing.rows, sum(b.objects for b in ran.blocks), len(ran.blocks),
                sum(p.candidates for p in ran.pieces),
                sum(p.piece.matches for p in ran.pieces),
                sum(b.decode_s for b in ran.blocks), sum(b.retain_s for b in ran.blocks),
                sum(b.match_s for b in ran.blocks), sum(b.write_s for b in ran.blocks),
                step_s - run_s, sink_s, size_of_results, size,
            ))  # fmt: skip
    coordinator.close()
    return found[1:]


def measure_routing(workload: Workload, folder: Path, rows: int, workers: int) -> Routing:
    """One batch under plan `grid` for so many workers, after those that it is made of."""
    log = folder / "objects.jsonl"
    write_objects_log(workload, log)
    coordinator = open_standing(make_standing(workload, folder), "grid", workers)
    found: list[Routing] = []

    def run(context: BatchContext) -> Ran:
        if BOOLEAN not in context.routes:
            return run_blocks(context, refs)
        summaries, sent = [], 0
        inboxes: dict[int, list[Routed]] = {}
        found_pieces, did = [], []
        size, pack_s = 0, 0.0
        for ref in refs:
            dispatched = dispatcher.dispatch_block(context, ref)
            summaries.append(dispatched.summary)
            found_pieces += dispatched.pieces
            for part in dispatched.routed:
                started = time.thread_time()
                cell = pipeline.pack_routed(part)
                inboxes.setdefault(part.worker, []).append(pipeline.unpack_routed(cell))
                pack_s += time.thread_time() - started
                size, sent = size + len(cell), sent + part.object.size
        busy = []
        for worker, parts in inboxes.items():
            started = time.thread_time()
            some, done = pieces.match_routed(context, worker, parts)
            busy.append(time.thread_time() - started)
            found_pieces += some
            did += done
        found.append(Routing(
            workers, sum(b.objects for b in summaries), sent, size,
            sum(b.route_s for b in summaries), pack_s, sum(busy), max(busy),
        ))  # fmt: skip
        return Ran(summaries, found_pieces, did)

    with processor_time():
        for _ in range(6):
            refs = LogSource(str(log)).plan(coordinator.latest.offset, rows, 8)
            if not refs:
                break
            coordinator.step(coordinator.latest.batch + 1, batch_end(refs), run)
    coordinator.close()
    if not found:
        raise RuntimeError("no plan was made")
    return found[-1]


def measure_jobs(session: SparkSession) -> list[Jobs]:
    """Jobs of one stage that do nothing: what Spark takes for itself, the least of some runs."""
    driver = session.sparkContext._gateway.proc.pid

    def nothing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    found = []
    for tasks in (TASKS[0], *TASKS):  # the first time Python processes start
        seen = []
        for _ in range(REPEATS):
            before = time.perf_counter(), own_seconds(driver), processor_seconds()
            session.range(0, tasks, 1, tasks).mapInArrow(nothing, "id long").toArrow()
            after = time.perf_counter(), own_seconds(driver), processor_seconds()
            seen.append([b - a for a, b in zip(before, after, strict=True)])
        wall, own, everything = np.min(seen, axis=0).tolist()
        found.append(Jobs(tasks, wall, own, everything))
    return found[1:]
