"""The Spark data source `placewire`: read event logs and results as tables or streams.

placewire.register(spark)
spark.readStream.format("placewire").load("log.jsonl")         # seq and value of events
spark.read.format("placewire").option("state", "state").load() # results of a stream
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from placewire.ingest.log import BlockRef, batch_end, check_lines, plan_batch, read_bytes
from placewire.ingest.sources import BATCH_BYTES
from placewire.kernels.json.objects import find_lines
from placewire.model.errors import Unusable
from placewire.sinks.files import list_batch_files
from placewire.sinks.outbox import SCHEMA
from placewire.storage.filesystem import Folder, as_uri
from placewire.storage.manifest import Offset

EVENTS = "seq bigint, value binary"
RESULTS = "results"  # folder in a state directory
ROWS = 200_000  # in a batch of a stream
ALL_ROWS = 1 << 62
TASKS = 8


class ScanPartition(InputPartition):
    """A block of a log, or a file of results."""

    def __init__(self, value: BlockRef | str) -> None:
        super().__init__(value)


class PlacewireSource(DataSource):
    """An event log by its path, or the results of a state."""

    @classmethod
    def name(cls) -> str:
        return "placewire"

    def schema(self) -> StructType | str:
        return from_arrow_schema(SCHEMA) if "state" in self.options else EVENTS

    def reader(self, schema: StructType) -> DataSourceReader:
        if "state" in self.options:
            return ResultsReader(results_folder(self.options["state"]))
        return LogReader(log_path(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        if "state" in self.options:
            return ResultsStream(results_folder(self.options["state"]))
        return LogStream(log_path(self.options), int(self.options.get("rows", ROWS)))


def register(spark: SparkSession) -> None:
    """Register the format `placewire` with a session."""
    spark.dataSource.register(PlacewireSource)


def log_path(options: Any) -> str:
    """Return the absolute path of the log; raises Unusable."""
    path = options.get("path")
    if path is None:
        raise Unusable("format placewire: needs the path of an event log, or the option state")
    check_lines(Path(path))
    return str(Path(path).absolute())


def results_folder(state: str) -> str:
    """Return the folder of a state's results, a path or URI; raises Unusable if there is none."""
    base, mark, options = (as_uri(state) or str(Path(state).absolute())).partition("?")
    folder = f"{base}/{RESULTS}{mark}{options}"
    place = Folder(folder)
    if not place.exists():
        label = place.label.removesuffix(f"/{RESULTS}")
        raise Unusable(f"state {label}: has no results; a stream without sinks keeps them there")
    return folder


class LogReader(DataSourceReader):
    """All events of a log."""

    def __init__(self, path: str) -> None:
        self.path = path

    def partitions(self) -> Sequence[InputPartition]:
        return plan_partitions(self.path, Offset(), ALL_ROWS, growing=False)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_lines(partition.value)


class LogStream(DataSourceStreamReader):
    """A growing log, at most `rows` events at a time."""

    def __init__(self, path: str, rows: int) -> None:
        self.path = path
        self.rows = rows

    def initialOffset(self) -> dict[str, int]:
        return Offset()._asdict()

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        refs = plan_batch(self.path, Offset(**start), self.rows, BATCH_BYTES, 1, growing=True)
        return batch_end(refs)._asdict() if refs else start

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return plan_partitions(self.path, Offset(**start), end["seq"] - start["seq"], growing=True)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_lines(partition.value)


def plan_partitions(path: str, start: Offset, rows: int, growing: bool) -> list[ScanPartition]:
    """Plan partitions for the next `rows` events after an offset."""
    if rows <= 0:
        return []
    return [ScanPartition(ref) for ref in plan_batch(path, start, rows, ALL_ROWS, TASKS, growing)]


def read_lines(ref: BlockRef) -> Iterator[pa.RecordBatch]:
    """Read the seqs and lines of a block."""
    raw = read_bytes(ref.path, ref.start, ref.end)
    offsets = find_lines(raw)
    if raw.size and raw[-1] != 10:
        raw, offsets = np.append(raw, np.uint8(10)), offsets.copy()
        offsets[-1] += 1
    whole = raw.tobytes()
    lines = whole.split(b"\n")[: offsets.size - 1]
    seqs = np.arange(ref.first_seq, ref.first_seq + len(lines))
    yield pa.RecordBatch.from_arrays(
        [pa.array(seqs, pa.int64()), pa.array(lines, pa.binary())], names=["seq", "value"]
    )


class ResultsReader(DataSourceReader):
    """All results so far."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def partitions(self) -> Sequence[InputPartition]:
        return [
            ScanPartition(file) for _, file in sorted(list_batch_files(Folder(self.folder)).items())
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_results(self.folder, partition.value)


class ResultsStream(DataSourceStreamReader):
    """Results as a stream, batch by batch."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def initialOffset(self) -> dict[str, int]:
        return {"batch": -1}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        return {"batch": max(list_batch_files(Folder(self.folder)), default=start["batch"])}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        files = list_batch_files(Folder(self.folder))
        return [
            ScanPartition(file)
            for batch, file in sorted(files.items())
            if start["batch"] < batch <= end["batch"]
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_results(self.folder, partition.value)


def read_results(folder: str, name: str) -> Iterator[pa.RecordBatch]:
    """Read the results of a batch."""
    content = pa.py_buffer(Folder(folder).read(name))
    yield from pq.read_table(pa.BufferReader(content)).cast(SCHEMA).to_batches()
