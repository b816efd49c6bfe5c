"""A stream: any streaming DataFrames in, results to any sink, on the session that there is."""

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
from placewire.ingest.log import Offset
from placewire.ingest.sources import block_rows, identify_stream, next_blocks
from placewire.kinds.relevant.results import read_rule
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.settings import Settings, parse_settings
from placewire.plans.rebalance.elastic import read_workers
from placewire.plans.rebalance.rebalancer import read_rebalance
from placewire.sinks.delivery import Delivery, Sink
from placewire.sinks.files import FolderSink
from placewire.spark.columns import check_frames, take_changes, take_lines, take_objects
from placewire.spark.datasource import RESULTS
from placewire.spark.intake import write_blocks
from placewire.spark.session import count_machines, on_cluster
from placewire.spark.sinks import CallSink, Taker
from placewire.spark.stages import run_on_spark, spread_on_spark
from placewire.storage.intake_record import Intake, IntakeBatch
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest
from placewire.storage.mirror import MOST_BYTES, machine_cache
from placewire.storage.spark_checkpoint import Checkpoint

STANDING = -1  # the intake's number for frames that do not stream
BATCH_ROWS = 200_000
CACHE_GB = MOST_BYTES / (1 << 30)
STOPS_S = 60.0  # how long a batch at work is waited for


class Stream:
    """Standing subscriptions over streaming DataFrames, with all that is known in `state`.

    A stream that was stopped or killed goes on where it was when it is made anew with the same
    state. Results never depend on `plan`, `workers`, `rebalance`, `batch_rows` or `buffer`; these
    are the options of `placewire replay`. `settings` is a dict with the names of a settings file.
    With `with_data` results carry what objects carry. `state` is a directory, or a URI that
    pyarrow opens; files of the latter are copied to the folder `cache` of each machine, which grows
    to about `cache_gb`.
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
        if settings is not None and not isinstance(settings, Settings):
            try:
                settings = parse_settings(settings)
            except InvalidEvent as error:
                raise Unusable(f"settings: {error}") from None
        span = read_workers(workers or spark.sparkContext.defaultParallelism)
        self.spark = spark
        if cache is None and not on_cluster(spark):
            cache = machine_cache()  # so that tasks find what this process has
        self.state = StateDir.given(state, str(cache or ""), round(cache_gb * (1 << 30)))
        self.batch_rows = batch_rows
        self.with_data = with_data
        self._open: Callable[[], Coordinator] = lambda: Coordinator(
            self.state,
            settings or Settings(),
            identify_stream,
            plan,
            span if span.most > span.least else span.least,
            archive=archive,
            buffer=read_rule(buffer),
            rebalance=read_rebalance(rebalance),
        )
        self.coordinator: Coordinator | None = None
        self.taker: BatchTaker | None = None
        self.closed = threading.Event()  # the state is free for another
        self.stopping = threading.Event()  # the query is to end after the batch at work

    def start(
        self,
        objects: DataFrame | None = None,
        subscriptions: DataFrame | None = None,
        events: DataFrame | None = None,
        *,
        to: Sink | Taker | Sequence[Sink | Taker] = (),
        object_columns: Mapping[str, str] | None = None,
        subscription_columns: Mapping[str, str] | None = None,
        event_column: str = "value",
        trigger: Mapping[str, Any] | None = None,
        after: Callable[[Manifest], None] | None = None,
    ) -> StreamingQuery:
        """Start, and give the streaming query.

        `objects` and `subscriptions` have the columns of their events, found by name or as the
        mappings say; `events` has whole events as JSON. In each batch of the sources changes of
        subscriptions come first, then events, then objects, each in the order of their partitions;
        that order is recorded before anything is matched. A frame that does not stream is taken in
        once, before all others. `to` are functions of a DataFrame of results and a batch number,
        or sinks; without any, results are kept in the state, where format `placewire` reads them
        as a table or a stream. `trigger` is as of Spark's `DataStreamWriter.trigger`.
        """
        given = {"subscriptions": subscriptions, "events": events, "objects": objects}
        check_frames(**{name: frame for name, frame in given.items() if frame is not None})
        frames: list[DataFrame] = []
        if subscriptions is not None:
            frames.append(take_changes(subscriptions, subscription_columns))
        if events is not None:
            frames.append(take_lines(events, event_column))
        if objects is not None:
            frames.append(take_objects(objects, object_columns, extra=self.with_data))
        return self.start_frames(frames, to=to, trigger=trigger, after=after)

    def start_frames(
        self,
        frames: Sequence[DataFrame],
        *,
        to: Sink | Taker | Sequence[Sink | Taker] = (),
        trigger: Mapping[str, Any] | None = None,
        after: Callable[[Manifest], None] | None = None,
    ) -> StreamingQuery:
        """The same with frames of the intake's form, in the order that they have in a batch."""
        flowing = [frame for frame in frames if frame.isStreaming]
        standing = [frame for frame in frames if not frame.isStreaming]
        if not flowing:
            raise Unusable("stream: needs a streaming DataFrame; for tables there is match()")
        sinks = gather_sinks(self.spark, to)
        self.taker = taker = BatchTaker(self.spark, self._open(), self.batch_rows, self.stopping)
        self.coordinator = taker.coordinator
        try:
            sinks = sinks or [FolderSink(RESULTS, self.state.folder(RESULTS))]
            taker.begin(Delivery(self.state, sinks, self.with_data), after)
            if standing:
                taker.take(union(standing), STANDING)
            query = (
                union(flowing)
                .writeStream.foreachBatch(taker.take)
                .option("checkpointLocation", f"file://{taker.checkpoint.folder}")
                .trigger(**(trigger or {"processingTime": "0 seconds"}))
                .start()
            )
        except BaseException:
            taker.close()
            raise
        threading.Thread(target=self._close_after, args=(query, taker), daemon=True).start()
        return query

    def stop(self, query: StreamingQuery, wait_s: float = STOPS_S) -> None:
        """End a query after the batch at work, so that nothing is done twice."""
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
        """What went wrong with a batch; Spark tells only that something did."""
        return self.taker.problem if self.taker is not None else None

    def undelivered(self) -> dict[str, int]:
        """How many committed batches each sink lacks."""
        return self.taker.undelivered() if self.taker is not None else {}

    def _close_after(self, query: StreamingQuery, taker: BatchTaker) -> None:
        """Let go of the state when the query has ended, however it did."""
        with contextlib.suppress(Exception):  # whoever waits for the query is told
            query.awaitTermination()
        try:
            taker.close()
        finally:
            self.closed.set()


