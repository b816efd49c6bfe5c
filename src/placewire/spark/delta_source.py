"""A Delta table as a streaming source: its current rows, then those of each later commit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from placewire.model.errors import Unusable
from placewire.storage.delta_tables import (
    DataFile,
    DeltaLog,
    Position,
    SkippedCommits,
    TableLocation,
    check_table,
    join_causes,
)
from placewire.storage.filesystem import Unreachable

FORMAT = "placewire_delta"
MAX_FILES = "16"  # per trigger, by default
ROWS = 20_000  # of a file at a time
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
            for batch in parquet.iter_batches(ROWS):
                yield fit_columns(batch, file.values, schema)
    except FileNotFoundError:
        raise Unusable(f"{label} is gone before it was read; begin a new state") from None
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
