"""A sink that passes the results of a batch to a function as a DataFrame."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from placewire.sinks.delivery import Delivered

ResultsFunction = Callable[[DataFrame, int], None]


class CallSink:
    """Calls a function with a DataFrame of results and the number of their batch."""

    def __init__(
        self,
        session: SparkSession,
        function: ResultsFunction,
        name: str = "call",
        dead: bool = False,
    ) -> None:
        self.session = session
        self.function = function
        self.name = name
        self.dead = dead

    def write(self, delivered: Delivered) -> None:
        """Call the function, unless there are no results."""
        if delivered.table.num_rows:
            self.function(self.session.createDataFrame(delivered.table), delivered.batch)
