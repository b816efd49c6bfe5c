"""Match streaming DataFrames with subscriptions and deliver results to sinks."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from placewire.batch.coordinator import Coordinator
from placewire.batch.resize import read_workers
from placewire.ingest.sources import block_rows, identify_stream, next_blocks
from placewire.model.errors import Unusable
from placewire.model.kinds import check_buffer
from placewire.model.settings import Settings, check_settings
from placewire.plans.rebalance.rebalancer import read_rebalance
from placewire.sinks.delivery import Delivered, Delivery, Sink
from placewire.sinks.files import FolderSink
from placewire.spark.columns import check_frames, select_changes, select_lines, select_objects
from placewire.spark.datasource import RESULTS
from placewire.spark.intake import write_blocks
from placewire.spark.session import count_machines, on_cluster
from placewire.spark.stages import run_on_spark, spread_on_spark
from placewire.storage.intake import Checkpoint, Intake, IntakeBatch
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest
from placewire.storage.mirror import MOST_BYTES, machine_cache

STATIC_BATCH = -1  # the intake number of frames that do not stream
BATCH_ROWS = 200_000
CACHE_GB = MOST_BYTES / (1 << 30)
STOP_TIMEOUT_S = 60.0  # for the current batch to end
ResultsFunction = Callable[[DataFrame, int], None]


class Stream:
    """Matches streaming DataFrames with subscriptions, keeping its state in `state`.

    A stream that was stopped or killed resumes from the last commit when it is created with the
    same state. `plan`, `workers`, `rebalance`, `batch_rows` and `buffer` are the options of
    `placewire replay` and never change results. `settings` is a dict with the names of a settings
    file. With `with_data`, results include the data of objects. `state` is a directory or a URI
    that pyarrow opens; files of a URI are cached in the folder `cache` of each machine, up to about
    `cache_gb`.
    """

    def __init__(
        self,
        spark: SparkSession,
        *,
        state: Path | str,
        settings: Settings | dict[str, Any] | None = None,
        plan: str = "shared",
        workers: int | str | None = None,
        rebalance: str = "auto",
        batch_rows: int = BATCH_ROWS,
        with_data: bool = False,
        buffer: str = "cskyband",
        archive: Path | str | None = None,
        cache: Path | str | None = None,
        cache_gb: float = CACHE_GB,
    ) -> None:
        if batch_rows < 1:
            raise Unusable(f"batch_rows: must be 1 or more, got {batch_rows}")
        checked = check_settings(settings)
        span = read_workers(workers or spark.sparkContext.defaultParallelism)
        self.spark = spark
        if cache is None and not on_cluster(spark):
            cache = machine_cache()  # shared by this process and its tasks
        self.state = StateDir.given(state, str(cache or ""), round(cache_gb * (1 << 30)))
        self.batch_rows = batch_rows
        self.with_data = with_data
        self._open: Callable[[], Coordinator] = lambda: Coordinator(
            self.state,
            checked,
            identify_stream,
            plan,
            span if span.most > span.least else span.least,
            archive=archive,
            buffer=check_buffer(buffer),
            rebalance=read_rebalance(rebalance),
        )
        self.coordinator: Coordinator | None = None
        self.runner: MicroBatchRunner | None = None
        self.closed = threading.Event()  # the state is released
        self.stopping = threading.Event()  # end the query after the current batch

    def start(
        self,
        objects: DataFrame | None = None,
        subscriptions: DataFrame | None = None,
        events: DataFrame | None = None,
        *,
        to: Sink | ResultsFunction | Sequence[Sink | ResultsFunction] = (),
        object_columns: Mapping[str, str] | None = None,
        subscription_columns: Mapping[str, str] | None = None,
        event_column: str = "value",
        trigger: Mapping[str, Any] | None = None,
        after: Callable[[Manifest], None] | None = None,
    ) -> StreamingQuery:
        """Start and return the streaming query.

        `objects` and `subscriptions` have the fields of their events as columns, found by name or
        by the mappings; `events` has whole events as JSON. Each batch of the sources is ordered:
        subscriptions first, then events, then objects, each in the order of partitions; the order
        is recorded before matching. A frame that does not stream is read once, before all others.
        `to` are sinks, or functions of a DataFrame of results and a batch number; without any,
        results are kept in the state, where format `placewire` reads them as a table or stream.
        `trigger` has the arguments of Spark's `DataStreamWriter.trigger`.
        """
        given = {"subscriptions": subscriptions, "events": events, "objects": objects}
        check_frames(**{name: frame for name, frame in given.items() if frame is not None})
        frames: list[DataFrame] = []
        if subscriptions is not None:
            frames.append(select_changes(subscriptions, subscription_columns))
        if events is not None:
            frames.append(select_lines(events, event_column))
        if objects is not None:
            frames.append(select_objects(objects, object_columns, extra=self.with_data))
        return self.start_frames(frames, to=to, trigger=trigger, after=after)

    def start_frames(
        self,
        frames: Sequence[DataFrame],
        *,
        to: Sink | ResultsFunction | Sequence[Sink | ResultsFunction] = (),
        trigger: Mapping[str, Any] | None = None,
        after: Callable[[Manifest], None] | None = None,
    ) -> StreamingQuery:
        """Start with frames of the intake schema, in their order in a batch."""
        streaming = [frame for frame in frames if frame.isStreaming]
        static = [frame for frame in frames if not frame.isStreaming]
        if not streaming:
            raise Unusable("stream: needs a streaming DataFrame; for tables there is match()")
        sinks = make_sinks(self.spark, to)
        self.runner = runner = MicroBatchRunner(
            self.spark, self._open(), self.batch_rows, self.stopping
        )
        self.coordinator = runner.coordinator
        try:
            sinks = sinks or [FolderSink(RESULTS, self.state.folder(RESULTS))]
            runner.open(Delivery(self.state, sinks, self.with_data), after)
            if static:
                runner.run_batch(union_frames(static), STATIC_BATCH)
            query = (
                union_frames(streaming)
                .writeStream.foreachBatch(runner.run_batch)
                .option("checkpointLocation", f"file://{runner.checkpoint.folder}")
                .trigger(**(trigger or {"processingTime": "0 seconds"}))
                .start()
            )
        except BaseException:
            runner.close()
            raise
        threading.Thread(target=self._close_after, args=(query, runner), daemon=True).start()
        return query

    def stop(self, query: StreamingQuery, wait_s: float = STOP_TIMEOUT_S) -> None:
        """Stop a query after the current batch, so that no work is repeated."""
        self.stopping.set()
        idle_since = time.monotonic()
        while query.isActive and time.monotonic() - idle_since < wait_s:
            if not query.status["isTriggerActive"]:
                break
            time.sleep(0.02)
        query.stop()
        self.closed.wait(wait_s)

    @property
    def problem(self) -> Exception | None:
        """The error of a failed batch, which Spark does not pass on."""
        return self.runner.problem if self.runner is not None else None

    def undelivered(self) -> dict[str, int]:
        """How many committed batches each sink lacks."""
        return self.runner.undelivered() if self.runner is not None else {}

    def _close_after(self, query: StreamingQuery, runner: MicroBatchRunner) -> None:
        """Release the state when the query has ended."""
        with contextlib.suppress(Exception):  # the caller that waits for the query gets the error
            query.awaitTermination()
        try:
            runner.close()
        finally:
            self.closed.set()


def union_frames(frames: list[DataFrame]) -> DataFrame:
    """Concatenate frames of the intake schema."""
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    return whole


def make_sinks(
    spark: SparkSession, to: Sink | ResultsFunction | Sequence[Sink | ResultsFunction]
) -> list[Sink]:
    """Return sinks as given, and wrap functions as sinks; raises Unusable for others."""
    given: list[Any] = list(to) if isinstance(to, Sequence) else [to]
    for one in given:
        if not hasattr(one, "write") and not callable(one):
            raise Unusable(f"to: must be functions or sinks, got {one!r}")
    return [
        one if hasattr(one, "write") else CallSink(spark, one, f"call{number}")
        for number, one in enumerate(given)
    ]


class StreamStopped(Exception):
    """The query was asked to stop; uncommitted rows are processed again on resume."""


class MicroBatchRunner:
    """Runs the micro-batches of a query until `stopping` is set.

    Keeps the error of a failed batch as `problem`, since Spark does not pass it on.
    """

    def __init__(
        self,
        spark: SparkSession,
        coordinator: Coordinator,
        batch_rows: int,
        stopping: threading.Event,
    ) -> None:
        self.spark = spark
        self.coordinator = coordinator
        self.batch_rows = batch_rows
        self.stopping = stopping
        self.intake = Intake(coordinator.state)
        self.checkpoint = Checkpoint(coordinator.state)
        self.delivery: Delivery | None = None
        self.after: Callable[[Manifest], None] | None = None
        self.problem: Exception | None = None

    def open(self, delivery: Delivery, after: Callable[[Manifest], None] | None) -> None:
        """Deliver up to the last commit and prepare for the next batch."""
        self._check_checkpoint()
        self.delivery, self.after = delivery, after
        delivery.deliver(self.coordinator.latest)
        self.coordinator.planners.set_machines(partial(count_machines, self.spark))
        self.coordinator.spread_by(partial(spread_on_spark, self.spark))

    def _check_checkpoint(self) -> None:
        """Raise Unusable if the intake has no checkpoint: the query would skip data."""
        self.intake.make()
        self.checkpoint.pull()
        last = self.intake.last()
        if last is not None and last >= 0 and not self.checkpoint.exists:
            raise Unusable(
                f"state {self.coordinator.state}: its checkpoint is missing; start a new state"
            )

    def run_batch(self, frame: DataFrame, number: int) -> None:
        """Record and run a batch of the sources."""
        try:
            recorded = self._record(frame, number)
            if recorded is not None:
                self._run(recorded)
                self.intake.tidy()
        except Exception as error:
            self.problem = error
            raise

    def _record(self, frame: DataFrame, number: int) -> IntakeBatch | None:
        """Record the order of a batch unless it is recorded; None if all of it is committed."""
        self._check_stop()
        recorded = self.intake.read(number)
        if recorded is not None:
            return recorded
        last = self.intake.last()
        if last is not None and number <= last:
            return None  # committed before
        rows = block_rows(self.coordinator.cap_rows(self.batch_rows))
        blocks = write_blocks(frame, self.coordinator.state.name, rows)
        recorded = IntakeBatch(self.coordinator.latest.offset.byte, blocks)
        self.checkpoint.push()
        self.intake.record(number, recorded)
        return recorded

    def _run(self, recorded: IntakeBatch) -> None:
        """Run the rest of a recorded batch in coordinator batches."""
        coordinator = self.coordinator
        assert self.delivery is not None
        while True:
            start = coordinator.latest.offset
            refs, end = next_blocks(recorded, start, coordinator.cap_rows(self.batch_rows))
            if not refs:
                return
            self._check_stop()
            run = partial(run_on_spark, self.spark, refs, coordinator.planners.workers)
            manifest = coordinator.step(coordinator.latest.batch + 1, end, run)
            self.delivery.deliver(manifest)
            coordinator.delivered = min(self.delivery.delivered, manifest.batch)
            if self.after is not None:
                self.after(manifest)

    def _check_stop(self) -> None:
        """Raise StreamStopped if the query was asked to stop."""
        if self.stopping.is_set():
            raise StreamStopped("asked to stop between two batches")

    def undelivered(self) -> dict[str, int]:
        """How many committed batches each sink lacks."""
        if self.delivery is None:
            return {}
        return self.delivery.lacking(self.coordinator.latest.batch)

    def close(self) -> None:
        """Release the state."""
        with contextlib.suppress(Unusable):  # pushed again with the next batch
            self.checkpoint.push()
        self.coordinator.close()


class CallSink:
    """Calls a function with a DataFrame of results and the number of their batch."""

    def __init__(
        self,
        session: SparkSession,
        function: ResultsFunction,
        name: str = "call",
        dead: bool = False,
    ) -> None:
        self.session = session
        self.function = function
        self.name = name
        self.dead = dead

    def write(self, delivered: Delivered) -> None:
        """Call the function, unless there are no results."""
        if delivered.table.num_rows:
            self.function(self.session.createDataFrame(delivered.table), delivered.batch)
