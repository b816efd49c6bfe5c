"""Run a streaming job from a configuration until it is stopped.

A query that fails is restarted from the last commit, with growing pauses. An invalid
configuration ends the run at once.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
from py4j.protocol import Py4JError
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from placewire.model.errors import Unusable
from placewire.sinks.delivery import Sink
from placewire.sinks.delta import DeltaSink
from placewire.sinks.files import FolderSink, LineSink
from placewire.spark.config import RunConfig, SinkConfig, read_run_settings
from placewire.spark.failures import find_unusable, summarize_error
from placewire.spark.kafka import KafkaSink
from placewire.spark.lag import LagMeter
from placewire.spark.session import jvm_ended
from placewire.spark.sources import open_source
from placewire.spark.stream import Stream, StreamStopped
from placewire.storage.filesystem import Unreachable
from placewire.storage.manifest import Manifest
from placewire.storage.runtime_files import write_lag
from placewire.storage.spark_checkpoint import FOLDER as CHECKPOINT

ORDER = ("subscriptions", "events", "objects")  # in a batch
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
                    raise Unusable("Spark: its Java process has ended; start again") from None
                if available and self.failures + 1 >= MAX_FAILURES:
                    told = f"given up after {MAX_FAILURES} failures in a row"
                    raise Unusable(f"{told}: {summarize_error(error)}") from None
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
