"""Replaying a log on Spark: a streaming query whose every micro-batch is one coordinator step."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from placewire.engine.coordinator import Coordinator
from placewire.engine.log import Offset
from placewire.model.errors import Unusable
from placewire.spark.pipeline import run_on_spark
from placewire.spark.source import EventLogSource
from placewire.state.manifest import Manifest


def replay_on_spark(
    session: SparkSession,
    coordinator: Coordinator,
    log: Path,
    *,
    batch_rows: int,
    workers: int,
    after: Callable[[Manifest], None],
    options: Mapping[str, str] | None = None,
    until: Callable[[], bool] | None = None,
) -> None:
    """Run what is left of a log, calling `after` after each commit; `options` are the source's.

    With `until` the log is growing: it is followed until that says true.
    """
    session.dataSource.register(EventLogSource)
    failure: list[Exception] = []
    checkpoint = coordinator.state.checkpoint

    settled = {
        "rows": str(batch_rows),
        "blocks": str(max(workers, 2)),
        "growing": "false" if until is None else "true",
        **(options or {}),
    }
    planner = EventLogSource({"path": str(log), **settled}).streamReader(StructType())

    def step(_: DataFrame, batch: int) -> None:
        try:
            end = planned_end(checkpoint, batch)
            if coordinator.committed(batch, end):
                return
            refs = planner.plan_between(Offset(**coordinator.latest.offset), end)
            after(coordinator.step(batch, end, partial(run_on_spark, session, refs, workers)))
        except Exception as error:
            failure.append(error)
            raise

    query = (
        session.readStream.format(EventLogSource.name())
        .option("path", str(log))
        .options(**settled)
        .load()
        .writeStream.foreachBatch(step)
        .option("checkpointLocation", str(checkpoint))
        .trigger(**({"availableNow": True} if until is None else {"processingTime": "0 seconds"}))
        .start()
    )
    try:
        if until is None:
            query.awaitTermination()
        while until is not None and not until() and not query.awaitTermination(1):
            pass
    except PySparkException as error:
        if failure and isinstance(failure[0], Unusable):
            raise failure[0] from None
        raise Unusable(
            f"the Spark query failed: {first_line(failure[0] if failure else error)}"
        ) from error
    finally:
        query.stop()


def planned_end(checkpoint: Path, batch: int) -> Offset:
    """Where Spark's offset log says that a batch ends; it is written before the batch runs."""
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    return Offset(**json.loads(lines[-1]))


def first_line(error: Exception) -> str:
    """An error in one line."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]
