"""Sinks on Spark: a batch's results as a DataFrame, for whatever Spark can write to."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from placewire.sinks.delivery import Delivered

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
