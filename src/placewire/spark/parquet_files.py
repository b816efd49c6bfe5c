"""Read the Parquet files of a DataFrame in Python tasks instead of the JVM.

Rows that Spark reads and hands to Python cost several times as much (docs/benchmarks.md, `match`).
So if a DataFrame only selects columns of local Parquet files, tasks read the files themselves.
Spark computes any other DataFrame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

FORMAT = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
FORGIVING = ("ignoreCorruptFiles", "ignoreMissingFiles")
TEXTS = (pa.string(), pa.large_string())
NUMBERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64())
PLAIN = (*TEXTS, *NUMBERS, pa.bool_())
MAX_FILES = 2_000  # footers are read before the job
READERS = 8
# Uncompressed bytes of a task. A task costs about 50 ms, so a small table gets few.
MIN_TASK_BYTES, MAX_TASK_BYTES = 1 << 20, 1 << 26
ROWS = 32_768  # at a time


class FilePortion(NamedTuple):
    """Row groups first:last of a file."""

    path: str
    first: int
    last: int


class FileTable(NamedTuple):
    """The columns of a table, their names in the files, its row groups, and a number of tasks."""

    schema: pa.Schema
    names: list[str]
    portions: list[FilePortion]
    tasks: int


def find_files(frame: DataFrame) -> FileTable | None:
    """Find the Parquet files of a frame; None if Spark has to compute it."""
    spark = frame.sparkSession
    if any(str(spark.conf.get(f"spark.sql.files.{name}")).lower() == "true" for name in FORGIVING):
        return None
    schema = to_arrow_schema(frame.schema, timezone="UTC")
    if any(field.type not in PLAIN for field in schema):
        return None
    found = find_relation(frame)
    if found is None:
        return None
    names, uris = found
    paths = [unquote(urlsplit(uri).path) for uri in uris]
    if len(uris) > MAX_FILES or any(urlsplit(uri).scheme != "file" for uri in uris):
        return None
    try:
        with ThreadPoolExecutor(READERS) as pool:
            footers = list(pool.map(pq.ParquetFile, paths))
    except (OSError, pa.ArrowException):
        return None  # Spark reports the error
    if not all(has_columns(footer, names, schema) for footer in footers):
        return None
    sizes = [
        [footer.metadata.row_group(at).total_byte_size for at in range(footer.num_row_groups)]
        for footer in footers
    ]
    whole, cores = sum(map(sum, sizes)), spark.sparkContext.defaultParallelism
    most = min(max(whole // cores, MIN_TASK_BYTES), MAX_TASK_BYTES)
    portions = cut_portions(paths, sizes, most)
    if not portions:
        return None
    return FileTable(schema, names, portions, min(len(portions), max(cores, -(-whole // most))))


def find_relation(frame: DataFrame) -> tuple[list[str], list[str]] | None:
    """Return the names of a frame's columns in its Parquet files, and the URIs of the files.

    None if the optimized plan has anything but a projection: filters, casts, joins.
    """
    plan: Any = frame._jdf.queryExecution().optimizedPlan()
    taken = to_list(plan.output())
    if plan.getClass().getSimpleName() == "Project":
        taken = [strip_alias(column) for column in to_list(plan.projectList())]
        plan = plan.child()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return None
    relation = plan.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    # The files of a catalog table may change before the result is computed.
    if relation.fileFormat().getClass().getName() != FORMAT or plan.catalogTable().isDefined():
        return None
    options = {str(one._1()).lower() for one in to_list(relation.options().toSeq())}
    if options & {name.lower() for name in FORGIVING}:
        return None
    parted = set(relation.partitionSchema().fieldNames())
    there = {column.exprId().id(): column for column in to_list(plan.output())}
    names = []
    for column in taken:
        if column.getClass().getSimpleName() != "AttributeReference":
            return None
        known = there.get(column.exprId().id())
        # Column metadata, such as that of CHAR(8), changes values: leave it to Spark.
        if known is None or known.name() in parted or known.metadata().json() != "{}":
            return None
        names.append(str(known.name()))
    return names, [str(uri) for uri in relation.inputFiles()]


def to_list(sequence: Any) -> list[Any]:
    """Convert a Scala sequence."""
    return [sequence.apply(at) for at in range(sequence.size())]


def strip_alias(column: Any) -> Any:
    """Return the column under an alias."""
    return column.child() if column.getClass().getSimpleName() == "Alias" else column


def has_columns(file: pq.ParquetFile, names: Sequence[str], schema: pa.Schema) -> bool:
    """Whether a file has all columns with the types of Spark's schema."""
    found = file.schema_arrow
    there = found.names
    for name, field in zip(names, schema, strict=True):
        if name not in there or [one.lower() for one in there].count(name.lower()) != 1:
            return False
        kind = found.field(name).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if kind != field.type and not (kind in TEXTS and field.type in TEXTS):
            return False
    return True


def cut_portions(
    paths: Sequence[str], sizes: Sequence[Sequence[int]], most: int
) -> list[FilePortion]:
    """Cut the row groups of files into portions of at most `most` bytes."""
    portions: list[FilePortion] = []
    for path, groups in zip(paths, sizes, strict=True):
        first = held = 0
        for at, size in enumerate(groups):
            if at > first and held + size > most:
                portions.append(FilePortion(path, first, at))
                first, held = at, 0
            held += size
        if first < len(groups):
            portions.append(FilePortion(path, first, len(groups)))
    return portions


def number_portions(spark: SparkSession, table: FileTable) -> DataFrame:
    """Make a DataFrame of the numbers of portions, partitioned by task."""
    return spark.range(0, len(table.portions), 1, table.tasks)


def read_portions(table: FileTable, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the rows of numbered portions."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            path, first, last = table.portions[number]
            groups = list(range(first, last))
            with pq.ParquetFile(path) as file:
                for rows in file.iter_batches(ROWS, groups, table.names, use_threads=False):
                    columns = [
                        rows.column(name).cast(field.type)
                        for name, field in zip(table.names, table.schema, strict=True)
                    ]
                    yield pa.RecordBatch.from_arrays(columns, schema=table.schema)
