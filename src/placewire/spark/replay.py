"""Replay a log on Spark: a streaming query that runs one coordinator step per trigger.

The coordinator decides and records batches; the query only triggers them. Its source is Spark's
`rate-micro-batch`, which runs in the JVM: for a source in Python, Spark starts Python processes to
plan every batch, 0.2 s of 0.5 (see docs/decisions/0003).
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from placewire.batch.coordinator import Coordinator
from placewire.ingest.sources import Source
from placewire.model.errors import Unusable
from placewire.spark.session import summarize_error
from placewire.spark.stages import run_on_spark, spread_on_spark
from placewire.storage.manifest import Manifest


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
