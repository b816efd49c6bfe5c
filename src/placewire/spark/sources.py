"""Open the sources of `placewire run` as streaming DataFrames in the intake schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from placewire.model.errors import Unusable
from placewire.spark.columns import select_changes, select_lines, select_objects
from placewire.spark.config import SourceConfig
from placewire.spark.delta_source import read_delta
from placewire.spark.kafka import read_kafka

TYPES = {"objects": "object", "subscriptions": "subscribe"}


def open_source(spark: SparkSession, source: SourceConfig, extra: bool) -> DataFrame:
    """Open a source; `extra` adds other columns of objects as data."""
    check_schema(source)
    frame = read_lines(spark, source) if source.format in ("jsonl", "kafka") else None
    if frame is None:
        frame = read_files(spark, source)
    elif source.schema is not None:
        frame = parse_lines(frame, source)
    else:
        return select_lines(frame, kind=TYPES.get(source.takes))
    if source.takes == "events":
        raise Unusable(f"source {source.format}: events are lines of JSON; takes must say what")
    if source.takes == "objects":
        return select_objects(frame, source.columns, extra)
    return select_changes(frame, source.columns)


def read_lines(spark: SparkSession, source: SourceConfig) -> DataFrame:
    """Read events as lines in a column `value`."""
    if source.format == "kafka":
        return read_kafka(
            spark,
            str(source.servers),
            str(source.topic),
            most_per_batch=source.rows,
            tombstones=source.takes == "subscriptions",
            options=source.options,
        )
    check_folder(source)
    reader = spark.readStream.option("lineSep", "\n").options(**limit_files(source))
    return reader.text(str(source.path))


def read_files(spark: SparkSession, source: SourceConfig) -> DataFrame:
    """Read Parquet, CSV or Delta as columns; the schema is inferred from existing files."""
    if source.format == "delta":
        return read_delta(spark, str(source.path), source.options)
    check_folder(source)
    options = {"header": "true"} if source.format == "csv" else {}
    options |= limit_files(source)
    schema: Any = source.schema
    if schema is None:
        try:
            schema = spark.read.format(source.format).options(**options).load(source.path).schema
        except PySparkException:
            raise Unusable(
                f"source {source.path}: has no file to know its columns by yet; give its schema"
            ) from None
    return (
        spark.readStream.format(source.format).schema(schema).options(**options).load(source.path)
    )


def parse_lines(frame: DataFrame, source: SourceConfig) -> DataFrame:
    """Parse lines of JSON into the columns of a schema."""
    parsed = F.from_json(F.col("value").cast("string"), source.schema, {"timeZone": "UTC"})
    return frame.select(parsed.alias("parsed")).select("parsed.*")


def limit_files(source: SourceConfig) -> dict[str, str]:
    """Return Spark's options for a folder, with a limit of files per trigger."""
    return {"maxFilesPerTrigger": "16"} | source.options


def check_schema(source: SourceConfig) -> None:
    """Check that a schema is valid DDL; raises Unusable."""
    if source.schema is None:
        return
    try:
        T.StructType.fromDDL(source.schema)
    except PySparkException as error:
        what = str(error).strip().splitlines()[0]
        raise Unusable(f"source {source.path or source.topic}: schema: {what}") from None


def check_folder(source: SourceConfig) -> None:
    """Check that a local folder exists; Spark checks others. Raises Unusable."""
    path = str(source.path)
    if "://" not in path and not any(sign in path for sign in "*?[{") and not Path(path).is_dir():
        what = "must be a folder, got a file" if Path(path).exists() else "does not exist"
        raise Unusable(f"source {path}: {what}")
