"""Tables that are Parquet files are read by the tasks, and give what Spark gives of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from placewire import match
from placewire.spark.parquet_files import cut_portions, find_files, read_portions

OBJECTS = pa.table(
    {
        "id": pa.array([f"o{n}" for n in range(1000)] + [None]),
        "lon": pa.array([n / 10 - 50 for n in range(1000)] + [1.0]),
        "lat": pa.array([None, 95.0] + [1.5] * 999, pa.float64()),
        "text": pa.array(["", None, "größe"] + ["tea", "cocoa tea"] * 499),
        "n": pa.array(range(1001), pa.int64()),
        "at.once": pa.array([n % 3 == 0 for n in range(1001)]),
        "at": pa.array([b"x"] * 1001),
    }
)


def write_files(folder: Path) -> str:
    """Three files with several row groups, each of its own types, one with a hard name."""
    folder.mkdir()
    some = [OBJECTS.slice(0, 300), OBJECTS.slice(300, 600), OBJECTS.slice(900)]
    text = some[1].schema.get_field_index("text")
    some[1] = some[1].set_column(text, "text", some[1]["text"].dictionary_encode())
    some[2] = some[2].set_column(text, "text", some[2]["text"].cast(pa.large_string()))
    for name, table in zip(("a.parquet", "b b%20ü.parquet", "c.parquet"), some, strict=True):
        pq.write_table(table, folder / name, row_group_size=120)
    return str(folder)


def read_rows(frame: DataFrame) -> list[tuple[object, ...]]:
    """The rows of a frame's files, as tasks read them."""
    files = find_files(frame)
    assert files is not None
    numbers = pa.record_batch([pa.array(range(len(files.portions)))], ["id"])
    batches = list(read_portions(files, [numbers]))
    return rows_of(pa.Table.from_batches(batches, files.schema).to_pylist())


def rows_of(rows: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in rows), key=repr)


def test_files_give_what_spark_gives(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.read.parquet(write_files(tmp_path / "objects"))
    views = (
        frame.drop("at"),
        frame.select(F.col("TEXT"), F.col("n").alias("id"), F.col("`at.once`").alias("lon")),
        frame.select("n", "lat").select(F.col("lat").alias("n"), F.col("n").alias("lat")),
    )
    for view in views:
        assert read_rows(view) == rows_of([row.asDict() for row in view.collect()])


def test_matches_are_those_of_any_other_table(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.read.parquet(write_files(tmp_path / "objects"))
    rows = [("tea", '{"box":[-20,0,20,2]}', "tea AND NOT cocoa"), ("all", None, "tea OR größe")]
    wishes = spark.createDataFrame(rows, "id string, region string, where string")
    assert find_files(frame.drop("at")) is not None
    kept = ["n", "at.once", "lat"]
    found = match(frame, wishes, keep=kept)
    assert "FileScan" not in found._jdf.queryExecution().toString()
    other = match(frame.repartition(2), wishes, keep=kept)
    assert found.schema == other.schema
    matches = sorted(tuple(row) for row in found.collect())
    assert len(matches) > 1000
    assert matches == sorted(tuple(row) for row in other.collect())


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.where("n > 5"),
        lambda frame: frame.select("id", F.col("n").cast("string").alias("text")),
        lambda frame: frame.select("id", "at"),
        lambda frame: frame.select("id", F.col("_metadata.file_name").alias("text")),
        lambda frame: frame.limit(3),
        lambda frame: frame.union(frame).select("id"),
        lambda frame: frame.select("id", F.lit(1).alias("n")),
    ],
    ids=["condition", "cast", "binary", "metadata", "limit", "union", "constant"],
)
def test_what_is_more_than_files_is_left_to_spark(
    spark: SparkSession, tmp_path: Path, change: Callable[[DataFrame], DataFrame]
) -> None:
    frame = spark.read.parquet(write_files(tmp_path / "objects"))
    assert find_files(change(frame)) is None


def test_files_that_are_not_as_spark_has_them_are_left_to_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "parts"
    spark.range(20).selectExpr("id", "id % 2 part").write.partitionBy("part").parquet(str(folder))
    parted = spark.read.parquet(str(folder))
    assert find_files(parted) is None
    assert read_rows(parted.select("id")) == [
        (n,) for n in sorted(range(20), key=lambda n: f"({n},)")
    ]
    wider = spark.read.schema("id double").parquet(str(folder))
    assert find_files(wider) is None
    lacking = spark.read.schema("id bigint, more string").parquet(str(folder))
    assert find_files(lacking) is None
    assert find_files(spark.read.option("header", "true").csv(str(folder))) is None
    for name in ("ignoreMissingFiles", "IGNORECORRUPTFILES"):
        forgiving = spark.read.option(name, "true").parquet(str(folder))
        assert find_files(forgiving.select("id")) is None
    both = tmp_path / "both"
    both.mkdir()
    pq.write_table(pa.table({"id": ["a"], "ID": ["b"]}), both / "a.parquet")
    assert find_files(spark.read.schema("id string").parquet(str(both))) is None
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "TRUE")
    try:
        assert find_files(parted.select("id")) is None
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")
    next(folder.rglob("*.parquet")).write_bytes(b"no Parquet")
    assert find_files(parted.select("id")) is None


def test_portions_have_every_row_group_once() -> None:
    sizes = [[], [4, 4, 4, 9, 1], [20], [1, 1]]
    portions = cut_portions(["a", "b", "c", "d"], sizes, 10)
    assert portions == [("b", 0, 2), ("b", 2, 3), ("b", 3, 5), ("c", 0, 1), ("d", 0, 2)]


def test_a_table_of_the_catalog_has_what_it_has_when_it_is_asked(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = f"using parquet location '{tmp_path / 'table'}'"
    spark.sql(f"create table tea {place} as select 'a' id, 1D lon, 1D lat, 'tea' text")
    try:
        wish = spark.createDataFrame([("s", "tea")], "id string, where string")
        found = match(spark.table("tea"), wish)
        spark.sql("insert into tea values ('b', 1D, 1D, 'tea')")
        assert sorted(row["object"] for row in found.collect()) == ["a", "b"]
    finally:
        spark.sql("drop table tea")
