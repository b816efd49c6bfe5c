"""A Delta table as a streaming source: what there is, then what each commit adds, in order."""

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

from placewire.ingest.delta_log import DataFile, DeltaLog, Position, SkippedCommits, check_table
from placewire.model.errors import Unusable
from placewire.storage.delta_tables import TablePlace, in_one_line
from placewire.storage.filesystem import Unreachable

FORMAT = "placewire_delta"
FILES = "16"  # in a portion, unless it is given
ROWS = 20_000  # of a file at a time
OWN = ("maxFilesPerTrigger", "ignoreDeletes", "skipChangeCommits")
# Options of Delta's own source that mean something, and not here.
REFUSED = {
    "startingVersion", "startingTimestamp", "endingVersion", "endingTimestamp", "versionAsOf",
    "timestampAsOf", "ignoreChanges", "ignoreFileDeletion", "maxBytesPerTrigger", "readChangeFeed",
    "readChangeData", "excludeRegex", "failOnDataLoss", "schemaTrackingLocation",
}  # fmt: skip


def read_delta(
    spark: SparkSession, path: str, options: Mapping[str, str] | None = None
) -> DataFrame:
    """The rows of a table as a stream; raises Unusable.

    `options` are `maxFilesPerTrigger`, `ignoreDeletes` and `skipChangeCommits` as of Delta's own
    source; all others are those of delta-rs for the table's store.
    """
    given = dict(options or {})
    known = {name.lower(): name for name in (*OWN, *REFUSED)}  # as Spark has it, in any case
    given = {known.get(name.lower(), name): value for name, value in given.items()}
    own = {name: given.pop(name) for name in OWN if name in given}
    place = TablePlace("source", path, given)
    for name in sorted(REFUSED & given.keys()):
        raise Unusable(f"{place.label}: option {name} must be one of {', '.join(OWN)}")
    most = own.get(OWN[0], FILES)
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
    # As one text: Spark forgets how names of options are written.
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
    """A table that grows, so many files at a time."""

    def __init__(self, options: dict[str, str], schema: pa.Schema) -> None:
        named = {name.lower(): value for name, value in options.items()}
        self.place = TablePlace("source", named["path"], json.loads(named["store"]))
        self.known = int(named["known"])
        self.most = int(named.get("maxfilespertrigger", FILES))
        self.skipped = SkippedCommits(
            named.get("ignoredeletes") == "true", named.get("skipchangecommits") == "true"
        )
        self.schema = schema
        self.log: DeltaLog | None = None
        self.last: Position | None = None  # what there is, if no more is to be taken
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
        if self.log is None:  # not when it is made: it goes to other processes then
            self.log = DeltaLog(self.place, self.known, self.skipped)
        return self.log


def read_file(place: TablePlace, file: DataFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a file in a table's columns."""
    label = f"{place.label}: {file.path}"
    try:
        with place.files().open_input_file(file.path) as opened:
            parquet = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")
            for batch in parquet.iter_batches(ROWS):
                yield fit(batch, file.values, schema)
    except FileNotFoundError:
        raise Unusable(f"{label} is gone before it was read; begin a new state") from None
    except OSError as error:
        raise Unreachable(f"{label} cannot be read: {in_one_line(error)}") from None
    except pa.ArrowException as error:
        raise Unusable(f"{label} cannot be read: {in_one_line(error)}") from None


def fit(batch: pa.RecordBatch, values: dict[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    """Rows in a table's columns: those of its partition filled in, null where a file is older."""
    names = {name.lower(): at for at, name in enumerate(batch.schema.names)}
    columns = []
    for field in schema:
        if field.name in values:
            value = part_value(values[field.name], field.type)
            columns.append(pa.repeat(value, batch.num_rows))
        elif field.name.lower() in names:
            columns.append(batch.column(names[field.name.lower()]).cast(field.type))
        else:
            columns.append(pa.nulls(batch.num_rows, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def part_value(value: Any, kind: pa.DataType) -> pa.Scalar:
    """A value of a partition, which commits have as text and snapshots as it is."""
    if not isinstance(value, str):
        return pa.scalar(value, kind)
    if value == "":
        return pa.scalar(None, kind)
    if pa.types.is_timestamp(kind):  # in UTC, if no zone is told
        return pa.scalar(value.removesuffix("Z")).cast(pa.timestamp("us")).cast(kind)
    return pa.scalar(value).cast(kind)
