"""Running a configuration: sources to sinks until somebody says stop, whatever fails between.

A query that fails is started again from what is committed, with growing pauses. A mistake of the
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
from placewire.spark.config import RunConfig, SinkConfig, settings_of_config
from placewire.spark.failures import find_unusable, first_line
from placewire.spark.kafka import KafkaSink
from placewire.spark.lag import LagMeter
from placewire.spark.session import jvm_ended
from placewire.spark.sources import open_source
from placewire.spark.stream import Stopped, Stream
from placewire.storage.filesystem import Unreachable
from placewire.storage.manifest import Manifest
from placewire.storage.runtime_files import write_lag
from placewire.storage.spark_checkpoint import FOLDER as CHECKPOINT

ORDER = ("subscriptions", "events", "objects")  # in a batch
PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0)
FAILURES = 6  # in a row, after which a run that is to end by itself does
WATCH_S = 0.1
JVM_ENDS_S = 10.0  # that a JVM which was told to end has for it
LOOK_S = 1.0  # between two looks at how far it is behind

Tell = Callable[[str, dict[str, Any]], None]


class Run:
    """A configuration at work; `tell` is given what happens, as a name and facts."""

    def __init__(
        self,
        spark: SparkSession,
        config: RunConfig,
        tell: Tell,
        stopping: threading.Event | None = None,
    ) -> None:
        self.spark = spark
        self.config = config
        self.tell = tell
        self.stopping = stopping or threading.Event()
        self.sinks = [open_sink(spark, sink) for sink in config.sink]
        self.failures = 0
        self.stream: Stream | None = None  # at work
        self.looked = ""  # when the trigger began whose lag was told last

    def stop(self) -> None:
        """End after the batch at work; may be called from anywhere, a signal too."""
        self.stopping.set()

    def go(self, available: bool = False) -> None:
        """Run until stopped, or until what the sources have now is done; raises Unusable.

        In the latter case too after many failures in a row: whoever waits for the end is not to
        wait for ever.
        """
        while not self.stopping.is_set():
            try:
                if self._run_query(available):
                    return
            except Exception as error:
                if self.stopping.is_set() and jvm_ended(self.spark, JVM_ENDS_S):
                    return  # who stops a group of processes, or a service, stops them all
                if isinstance(error, Unusable) and not isinstance(error, Unreachable):
                    raise
                mistake = find_unusable(error)
                if mistake is not None:
                    raise mistake from None
                if jvm_ended(self.spark):
                    raise Unusable("Spark: its Java process has ended; start again") from None
                if available and self.failures + 1 >= FAILURES:
                    told = f"given up after {FAILURES} failures in a row"
                    raise Unusable(f"{told}: {first_line(error)}") from None
                self._pause(error)

    def _pause(self, error: Exception) -> None:
        pause_s = PAUSES_S[min(self.failures, len(PAUSES_S) - 1)]
        self.failures += 1
        facts: dict[str, Any] = {"error": first_line(error), "again_in_s": pause_s}
        if self.stream is not None:
            facts["undelivered"] = self.stream.undelivered()
        self.tell("failed", facts)
        self.stopping.wait(pause_s)

    def _run_query(self, available: bool) -> bool:
        """One query to its end; gives whether all is done."""
        config = self.config
        stream = Stream(
            self.spark,
            state=config.state,
            settings=settings_of_config(config),
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
        self.tell("started", {"batch": latest.batch, "events": latest.counters.events})
        stopper = threading.Thread(target=self._watch, args=(stream, query, meter), daemon=True)
        stopper.start()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if stream.problem is not None and not isinstance(stream.problem, Stopped):
                raise stream.problem from error
            if stream.problem is None:
                raise
        finally:
            stream.closed.wait()
            stopper.join()
        return True

    def _watch(self, stream: Stream, query: StreamingQuery, meter: LagMeter) -> None:
        """Stop the query when that is asked for, and tell how far it is behind meanwhile."""
        looked_s = time.monotonic()
        with contextlib.suppress(Py4JError, OSError):  # the JVM is gone; the query's end tells
            while query.isActive:
                if self.stopping.wait(WATCH_S):
                    stream.stop(query)
                    break
                if time.monotonic() - looked_s >= LOOK_S:
                    self._look(stream, query, meter)
                    looked_s = time.monotonic()
        self._look(stream, query, meter)

    def _look(self, stream: Stream, query: StreamingQuery, meter: LagMeter) -> None:
        """Tell how far the sources are ahead, if a trigger has ended since the last look."""
        try:
            progress = query.lastProgress
        except Exception:  # the session is going; what the query met is told elsewhere
            return
        if progress is None or progress["timestamp"] == self.looked:
            return
        self.looked = progress["timestamp"]
        lag = meter.measure(progress, stream.undelivered())
        write_lag(stream.state, lag)
        self.tell("lag", msgspec.to_builtins(lag))

    def _after(self, manifest: Manifest) -> None:
        self.failures = 0
        counters = manifest.counters
        self.tell(
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
    """A sink of the configuration; raises Unusable."""
    dead = sink.takes == "dead"
    if sink.format == "stdout":
        return LineSink(sink.name, sys.stdout.buffer, dead)
    if sink.format == "kafka":
        servers, topic = str(sink.servers), str(sink.topic)
        return KafkaSink(spark, sink.name, servers, topic, dead, sink.options)
    if sink.format == "delta":
        return DeltaSink(sink.name, str(sink.path), dead, sink.options)
    return FolderSink(sink.name, str(sink.path), sink.format, dead)
