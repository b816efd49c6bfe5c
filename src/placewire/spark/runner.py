"""Run a streaming job from a configuration until it is stopped: open sources and sinks, retry.

A query that fails is restarted from the last commit, with growing pauses. An invalid
configuration ends the run at once.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming import StreamingQuery

from placewire.model.errors import Unusable, first_line
from placewire.sinks.delivery import Sink
from placewire.sinks.delta import DeltaSink
from placewire.sinks.files import FolderSink, LineSink
from placewire.spark.columns import select_changes, select_lines, select_objects
from placewire.spark.config import RunConfig, SinkConfig, SourceConfig, read_run_settings
from placewire.spark.datasource import read_delta
from placewire.spark.kafka import KafkaSink, read_kafka
from placewire.spark.lag import LagMeter
from placewire.spark.session import find_unusable, jvm_ended, summarize_error
from placewire.spark.stream import Stream, StreamStopped
from placewire.storage.filesystem import Unreachable
from placewire.storage.intake import CHECKPOINT
from placewire.storage.manifest import Manifest
from placewire.storage.runtime_files import write_lag

ORDER = ("subscriptions", "events", "objects")  # in a batch
TYPES = {"objects": "object", "subscriptions": "subscribe"}
PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0)
MAX_FAILURES = 6  # consecutive ones, after which `run --once` gives up
POLL_S = 0.1
JVM_EXIT_TIMEOUT_S = 10.0
LAG_INTERVAL_S = 1.0

ReportEvent = Callable[[str, dict[str, Any]], None]


class Run:
    """A running configuration; calls `report` with the name and facts of each event."""

    def __init__(
        self,
        spark: SparkSession,
        config: RunConfig,
        report: ReportEvent,
        stopping: threading.Event | None = None,
    ) -> None:
        self.spark = spark
        self.config = config
        self.report = report
        self.stopping = stopping or threading.Event()
        self.sinks = [open_sink(spark, sink) for sink in config.sink]
        self.failures = 0
        self.stream: Stream | None = None  # of the current query
        self.last_trigger = ""  # timestamp of the last trigger whose lag was reported

    def stop(self) -> None:
        """Stop after the current batch; safe to call from any thread or signal handler."""
        self.stopping.set()

    def go(self, available: bool = False) -> None:
        """Run until stopped, or with `available` until current data is processed; raises Unusable.

        With `available`, gives up after MAX_FAILURES consecutive failures, so that a caller does
        not wait forever.
        """
        while not self.stopping.is_set():
            try:
                if self._run_query(available):
                    return
            except Exception as error:
                if self.stopping.is_set() and jvm_ended(self.spark, JVM_EXIT_TIMEOUT_S):
                    return  # a signal to the process group stops the JVM, too
                if isinstance(error, Unusable) and not isinstance(error, Unreachable):
                    raise
                mistake = find_unusable(error)
                if mistake is not None:
                    raise mistake from None
                if jvm_ended(self.spark):
                    raise Unusable(
                        "Spark: its Java process has exited; start the job again"
                    ) from None
                if available and self.failures + 1 >= MAX_FAILURES:
                    why = summarize_error(error)
                    raise Unusable(
                        f"gave up after {MAX_FAILURES} consecutive failures: {why}"
                    ) from None
                self._pause(error)

    def _pause(self, error: Exception) -> None:
        """Report a failure and wait before the next attempt."""
        pause_s = PAUSES_S[min(self.failures, len(PAUSES_S) - 1)]
        self.failures += 1
        facts: dict[str, Any] = {"error": summarize_error(error), "again_in_s": pause_s}
        if self.stream is not None:
            facts["undelivered"] = self.stream.undelivered()
        self.report("failed", facts)
        self.stopping.wait(pause_s)

    def _run_query(self, available: bool) -> bool:
        """Run one query to its end; returns whether the run is complete."""
        config = self.config
        stream = Stream(
            self.spark,
            state=config.state,
            settings=read_run_settings(config),
            plan=config.plan,
            workers=config.workers,
            rebalance=config.rebalance,
            batch_rows=config.batch_rows,
            with_data=config.with_data,
            buffer=config.buffer,
            archive=config.archive,
            cache=config.cache,
            cache_gb=config.cache_gb,
        )
        sources = sorted(config.source, key=lambda source: ORDER.index(source.takes))
        frames = [open_source(self.spark, source, config.with_data) for source in sources]
        trigger = {"availableNow": True} if available else {"processingTime": config.every}
        meter = LagMeter(sources, stream.state.root / CHECKPOINT)
        query = stream.start_frames(frames, to=self.sinks, trigger=trigger, after=self._after)
        assert stream.coordinator is not None
        self.stream = stream
        latest = stream.coordinator.latest
        self.report("started", {"batch": latest.batch, "events": latest.counters.events})
        stopper = threading.Thread(target=self._watch, args=(stream, query, meter), daemon=True)
        stopper.start()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if stream.problem is not None and not isinstance(stream.problem, StreamStopped):
                raise stream.problem from error
            if stream.problem is None:
                raise
        finally:
            stream.closed.wait()
            stopper.join()
        return True

    def _watch(self, stream: Stream, query: StreamingQuery, meter: LagMeter) -> None:
        """Stop the query on request, and report its lag meanwhile."""
        reported_s = time.monotonic()
        with contextlib.suppress(Py4JError, OSError):  # the JVM has exited; the query reports it
            while query.isActive:
                if self.stopping.wait(POLL_S):
                    stream.stop(query)
                    break
                if time.monotonic() - reported_s >= LAG_INTERVAL_S:
                    self._report_lag(stream, query, meter)
                    reported_s = time.monotonic()
        self._report_lag(stream, query, meter)

    def _report_lag(self, stream: Stream, query: StreamingQuery, meter: LagMeter) -> None:
        """Report the lag if a trigger has ended since the last report."""
        try:
            progress = query.lastProgress
        except Exception:  # the session is closing; the query reports its own failure
            return
        if progress is None or progress["timestamp"] == self.last_trigger:
            return
        self.last_trigger = progress["timestamp"]
        lag = meter.measure(progress, stream.undelivered())
        write_lag(stream.state, lag)
        self.report("lag", msgspec.to_builtins(lag))

    def _after(self, manifest: Manifest) -> None:
        """Report a committed batch."""
        self.failures = 0
        counters = manifest.counters
        self.report(
            "batch",
            {
                "batch": manifest.batch,
                "events": counters.events,
                "objects": counters.objects,
                "results": counters.results,
                "dead_letters": counters.dead_letters,
            },
        )


def open_sink(spark: SparkSession, sink: SinkConfig) -> Sink:
    """Open a sink of the configuration; raises Unusable."""
    dead = sink.takes == "dead"
    if sink.format == "stdout":
        return LineSink(sink.name, sys.stdout.buffer, dead)
    if sink.format == "kafka":
        servers, topic = str(sink.servers), str(sink.topic)
        return KafkaSink(spark, sink.name, servers, topic, dead, sink.options)
    if sink.format == "delta":
        return DeltaSink(sink.name, str(sink.path), dead, sink.options)
    return FolderSink(sink.name, str(sink.path), sink.format, dead)


def open_source(spark: SparkSession, source: SourceConfig, extra: bool) -> DataFrame:
    """Open a source; `extra` adds other columns of objects as data."""
    check_schema(source)
    frame = read_lines(spark, source) if source.format in ("jsonl", "kafka") else None
    if frame is None:
        frame = read_files(spark, source)
    elif source.schema is not None:
        frame = parse_lines(frame, source)
    else:
        return select_lines(frame, kind=TYPES.get(source.takes))
    if source.takes == "events":
        raise Unusable(
            f"source {source.format}: events are lines of JSON; takes must be objects or"
            " subscriptions"
        )
    if source.takes == "objects":
        return select_objects(frame, source.columns, extra)
    return select_changes(frame, source.columns)


def read_lines(spark: SparkSession, source: SourceConfig) -> DataFrame:
    """Read events as lines in a column `value`."""
    if source.format == "kafka":
        return read_kafka(
            spark,
            str(source.servers),
            str(source.topic),
            most_per_batch=source.rows,
            tombstones=source.takes == "subscriptions",
            options=source.options,
        )
    check_folder(source)
    reader = spark.readStream.option("lineSep", "\n").options(**limit_files(source))
    return reader.text(str(source.path))


def read_files(spark: SparkSession, source: SourceConfig) -> DataFrame:
    """Read Parquet, CSV or Delta as columns; the schema is inferred from existing files."""
    if source.format == "delta":
        return read_delta(spark, str(source.path), source.options)
    check_folder(source)
    options = {"header": "true"} if source.format == "csv" else {}
    options |= limit_files(source)
    schema: Any = source.schema
    if schema is None:
        try:
            schema = spark.read.format(source.format).options(**options).load(source.path).schema
        except PySparkException:
            raise Unusable(
                f"source {source.path}: has no file to infer columns from; set its schema"
            ) from None
    return (
        spark.readStream.format(source.format).schema(schema).options(**options).load(source.path)
    )


def parse_lines(frame: DataFrame, source: SourceConfig) -> DataFrame:
    """Parse lines of JSON into the columns of a schema."""
    parsed = F.from_json(F.col("value").cast("string"), source.schema, {"timeZone": "UTC"})
    return frame.select(parsed.alias("parsed")).select("parsed.*")


def limit_files(source: SourceConfig) -> dict[str, str]:
    """Return Spark's options for a folder, with a limit of files per trigger."""
    return {"maxFilesPerTrigger": "16"} | source.options


def check_schema(source: SourceConfig) -> None:
    """Check that a schema is valid DDL; raises Unusable."""
    if source.schema is None:
        return
    try:
        T.StructType.fromDDL(source.schema)
    except PySparkException as error:
        label = f"source {source.path or source.topic}: schema"
        raise Unusable(f"{label}: {first_line(error)}") from None


def check_folder(source: SourceConfig) -> None:
    """Check that a local folder exists; Spark checks others. Raises Unusable."""
    path = str(source.path)
    if "://" not in path and not any(sign in path for sign in "*?[{") and not Path(path).is_dir():
        what = "must be a folder, got a file" if Path(path).exists() else "does not exist"
        raise Unusable(f"source {path}: {what}")
