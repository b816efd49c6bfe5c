"""Sinks on Spark: a batch's results as a DataFrame, for whatever Spark can write to."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from placewire.engine.delivery import Delivered
from placewire.spark.packages import fitting, require_format

Taker = Callable[[DataFrame, int], None]


class CallSink:
    """Calls a function with a DataFrame of results and the number of their batch."""

    def __init__(
        self, session: SparkSession, taker: Taker, name: str = "call", dead: bool = False
    ) -> None:
        self.session = session
        self.taker = taker
        self.name = name
        self.dead = dead

    def write(self, delivered: Delivered) -> None:
        if delivered.table.num_rows:
            self.taker(self.session.createDataFrame(delivered.table), delivered.batch)


class DeltaSink:
    """Appends to a Delta table, where a batch that comes again is known by its number."""

    def __init__(self, session: SparkSession, name: str, path: str, dead: bool = False) -> None:
        require_format(session, "delta")
        self.session = session
        self.name = name
        self.path = path
        self.dead = dead

    def write(self, delivered: Delivered) -> None:
        frame = self.session.createDataFrame(delivered.table)
        key = "-".join(map(str, delivered.manifest.key))
        writer = frame.write.format("delta").mode("append")
        writer = writer.option("txnAppId", f"placewire-{key}-{self.name}")
        with fitting("delta"):
            writer.option("txnVersion", str(delivered.batch)).save(self.path)
