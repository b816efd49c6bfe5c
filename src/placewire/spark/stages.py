"""Run a batch as one Spark job, and replay a log batch by batch.

Plan `shared` has one stage. A plan that routes has two with a shuffle of packed blocks between
them; the partition number is the worker number.

The coordinator decides and records batches; a streaming query only triggers them. Its source is
Spark's `rate-micro-batch`, which runs in the JVM: for a source in Python, Spark starts Python
processes to plan every batch, 0.2 s of 0.5 (see docs/decisions/0003).
"""

from __future__ import annotations

import contextlib
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from placewire.batch.coordinator import Coordinator
from placewire.batch.dispatch import dispatch_block
from placewire.batch.match import match_routed
from placewire.ingest.log import BlockRef
from placewire.ingest.sources import Source
from placewire.kinds.candidates import PieceSummary
from placewire.model.errors import Unusable
from placewire.plans.messages import (
    BatchContext,
    BlockSummary,
    Ran,
    Routed,
    WorkerSummary,
)
from placewire.spark.session import summarize_error
from placewire.storage.arrays import pack_arrays, unpack_arrays
from placewire.storage.manifest import Manifest

BLOCK, PIECE, ROUTED, WORKER = 0, 1, 2, 3
SCHEMA = "worker int, kind int, payload binary"
TASKS_A_WORKER = 2
Rows = list[tuple[int, int, bytes]]


def run_on_spark(
    session: SparkSession, refs: list[BlockRef], workers: int, context: BatchContext
) -> Ran:
    """Run the blocks of a batch in a few tasks per core.

    A task has an overhead of tens of milliseconds, so a task per block would cost more than the
    work; two per core still balance blocks of different cost.
    """
    at_once = min(workers, session.sparkContext.defaultParallelism)
    tasks = session.range(0, len(refs), 1, min(len(refs), TASKS_A_WORKER * at_once))
    stage = tasks.mapInArrow(partial(dispatch_partition, context, refs), SCHEMA)
    if context.routes:
        stage = stage.repartitionById(workers, "worker").mapInArrow(
            partial(match_partition, context), SCHEMA
        )
    table = stage.toArrow()
    summaries, pieces, worker_summaries = [], [], []
    for kind, payload in zip(table["kind"].to_pylist(), table["payload"].to_pylist(), strict=True):
        if kind == BLOCK:
            summaries.append(msgspec.msgpack.decode(payload, type=BlockSummary))
        elif kind == PIECE:
            pieces.append(msgspec.msgpack.decode(payload, type=PieceSummary))
        else:
            worker_summaries.append(msgspec.msgpack.decode(payload, type=WorkerSummary))
    return Ran(summaries, pieces, worker_summaries)


def to_batch(rows: Rows) -> pa.RecordBatch:
    """Convert rows of the exchange schema to an Arrow batch."""
    workers, kinds, payloads = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(workers, pa.int32()),
            pa.array(kinds, pa.int32()),
            pa.array(payloads, pa.binary()),
        ],
        names=["worker", "kind", "payload"],
    )


