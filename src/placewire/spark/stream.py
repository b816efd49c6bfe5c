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

from placewire.engine.coordinator import Coordinator
from placewire.engine.delivery import Delivery, Sink
from placewire.engine.elastic import read_workers
from placewire.engine.folders import FolderSink
from placewire.engine.intake import block_rows, name_stream, next_blocks
from placewire.engine.log import Offset
from placewire.engine.rebalancing import read_rebalance
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.settings import Settings, settings_of
from placewire.spark.columns import take_changes, take_lines, take_objects
from placewire.spark.datasource import RESULTS
from placewire.spark.intake import write_blocks
from placewire.spark.pipeline import run_on_spark
from placewire.spark.portions import answer_on_spark, report_on_spark
from placewire.spark.session import count_machines
from placewire.spark.sinks import CallSink, Taker
from placewire.state.intake import Intake, IntakeBatch
from placewire.state.layout import StateDir
from placewire.state.livebuffers import read_rule
from placewire.state.manifest import Manifest

STANDING = -1  # the intake's number for frames that do not stream
BATCH_ROWS = 200_000
STOPS_S = 60.0  # how long a batch at work is waited for


class Stopped(Exception):
    """The query ends as it was asked to; what it had not committed comes again."""


class Stream:
    """Standing subscriptions over streaming DataFrames, with all that is known in `state`.

    A stream that was stopped or killed goes on where it was when it is made anew with the same
    state. Results never depend on `plan`, `workers`, `rebalance`, `batch_rows` or `buffer`; these
    are the options of `placewire replay`. `settings` is a dict with the names of a settings file.
    With `with_data` results carry what objects carry.
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
    ) -> None:
        if batch_rows < 1:
            raise Unusable(f"batch_rows: must be 1 or more, got {batch_rows}")
        if settings is not None and not isinstance(settings, Settings):
            try:
                settings = settings_of(settings)
            except InvalidEvent as error:
                raise Unusable(f"settings: {error}") from None
        span = read_workers(workers or spark.sparkContext.defaultParallelism)
        self.spark = spark
        self.state = StateDir(Path(state).absolute())
        self.batch_rows = batch_rows
        self.with_data = with_data
        self._open: Callable[[], Coordinator] = lambda: Coordinator(
            self.state,
            settings or Settings(),
            name_stream,
            plan,
            span if span.most > span.least else span.least,
            archive=None if archive is None else Path(archive),
            buffer=read_rule(buffer),
            rebalance=read_rebalance(rebalance),
        )
        self.coordinator: Coordinator | None = None
        self.problem: Exception | None = None  # with a batch
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
        coordinator = self._open()
        try:
            self._check_checkpoint(coordinator)
            sinks = sinks or [FolderSink(RESULTS, self.state.root / RESULTS)]
            delivery = Delivery(self.state, sinks, self.with_data)
            delivery.deliver(coordinator.latest)
            coordinator.planners.know_machines(partial(count_machines, self.spark))
            coordinator.ask = partial(answer_on_spark, self.spark)
            coordinator.report = partial(report_on_spark, self.spark)
            self.coordinator, self.delivery, self.after = coordinator, delivery, after
            if standing:
                self._take_batch(union(standing), STANDING)
            query = (
                union(flowing)
                .writeStream.foreachBatch(self._take_batch)
                .option("checkpointLocation", str(self.state.root / "checkpoint"))
                .trigger(**(trigger or {"processingTime": "0 seconds"}))
                .start()
            )
        except BaseException:
            coordinator.close()
            raise
        threading.Thread(target=self._close_after, args=(query, coordinator), daemon=True).start()
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

    def _check_checkpoint(self, coordinator: Coordinator) -> None:
        """A checkpoint and its intake belong together: one without the other would skip data."""
        self.intake = Intake(self.state)
        self.intake.make()
        last = self.intake.last()
        if last is not None and last >= 0 and not (self.state.root / "checkpoint").is_dir():
            raise Unusable(f"state {self.state.root}: its checkpoint is gone; begin a new state")

    def _take_batch(self, frame: DataFrame, number: int) -> None:
        """Take a batch in; what goes wrong is kept, since Spark tells only that something did."""
        try:
            self._run_batch(frame, number)
        except Exception as error:
            self.problem = error
            raise

    def _run_batch(self, frame: DataFrame, number: int) -> None:
        """Record a batch of the sources, then run what it came to."""
        coordinator = self.coordinator
        assert coordinator is not None
        if self.stopping.is_set():
            raise Stopped("asked to stop between two batches")
        last = self.intake.last()
        recorded = self.intake.read(number)
        if recorded is None:
            if last is not None and number <= last:
                return  # committed long ago
            rows = block_rows(coordinator.cap_rows(self.batch_rows))
            blocks = write_blocks(frame, str(self.state.root), rows)
            recorded = IntakeBatch(coordinator.latest.offset["byte"], blocks)
            self.intake.record(number, recorded)
        while True:
            start = Offset(**coordinator.latest.offset)
            cap = coordinator.cap_rows(self.batch_rows)
            refs, end = next_blocks(self.intake, recorded, start, cap)
            if not refs:
                break
            if self.stopping.is_set():
                raise Stopped("asked to stop between two batches")
            run = partial(run_on_spark, self.spark, refs, coordinator.planners.workers)
            manifest = coordinator.step(coordinator.latest.batch + 1, end, run)
            self.delivery.deliver(manifest)
            coordinator.delivered = min(self.delivery.delivered, manifest.batch)
            if self.after is not None:
                self.after(manifest)
        self.intake.tidy()

    def _close_after(self, query: StreamingQuery, coordinator: Coordinator) -> None:
        """Let go of the state when the query has ended, however it did."""
        with contextlib.suppress(Exception):  # whoever waits for the query is told
            query.awaitTermination()
        coordinator.close()
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
    return [
        one if hasattr(one, "write") else CallSink(spark, one, f"call{number}")
        for number, one in enumerate(given)
    ]
