"""Tables matched as a batch job: the pairs of the log of all subscriptions, then all objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from oracle import replay
from placewire import Unusable, match, refused_objects
from placewire.demo import CityLife, write_log
from placewire.spark.columns import select_objects

NEVER_MIND = {"expires", "ts"}


def city(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Boolean subscriptions and valid objects of city life; some ids are of two subscriptions."""
    log = folder / "log.jsonl"
    write_log(CityLife(objects=1_500, subscriptions=400, churn=0.3, seed=21), str(log))
    subscriptions, objects = [], []
    for line in log.read_bytes().splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event.get("type") == "subscribe" and event.get("kind") == "boolean":
            subscriptions.append({k: v for k, v in event.items() if k not in NEVER_MIND})
        elif event.get("type") == "object" and isinstance(event.get("text"), str):
            objects.append(event)
    dead = {d["seq"] for d in replay(lines_of(objects)).dead}
    objects = [event for number, event in enumerate(objects) if number not in dead]
    stamped = [{**s, "ts": "2026-01-01T00:00:00Z"} for s in subscriptions]
    dead = {d["seq"] for d in replay(lines_of(stamped)).dead}
    return [s for n, s in enumerate(subscriptions) if n not in dead], objects


def lines_of(events: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def pairs_of_oracle(
    subscriptions: list[dict[str, Any]], objects: list[dict[str, Any]]
) -> list[tuple[str, str]]:
    stamped = [{**s, "ts": "2026-01-01T00:00:00Z"} for s in subscriptions]
    found = replay(lines_of(stamped + [{**o, "ts": "2026-01-01T00:00:00Z"} for o in objects]))
    return sorted((r["subscription"], r["object"]) for r in found.results)


def tables(
    spark: SparkSession, subscriptions: list[dict[str, Any]], objects: list[dict[str, Any]]
) -> tuple[DataFrame, DataFrame]:
    rows = [
        (s["id"], json.dumps(s["region"]) if "region" in s else None, as_text(s.get("where")))
        for s in subscriptions
    ]
    things = [(o["id"], o["lon"], o["lat"], o["text"], len(o["text"])) for o in objects]
    return (
        spark.createDataFrame(things, "id string, lon double, lat double, text string, size int"),
        spark.createDataFrame(rows, "id string, region string, where string"),
    )


def as_text(where: Any) -> str | None:
    return where if where is None or isinstance(where, str) else json.dumps(where)


def test_matches_of_tables_equal_the_oracle(spark: SparkSession, tmp_path: Path) -> None:
    subscriptions, objects = city(tmp_path)
    frames = tables(spark, subscriptions, objects)
    found = match(frames[0].repartition(3), frames[1].coalesce(1), keep=["size"])
    rows = found.collect()
    expected = pairs_of_oracle(subscriptions, objects)
    assert len(expected) > 100
    assert sorted((row["subscription"], row["object"]) for row in rows) == expected
    sizes = {o["id"]: len(o["text"]) for o in objects}
    assert all(row["size"] == sizes[row["object"]] for row in rows)


def test_nested_columns_say_the_same_as_json(spark: SparkSession) -> None:
    objects = spark.createDataFrame(
        [("a", 1.0, 1.0, "tea"), ("b", 5.0, 5.0, "tea"), ("c", 1.5, 1.5, "cocoa")],
        "id string, lon double, lat double, text string",
    )
    subscriptions = spark.sql(
        """select 's' id, named_struct('box', array(0.0D, 0.0D, 2.0D, 2.0D)) region,
           named_struct('any', array('tea', 'milk')) where, 7 priority"""
    )
    assert [(r[0], r[1]) for r in match(objects, subscriptions).collect()] == [("s", "a")]


def test_a_match_joins_with_other_tables(spark: SparkSession) -> None:
    objects = spark.range(1000).select(
        F.col("id").alias("n"),
        F.concat(F.lit("o"), "id").alias("id"),
        (F.col("id") / 10 - 50).alias("lon"),
        F.lit(0.0).alias("lat"),
        F.when(F.col("id") % 2 == 0, "even").otherwise("odd").alias("text"),
    )
    subscriptions = spark.createDataFrame(
        [("s1", "even"), ("s2", "odd")], "id string, where string"
    )
    found = match(objects, subscriptions, keep=["n", "lon"])
    counts = found.groupBy("subscription").agg(F.count("*").alias("c"), F.max("n").alias("m"))
    assert sorted(tuple(row) for row in counts.collect()) == [("s1", 500, 998), ("s2", 500, 999)]


def test_names_with_dots_and_ids_that_are_numbers(spark: SparkSession) -> None:
    objects = spark.sql("select 7 id, 1 `at.lon`, 2 lat, 'tea' text, 'x' `a.b`, 'y' `c`")
    subscriptions = spark.sql("select 10L id, 'tea' where")
    columns = {"lon": "at.lon"}
    found = match(objects, subscriptions, keep=["c", "a.b"], object_columns=columns)
    assert found.columns == ["subscription", "object", "c", "a.b"]
    assert [tuple(row) for row in found.collect()] == [("10", "7", "y", "x")]


def test_settings_of_the_session_change_nothing(spark: SparkSession) -> None:
    objects = spark.sql(
        """select 'a' id, '2026-01-01T00:00:00Z' ts, 1.0D lon, 1.0D lat, 'tea' text,
           null nothing, timestamp '2026-01-01 00:00:00Z' at"""
    )
    subscriptions = spark.createDataFrame(
        [("s", "tea", None), ("t", None, '{"box":[0,0,2,2]}')],
        "id string, where string, region string",
    )
    others = {
        "spark.sql.jsonGenerator.ignoreNullFields": "false",
        "spark.sql.session.timeZone": "Asia/Tokyo",
    }
    former = {name: spark.conf.get(name) for name in others}
    try:
        for name, value in others.items():
            spark.conf.set(name, value)
        found = match(objects, subscriptions).collect()
        data = select_objects(objects, extra=True).select("data").collect()
    finally:
        for name, value in former.items():
            spark.conf.set(name, value)
    assert sorted(row["subscription"] for row in found) == ["s", "t"]
    assert json.loads(data[0][0]) == {"at": "2026-01-01T00:00:00.000Z"}


def test_rows_that_are_no_objects_are_told(spark: SparkSession) -> None:
    objects = spark.createDataFrame(
        [("a", 1.0, 1.0, "tea"), ("b", 500.0, 5.0, "tea"), ("c", None, 1.5, "tea")],
        "id string, lon double, lat double, text string",
    )
    subscriptions = spark.createDataFrame([("s", "tea")], "id string, where string")
    assert [r["object"] for r in match(objects, subscriptions).collect()] == ["a"]
    told = {r["id"]: r["error"] for r in refused_objects(objects).collect()}
    assert told == {
        "b": "lon must be in [-180, 180], got 500.0",
        "c": "lon: is missing, got null",
    }


def test_what_cannot_be_matched_is_refused(spark: SparkSession) -> None:
    objects = spark.createDataFrame(
        [("a", 1.0, 1.0, "tea")], "id string, lon double, lat double, text string"
    )

    def subscribe(where: str, kind: str = "boolean") -> DataFrame:
        return spark.createDataFrame([("s", where, kind)], "id string, where string, kind string")

    with pytest.raises(Unusable, match="parenthes"):
        match(objects, subscribe("(tea"))
    with pytest.raises(Unusable, match="does not exist"):
        match(objects, subscribe("tea"), keep=["nothing"])
    with pytest.raises(Unusable, match="keep: column 'text' is given twice"):
        match(objects, subscribe("tea"), keep=["text", "text"])
    with pytest.raises(Unusable, match="keep: 'object' is a column of every match"):
        match(objects.withColumn("object", F.lit(1)), subscribe("tea"), keep=["object"])
    with pytest.raises(Unusable, match="window"):
        match(objects, subscribe("tea"), settings={"window": 5})
    nearest = spark.sql(
        "select 'n' id, 'nearest' kind, 1.0D lon, 1.0D lat, array('tea') keywords, 3 k"
    )
    with pytest.raises(Unusable, match="takes boolean subscriptions, got nearest"):
        match(objects, nearest)


def test_texts_are_analysed_as_the_settings_say(spark: SparkSession) -> None:
    objects = spark.createDataFrame(
        [("a", 1.0, 1.0, "Running shoes")], "id string, lon double, lat double, text string"
    )
    wish = spark.createDataFrame([("s", "run AND shoe")], "id string, where string")
    assert match(objects, wish).collect() == []
    found = match(objects, wish, settings={"analyzer": "snowball:english"}).collect()
    assert [row["object"] for row in found] == ["a"]
