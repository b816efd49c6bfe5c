"""The event log as a Spark streaming source: its rows name blocks, they do not carry them.

A block crosses no border: the stage that works on it reads its byte range itself. The order is the
log's own, and the first seq of every block is known when the batch is planned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from placewire.engine.log import BlockRef, Offset, batch_end, plan_batch

SCHEMA = "number int, path string, first_seq long, start long, end long"
MOST_BYTES = 1 << 28


class BlockPartition(InputPartition):
    """One block of a batch."""

    def __init__(self, ref: BlockRef) -> None:
        self.ref = ref


class EventLogSource(DataSource):
    """`spark.readStream.format("placewire-log")` with options path, rows and blocks."""

    @classmethod
    def name(cls) -> str:
        return "placewire-log"

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> EventLogReader:
        return EventLogReader(
            self.options["path"], int(self.options["rows"]), int(self.options["blocks"])
        )


class EventLogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches of at most `rows` lines in at least `blocks` blocks."""

    def __init__(self, path: str, rows: int, blocks: int) -> None:
        self.path = path
        self.rows = rows
        self.blocks = blocks

    def prepareForTriggerAvailableNow(self) -> None:
        """A log that is replayed is finished: what is there now is all there is."""

    def initialOffset(self) -> dict[str, int]:
        return Offset()._asdict()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.rows)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        refs = plan_batch(self.path, Offset(**start), self.rows, MOST_BYTES, self.blocks)
        return (batch_end(refs) if refs else Offset(**start))._asdict()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[BlockPartition]:
        rows = end["seq"] - start["seq"]
        size = end["byte"] - start["byte"]
        refs = plan_batch(self.path, Offset(**start), rows, max(size, MOST_BYTES), self.blocks)
        return [BlockPartition(ref) for ref in refs]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, BlockPartition)
        yield tuple(partition.ref)
