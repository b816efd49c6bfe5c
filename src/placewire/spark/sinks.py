"""Sinks on Spark: a batch's results as a DataFrame, for whatever Spark can write to."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

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

    def write(self, table: pa.Table, batch: int) -> None:
        self.taker(self.session.createDataFrame(table), batch)
