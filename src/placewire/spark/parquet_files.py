"""Tables that are Parquet files at hand: tasks read them themselves, and not through the JVM.

A row that Spark reads and hands to Python costs several times what it costs to read it there
(docs/benchmarks.md, `match`). So where a DataFrame is nothing but columns of Parquet files on file
systems that every machine has, its tasks get the names of the files. Whatever else it is, Spark
computes it.
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
MOST_FILES = 2_000  # whose footers are read before the job
READERS = 8
# Of a task, as it is in memory: one costs some 50 ms whatever it does, so few do for a small table.
LEAST_BYTES, MOST_BYTES = 1 << 20, 1 << 26
ROWS = 32_768  # at a time


class FilePortion(NamedTuple):
    """Some row groups of a file, one after another."""

    path: str
    first: int
    last: int


class FileTable(NamedTuple):
    """A table's columns, each with its name in the files, its rows, and for how many tasks."""

    schema: pa.Schema
    names: list[str]
    portions: list[FilePortion]
    tasks: int


def find_files(frame: DataFrame) -> FileTable | None:
    """The files that a frame is, column by column; None if it is anything else."""
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
    if len(uris) > MOST_FILES or any(urlsplit(uri).scheme != "file" for uri in uris):
        return None
    try:
        with ThreadPoolExecutor(READERS) as pool:
            footers = list(pool.map(pq.ParquetFile, paths))
    except (OSError, pa.ArrowException):
        return None  # Spark has words for it
    if not all(has_columns(footer, names, schema) for footer in footers):
        return None
    sizes = [
        [footer.metadata.row_group(at).total_byte_size for at in range(footer.num_row_groups)]
        for footer in footers
    ]
    whole, cores = sum(map(sum, sizes)), spark.sparkContext.defaultParallelism
    most = min(max(whole // cores, LEAST_BYTES), MOST_BYTES)
    portions = cut_portions(paths, sizes, most)
    if not portions:
        return None
    return FileTable(schema, names, portions, min(len(portions), max(cores, -(-whole // most))))


def find_relation(frame: DataFrame) -> tuple[list[str], list[str]] | None:
    """Names of a frame's columns in the Parquet files that it is, and the files' URIs.

    Spark has thought about the frame before: conditions, casts and all else are seen in its plan.
    """
    plan: Any = frame._jdf.queryExecution().optimizedPlan()
    taken = list_of(plan.output())
    if plan.getClass().getSimpleName() == "Project":
        taken = [unnamed(column) for column in list_of(plan.projectList())]
        plan = plan.child()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return None
    relation = plan.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    # A table of the catalog may get other files before the result is asked for.
    if relation.fileFormat().getClass().getName() != FORMAT or plan.catalogTable().isDefined():
        return None
    options = {str(one._1()).lower() for one in list_of(relation.options().toSeq())}
    if options & {name.lower() for name in FORGIVING}:
        return None
    parted = set(relation.partitionSchema().fieldNames())
    there = {column.exprId().id(): column for column in list_of(plan.output())}
    names = []
    for column in taken:
        if column.getClass().getSimpleName() != "AttributeReference":
            return None
        known = there.get(column.exprId().id())
        # What a column has of its own, as CHAR(8) has, Spark sees to.
        if known is None or known.name() in parted or known.metadata().json() != "{}":
            return None
        names.append(str(known.name()))
    return names, [str(uri) for uri in relation.inputFiles()]


def list_of(sequence: Any) -> list[Any]:
    """A sequence of Scala's."""
    return [sequence.apply(at) for at in range(sequence.size())]


def unnamed(column: Any) -> Any:
    """A column without another name that it has got."""
    return column.child() if column.getClass().getSimpleName() == "Alias" else column


def has_columns(file: pq.ParquetFile, names: Sequence[str], schema: pa.Schema) -> bool:
    """Whether a file has the columns, in the types that Spark has for them."""
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
    """Row groups of files, whose sizes these are, in portions of at most so many bytes."""
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
    """The numbers of the portions, dealt out to the tasks that will read them."""
    return spark.range(0, len(table.portions), 1, table.tasks)


def read_portions(table: FileTable, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of the portions that have these numbers."""
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