def union(frames: list[DataFrame]) -> DataFrame:
    """Frames of the intake's form, one after another."""
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    return whole


def gather_sinks(spark: SparkSession, to: Sink | Taker | Sequence[Sink | Taker]) -> list[Sink]:
    """Sinks as they are, functions as sinks that call them."""
    given: list[Any] = list(to) if isinstance(to, Sequence) else [to]
    for one in given:
        if not hasattr(one, "write") and not callable(one):
            raise Unusable(f"to: must be functions or sinks, got {one!r}")
    return [
        one if hasattr(one, "write") else CallSink(spark, one, f"call{number}")
        for number, one in enumerate(given)
    ]


class Stopped(Exception):
    """The query ends as it was asked to; what it had not committed comes again."""


class BatchTaker:
    """Takes what Spark gives, batch by batch, until `stopping` is set between two of its own.

    What goes wrong is kept as `problem`, since Spark tells only that something did.
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

    def begin(self, delivery: Delivery, after: Callable[[Manifest], None] | None) -> None:
        """Bring sinks up to the last commit, and be ready for the next batch."""
        self._check_checkpoint()
        self.delivery, self.after = delivery, after
        delivery.deliver(self.coordinator.latest)
        self.coordinator.planners.know_machines(partial(count_machines, self.spark))
        self.coordinator.spread_by(partial(spread_on_spark, self.spark))

    def _check_checkpoint(self) -> None:
        """A checkpoint and its intake belong together: one without the other would skip data."""
        self.intake.make()
        self.checkpoint.pull()
        last = self.intake.last()
        if last is not None and last >= 0 and not self.checkpoint.exists:
            raise Unusable(
                f"state {self.coordinator.state}: its checkpoint is gone; begin a new state"
            )

    def take(self, frame: DataFrame, number: int) -> None:
        """Take a batch of the sources."""
        try:
            recorded = self._record(frame, number)
            if recorded is not None:
                self._run(recorded)
                self.intake.tidy()
        except Exception as error:
            self.problem = error
            raise

    def _record(self, frame: DataFrame, number: int) -> IntakeBatch | None:
        """Fix the order of a batch, if that was not done before; None if all of it has run."""
        self._heed_stop()
        recorded = self.intake.read(number)
        if recorded is not None:
            return recorded
        last = self.intake.last()
        if last is not None and number <= last:
            return None  # committed long ago
        rows = block_rows(self.coordinator.cap_rows(self.batch_rows))
        blocks = write_blocks(frame, self.coordinator.state.name, rows)
        recorded = IntakeBatch(self.coordinator.latest.offset["byte"], blocks)
        self.checkpoint.push()
        self.intake.record(number, recorded)
        return recorded

    def _run(self, recorded: IntakeBatch) -> None:
        """Run what is left of a recorded batch, in batches of the coordinator's."""
        coordinator = self.coordinator
        assert self.delivery is not None
        while True:
            start = Offset(**coordinator.latest.offset)
            refs, end = next_blocks(recorded, start, coordinator.cap_rows(self.batch_rows))
            if not refs:
                return
            self._heed_stop()
            run = partial(run_on_spark, self.spark, refs, coordinator.planners.workers)
            manifest = coordinator.step(coordinator.latest.batch + 1, end, run)
            self.delivery.deliver(manifest)
            coordinator.delivered = min(self.delivery.delivered, manifest.batch)
            if self.after is not None:
                self.after(manifest)

    def _heed_stop(self) -> None:
        if self.stopping.is_set():
            raise Stopped("asked to stop between two batches")

    def undelivered(self) -> dict[str, int]:
        """How many committed batches each sink lacks."""
        if self.delivery is None:
            return {}
        return self.delivery.lacking(self.coordinator.latest.batch)

    def close(self) -> None:
        """Let go of the state."""
        with contextlib.suppress(Unusable):  # it comes again with the next batch
            self.checkpoint.push()
        self.coordinator.close()
