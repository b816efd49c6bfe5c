"""The event log as a Spark streaming source: it decides where batches end, and carries nothing.

The stage that works on a block reads its byte range itself, so no event crosses the border between
the JVM and Python before it is decoded. The order is the log's own, and the first seq of every
block is known when the batch is planned. (Reading through the source costs a Python process of its
own for every task: 28 s for a million objects in 62 blocks, against 2 s; see docs/decisions.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from placewire.engine.log import BlockRef, Offset

SCHEMA = "first_seq long, end_seq long"
MOST_BYTES = 1 << 28


class BatchPartition(InputPartition):
    """A whole batch, by its first and last seq."""

    def __init__(self, start: dict[str, int], end: dict[str, int]) -> None:
        self.start = start["seq"]
        self.end = end["seq"]


class EventLogSource(DataSource):
    """`spark.readStream.format("placewire-log")` with options path, rows, blocks, format, first,
    growing.

    `format` is jsonl (default) or parquet (objects only); `first` is the first event's seq;
    a `growing` log (true or false) is followed.
    """

    @classmethod
    def name(cls) -> str:
        return "placewire-log"

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> EventLogReader:
        return EventLogReader(
            self.options["path"],
            int(self.options["rows"]),
            int(self.options["blocks"]),
            self.options.get("format", "jsonl"),
            int(self.options.get("first", "0")),
            self.options.get("growing", "false") == "true",
        )


class EventLogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches of at most `rows` lines in at least `blocks` blocks."""

    def __init__(
        self, path: str, rows: int, blocks: int, source_format: str, first: int, growing: bool
    ) -> None:
        self.path = path
        self.rows = rows
        self.blocks = blocks
        self.format = source_format
        self.first = first
        self.growing = growing

    def plan(self, start: Offset, rows: int, most_bytes: int = MOST_BYTES) -> list[BlockRef]:
        """The blocks of a batch of at most so many rows."""
        # Imported late: Spark loads this module in a process of its own for every batch.
        from placewire.engine.log import plan_batch
        from placewire.engine.parquet import plan_row_groups

        if self.format == "parquet":
            return plan_row_groups(self.path, start, rows)
        return plan_batch(self.path, start, rows, most_bytes, self.blocks, self.growing)

    def plan_between(self, start: Offset, end: Offset) -> list[BlockRef]:
        """The blocks of a batch whose end is decided."""
        return self.plan(start, end.seq - start.seq, max(MOST_BYTES, end.byte - start.byte))

    def prepareForTriggerAvailableNow(self) -> None:
        """A log that is replayed is finished: what is there now is all there is."""

    def initialOffset(self) -> dict[str, int]:
        return {"seq": self.first, "byte": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.rows)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        from placewire.engine.log import Offset, batch_end

        refs = self.plan(Offset(**start), self.rows)
        return batch_end(refs)._asdict() if refs else start

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [BatchPartition(start, end)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, BatchPartition)
        yield (partition.start, partition.end)