def dispatch_partition(
    context: BatchContext, refs: list[BlockRef], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Dispatch the numbered blocks."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            dispatched = dispatch_block(context, refs[number])
            rows: Rows = [(0, BLOCK, msgspec.msgpack.encode(dispatched.summary))]
            rows += [(0, PIECE, msgspec.msgpack.encode(piece)) for piece in dispatched.pieces]
            yield to_batch(rows)
            for part in dispatched.routed:
                yield to_batch([(part.worker, ROUTED, pack_routed(part))])


def match_partition(
    context: BatchContext, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Match the objects routed to this partition's worker; summaries pass through."""
    passed: Rows = []
    parts: list[Routed] = []
    for batch in batches:
        for row in batch.to_pylist():
            if row["kind"] == ROUTED:
                parts.append(unpack_routed(row["payload"]))
            else:
                passed.append((row["worker"], row["kind"], row["payload"]))
    if parts:
        worker = parts[0].worker
        found, did = match_routed(context, worker, parts)
        passed += [(worker, PIECE, msgspec.msgpack.encode(piece)) for piece in found]
        passed += [(worker, WORKER, msgspec.msgpack.encode(summary)) for summary in did]
    if passed:
        yield to_batch(passed)


FACTS, ARRAYS = Routed._fields[:4], Routed._fields[4:]


def pack_routed(part: Routed) -> bytes:
    arrays = {name: getattr(part, name) for name in ARRAYS}
    facts = {name: getattr(part, name) for name in FACTS}
    return pack_arrays(arrays, facts)


def unpack_routed(cell: bytes) -> Routed:
    arrays, facts = unpack_arrays(cell)
    return Routed(*(facts[name] for name in FACTS), *(arrays[name] for name in ARRAYS))


PORTIONS_SCHEMA = "number int, payload binary"
P = TypeVar("P")
R = TypeVar("R")


def spread_on_spark(
    session: SparkSession, work: Callable[[P], R], portions: Sequence[P]
) -> list[R]:
    """Call `work` on each portion in Spark tasks, or here if there is only one."""
    if len(portions) == 1:
        return [work(portions[0])]
    return run_portions(session, work, portions)


def run_portions(session: SparkSession, work: Callable[[P], R], portions: Sequence[P]) -> list[R]:
    """Call `work` on each portion in Spark tasks; returns results in order.

    There is one task per core, for several portions: a task costs more than most portions.
    """
    cores = session.sparkContext.defaultParallelism
    tasks = session.range(0, len(portions), 1, min(len(portions), cores))
    packed = [pickle.dumps(portion) for portion in portions]
    table = tasks.mapInArrow(
        partial(run_numbered_portions, work, packed), PORTIONS_SCHEMA
    ).toArrow()
    done = dict(zip(table["number"].to_pylist(), table["payload"].to_pylist(), strict=True))
    return [pickle.loads(done[number]) for number in range(len(portions))]


def run_numbered_portions(
    work: Callable[[Any], Any], packed: list[bytes], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Call `work` on the numbered portions."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            made = pickle.dumps(work(pickle.loads(packed[number])))
            yield pa.RecordBatch.from_arrays(
                [pa.array([number], pa.int32()), pa.array([made], pa.binary())],
                names=["number", "payload"],
            )


def replay_on_spark(
    session: SparkSession,
    coordinator: Coordinator,
    log: Source,
    *,
    batch_rows: int,
    workers: int = 1,
    after: Callable[[Manifest], None],
    until: Callable[[], bool] | None = None,
) -> None:
    """Run the rest of a log, calling `after` after each commit.

    With `until`, follow the growing log until it returns true.
    """
    failure: list[Exception] = []
    finished: list[bool] = []
    coordinator.spread_by(partial(spread_on_spark, session))

    def step(_: DataFrame, tick: int) -> None:
        if finished or failure:
            return
        try:
            start = coordinator.latest.offset
            at_work = max(workers, coordinator.planners.workers)  # their number may grow
            cap = coordinator.cap_rows(batch_rows)
            refs = log.plan_capped(start, batch_rows, cap, max(at_work, 2))
            if refs:
                run = partial(run_on_spark, session, refs, at_work)
                after(coordinator.step(coordinator.latest.batch + 1, log.end(refs), run))
            if until() if until is not None else not refs:
                finished.append(True)
        except Exception as error:
            failure.append(error)

    with tempfile.TemporaryDirectory(prefix="placewire-ticks-") as checkpoint:
        query = None
        try:
            query = (
                session.readStream.format("rate-micro-batch")
                .options(rowsPerBatch="1", numPartitions="1")
                .load()
                .writeStream.foreachBatch(step)
                .option("checkpointLocation", checkpoint)
                .trigger(processingTime="0 seconds")
                .start()
            )
            while not finished and not failure and not query.awaitTermination(0.05):
                pass
        except (PySparkException, Py4JError) as error:
            failure.append(error)
        finally:
            if query is not None:
                # After Ctrl-C the JVM may have exited; committed batches are safe.
                with contextlib.suppress(Exception):
                    query.stop()
    if failure:
        if isinstance(failure[0], Unusable):
            raise failure[0]
        raise Unusable(f"the Spark query failed: {summarize_error(failure[0])}") from failure[0]
    if not finished:
        raise Unusable("the Spark query stopped before the log was done")
