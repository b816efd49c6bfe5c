"""Spark data sources: event logs, results, and Delta tables.

Format `placewire` reads event logs and results as tables or streams. `read_delta` streams the
current rows of a Delta table, then those of each later commit.

    placewire.register(spark)
    spark.readStream.format("placewire").load("log.jsonl")         # seq and value of events
    spark.read.format("placewire").option("state", "state").load() # results of a stream
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from placewire.ingest.log import BlockRef, batch_end, check_lines, plan_batch, read_bytes
from placewire.ingest.sources import BATCH_BYTES
from placewire.kernels.json.objects import find_lines
from placewire.model.errors import Unusable
from placewire.sinks.files import list_batch_files
from placewire.sinks.outbox import SCHEMA
from placewire.storage.delta_tables import (
    DataFile,
    DeltaLog,
    Position,
    SkippedCommits,
    TableLocation,
    check_table,
    join_causes,
)
from placewire.storage.filesystem import Folder, Unreachable, as_uri
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
    content = pa.py_buffer(Folder(folder).read(name))
    yield from pq.read_table(pa.BufferReader(content)).cast(SCHEMA).to_batches()


FORMAT = "placewire_delta"
MAX_FILES = "16"  # per trigger, by default
FILE_ROWS = 20_000  # of a Delta table's file at a time
OWN = ("maxFilesPerTrigger", "ignoreDeletes", "skipChangeCommits")
# Options of Delta's own source that are not supported.
UNSUPPORTED = {
    "startingVersion", "startingTimestamp", "endingVersion", "endingTimestamp", "versionAsOf",
    "timestampAsOf", "ignoreChanges", "ignoreFileDeletion", "maxBytesPerTrigger", "readChangeFeed",
    "readChangeData", "excludeRegex", "failOnDataLoss", "schemaTrackingLocation",
}  # fmt: skip


def read_delta(
    spark: SparkSession, path: str, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Read a table as a stream; raises Unusable.

    `options` are `maxFilesPerTrigger`, `ignoreDeletes` and `skipChangeCommits`, as in Delta's own
    source; all others are storage options of delta-rs.
    """
    given = dict(options or {})
    known = {name.lower(): name for name in (*OWN, *UNSUPPORTED)}  # Spark ignores case
    given = {known.get(name.lower(), name): value for name, value in given.items()}
    own = {name: given.pop(name) for name in OWN if name in given}
    place = TableLocation("source", path, given)
    for name in sorted(UNSUPPORTED & given.keys()):
        raise Unusable(f"{place.label}: option {name} must be one of {', '.join(OWN)}")
    most = own.get(OWN[0], MAX_FILES)
    if not most.isdecimal() or int(most) < 1:
        raise Unusable(f"{place.label}: option {OWN[0]} must be 1 or more, got {most!r}")
    for name in OWN[1:]:
        if own.get(name, "true") not in ("true", "false"):
            raise Unusable(f"{place.label}: option {name} must be true or false, got {own[name]!r}")
    table = place.open()
    check_table(place, table)
    schema = StructType.fromJson(json.loads(table.schema().to_json())).toNullable()
    spark.dataSource.register(DeltaSource)
    reader = spark.readStream.format(FORMAT).schema(schema).options(**own)
    # As one JSON string: Spark does not keep the case of option names.
    reader = reader.option("store", json.dumps(given)).option("known", str(table.version()))
    return reader.load(path)


class DeltaSource(DataSource):
    """A table by its path."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return DeltaStream(dict(self.options), to_arrow_schema(schema, timezone="UTC"))


class DeltaStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A growing table, at most `most` files at a time."""

    def __init__(self, options: dict[str, str], schema: pa.Schema) -> None:
        named = {name.lower(): value for name, value in options.items()}
        self.place = TableLocation("source", named["path"], json.loads(named["store"]))
        self.known = int(named["known"])
        self.most = int(named.get("maxfilespertrigger", MAX_FILES))
        self.forgiven = SkippedCommits(
            named.get("ignoredeletes") == "true", named.get("skipchangecommits") == "true"
        )
        self.schema = schema
        self.log: DeltaLog | None = None
        self.last: Position | None = None  # where to stop, if the trigger is availableNow
        self.seen: Position | None = None

    def initialOffset(self) -> dict[str, Any]:
        return Position()._asdict()

    def prepareForTriggerAvailableNow(self) -> None:
        self.last = self._open().latest(Position())

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        at = Position(**start)
        log = self._open()
        self.seen = log.latest(at)
        last = self.seen
        if self.last is not None:
            snapshot = at.snapshot if at.snapshot >= 0 else self.last.version
            last = self.seen._replace(version=self.last.version, snapshot=snapshot)
        return log.advance(at, last, self.most)._asdict()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return None if self.seen is None else self.seen._asdict()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        files = self._open().between(Position(**start), Position(**end))
        return [InputPartition(file) for file in files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_file(self.place, partition.value, self.schema)

    def _open(self) -> DeltaLog:
        if self.log is None:  # opened late: the reader is pickled for other processes
            self.log = DeltaLog(self.place, self.known, self.forgiven)
        return self.log


def read_file(place: TableLocation, file: DataFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read a file in the columns of its table."""
    label = f"{place.label}: {file.path}"
    try:
        with place.files().open_input_file(file.path) as opened:
            parquet = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")
            for batch in parquet.iter_batches(FILE_ROWS):
                yield fit_columns(batch, file.values, schema)
    except FileNotFoundError:
        raise Unusable(f"{label} was deleted before it was read; start a new state") from None
    except OSError as error:
        raise Unreachable(f"{label} cannot be read: {join_causes(error)}") from None
    except pa.ArrowException as error:
        raise Unusable(f"{label} cannot be read: {join_causes(error)}") from None


def fit_columns(batch: pa.RecordBatch, values: dict[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    """Fit rows to the columns of a table: fill in partition values, null for added columns."""
    names = {name.lower(): at for at, name in enumerate(batch.schema.names)}
    columns = []
    for field in schema:
        if field.name in values:
            value = read_partition_value(values[field.name], field.type)
            columns.append(pa.repeat(value, batch.num_rows))
        elif field.name.lower() in names:
            columns.append(batch.column(names[field.name.lower()]).cast(field.type))
        else:
            columns.append(pa.nulls(batch.num_rows, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def read_partition_value(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Read a partition value, which is a string in commits and typed in snapshots."""
    if not isinstance(value, str):
        return pa.scalar(value, kind)
    if value == "":
        return pa.scalar(None, kind)
    if pa.types.is_timestamp(kind):  # in UTC by default
        return pa.scalar(value.removesuffix("Z")).cast(pa.timestamp("us")).cast(kind)
    return pa.scalar(value).cast(kind)
