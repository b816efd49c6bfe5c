"""Streaming DataFrames in, results out: whatever order the sources got is the log."""

from __future__ import annotations

import datetime
import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType

from logs import BUILT_KINDS
from oracle import replay
from placewire import Stream, Unusable, match, refused_objects, register
from placewire.batch.coordinator import Coordinator
from placewire.demo import CityLife, write_log
from placewire.ingest.sources import join_lines
from placewire.spark.columns import select_lines
from placewire.spark.intake import read_points, write_changes
from placewire.spark.stream import CallSink
from streams import split_log, write_tables
from waits import WAIT_S, until


def follow(spark: SparkSession, folder: Path) -> DataFrame:
    reader = spark.readStream.option("maxFilesPerTrigger", "1").option("lineSep", "\n")
    return reader.text(str(folder))


class Collected:
    """A sink that keeps what it gets, by batch."""

    def __init__(self) -> None:
        self.batches: dict[int, list[dict[str, Any]]] = {}

    def __call__(self, frame: DataFrame, batch: int) -> None:
        self.batches[batch] = [row.asDict(recursive=True) for row in frame.collect()]

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for _, rows in sorted(self.batches.items()) for row in rows]


def as_result(row: dict[str, Any]) -> dict[str, Any]:
    """A row of results as the specification writes it."""
    result = {name: value for name, value in row.items() if value is not None and name != "id"}
    if "data" in result:
        result["data"] = json.loads(result["data"])
    if "at" in result:
        at = result["at"].astimezone(datetime.UTC)
        result["at"] = at.isoformat().replace("+00:00", "Z")
    if "terms" in result:
        result["terms"] = [[one["term"], one["count"]] for one in result["terms"]]
    for name in ("add", "drop", "objects"):
        if name in result:
            result[name] = [
                {k: json.loads(v) if k == "data" else v for k, v in one.items() if v is not None}
                for one in result[name]
            ]
    return result


def expected(log: bytes) -> list[dict[str, Any]]:
    return replay(log, kinds=BUILT_KINDS, with_data=True).results


@pytest.mark.parametrize(
    ("parts", "plan"), [(1, "shared"), pytest.param(5, "kdt", marks=pytest.mark.slow)]
)
def test_a_stream_of_events_equals_the_oracle(
    spark: SparkSession, tmp_path: Path, parts: int, plan: str
) -> None:
    cut = split_log(tmp_path, parts, objects=900, subscriptions=200, queries=12, seed=5)
    kept = Collected()
    stream = Stream(spark, state=tmp_path / "state", plan=plan, workers=2, with_data=True)
    query = stream.start(
        events=follow(spark, tmp_path / "source"), to=kept, trigger={"availableNow": True}
    )
    query.awaitTermination()
    results = expected(b"".join(cut))
    assert len(results) > 100
    assert [as_result(row) for row in kept.rows] == results
    assert len({row["id"] for row in kept.rows}) == len(kept.rows)


def read(spark: SparkSession, folder: Path, streaming: bool = True) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    reader = spark.readStream.schema(schema) if streaming else spark.read
    return reader.parquet(str(folder))


@pytest.mark.parametrize("streaming", [True, False])
def test_tables_of_objects_and_subscriptions(
    spark: SparkSession, tmp_path: Path, streaming: bool
) -> None:
    log = write_tables(tmp_path)
    kept = Collected()
    dead = Collected()
    stream = Stream(spark, state=tmp_path / "state", with_data=True)
    query = stream.start(
        read(spark, tmp_path / "objects"),
        read(spark, tmp_path / "subscriptions", streaming),
        to=[kept, CallSink(spark, dead, "dead", dead=True)],
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    assert [as_result(row) for row in kept.rows] == expected(log)
    assert [row["subscription"] for row in kept.rows if row["seq"] == 7] == [
        "box",
        "coffee",
        "near",
    ]
    errors = {row["seq"]: row["error"] for row in dead.rows}
    assert set(errors) == {4, 10, 11}
    assert errors[10] == "lon: is missing, got null"
    assert "region" in errors[4]


@pytest.mark.slow
def test_columns_by_other_names_points_and_terms(spark: SparkSession, tmp_path: Path) -> None:
    write_tables(tmp_path)
    shapes = [
        F.expr("st_geomfromwkb(wkb)"),
        F.col("wkb"),
    ]
    seen = []
    for number, shape in enumerate(shapes):
        frame = read(spark, tmp_path / "objects").where("lon is not null and text is not null")
        little = F.expr("unhex('0101000000')")
        frame = frame.withColumn("wkb", F.concat(little, point_bytes("lon"), point_bytes("lat")))
        frame = frame.select(
            F.col("id").alias("post"),
            F.date_format("ts", "yyyy-MM-dd'T'HH:mm:ssXXX").alias("created"),
            shape.alias("geom"),
            F.split("text", "[ ,!]+").alias("words"),
        )
        kept = Collected()
        stream = Stream(spark, state=tmp_path / f"state{number}")
        query = stream.start(
            frame,
            read(spark, tmp_path / "subscriptions", streaming=False),
            object_columns={"id": "post", "ts": "created", "point": "geom", "terms": "words"},
            to=kept,
            trigger={"availableNow": True},
        )
        query.awaitTermination()
        seen.append([(row["type"], row["subscription"], row["object"]) for row in kept.rows])
    assert seen[0] == seen[1]
    assert ("match", "coffee", "o0") in seen[0]
    assert ("match", "box", "o5") in seen[0]
    assert ("match", "box", "o2") not in seen[0]


@F.udf(BinaryType(), useArrow=False)
def point_bytes(value: float) -> bytes:
    return struct.pack("<d", value)


@pytest.mark.slow
def test_a_stream_goes_on_where_it_failed(spark: SparkSession, tmp_path: Path) -> None:
    """The sink fails twice: its batch comes again, the same, and nothing comes twice."""
    cut = split_log(tmp_path, 6, objects=900, subscriptions=200, queries=12, seed=9)
    kept = Collected()
    times: list[int] = []

    def take(frame: DataFrame, batch: int) -> None:
        times.append(batch)
        kept(frame, batch)
        if times.count(batch) == 1 and batch in (1, 3):
            raise OSError("the disk is full")

    for turn in range(3):
        stream = Stream(spark, state=tmp_path / "state", plan="kdt", workers=3, with_data=True)
        query = stream.start(
            events=follow(spark, tmp_path / "source"), to=take, trigger={"availableNow": True}
        )
        if turn < 2:
            with pytest.raises(StreamingQueryException):
                query.awaitTermination()
        else:
            query.awaitTermination()
        assert stream.closed.wait(WAIT_S)
    assert [as_result(row) for row in kept.rows] == expected(b"".join(cut))
    assert all(times.count(batch) == 1 + (batch in (1, 3)) for batch in times)
    assert len(set(times)) > 4


@pytest.mark.slow
def test_the_order_of_a_batch_is_kept_when_it_is_repeated(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = split_log(tmp_path, 3, objects=900, subscriptions=200, seed=9)
    step, calls = Coordinator.step, []

    def fail_once(self: Coordinator, *arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise OSError("killed")
        return step(self, *arguments)

    monkeypatch.setattr(Coordinator, "step", fail_once)
    kept = Collected()
    for turn in range(2):
        stream = Stream(spark, state=tmp_path / "state", with_data=True)
        query = stream.start(
            events=follow(spark, tmp_path / "source"), to=kept, trigger={"availableNow": True}
        )
        if turn == 0:
            with pytest.raises(StreamingQueryException):
                query.awaitTermination()
            assert stream.closed.wait(WAIT_S)
            # The source would give the batch in another order now.
            second_file = tmp_path / "source" / "001.jsonl"
            lines = second_file.read_bytes().splitlines(keepends=True)
            second_file.write_bytes(b"".join(reversed(lines)))
        else:
            query.awaitTermination()
    assert [as_result(row) for row in kept.rows] == expected(b"".join(cut))


def test_what_cannot_be_a_stream_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write_tables(tmp_path)
    objects = read(spark, tmp_path / "objects")
    stream = Stream(spark, state=tmp_path / "state")
    with pytest.raises(Unusable, match="needs a streaming DataFrame"):
        stream.start(read(spark, tmp_path / "objects", streaming=False))
    with pytest.raises(Unusable, match="need a column ts"):
        stream.start(objects.drop("ts"))
    with pytest.raises(Unusable, match="lon and lat, or point"):
        stream.start(objects.drop("lat"))
    with pytest.raises(Unusable, match="'when' for 'ts' does not exist"):
        stream.start(objects, object_columns={"ts": "when"})
    with pytest.raises(Unusable, match="'time' is not a field"):
        stream.start(objects, object_columns={"time": "ts"})
    with pytest.raises(Unusable, match="point must be GEOMETRY"):
        stream.start(objects, object_columns={"point": "text"})
    with pytest.raises(Unusable, match="lon must be a single value, got array<double>"):
        stream.start(objects.withColumn("lon", F.array("lon")))
    with pytest.raises(Unusable, match="text must be an array of terms, got string"):
        stream.start(objects, object_columns={"terms": "text"})
    with pytest.raises(Unusable, match="lon must be a text or binary, got double"):
        stream.start(events=objects, event_column="lon")
    with pytest.raises(Unusable, match=r"objects: must be a Spark DataFrame, got builtins\.list"):
        stream.start([1])  # type: ignore[arg-type]
    with pytest.raises(Unusable, match="to: must be functions or sinks, got 5"):
        stream.start(objects, to=5)  # type: ignore[arg-type]


def test_a_dead_letter_says_what_was_got(spark: SparkSession, tmp_path: Path) -> None:
    """Where a number or a point should be, in columns of text and of bytes."""
    write_tables(tmp_path)
    objects = read(spark, tmp_path / "objects").where("lon is not null and text is not null")
    texts = objects.withColumn("lon", F.when(F.col("id") == "o0", "east").otherwise("1"))
    texts = texts.withColumn("lat", F.when(F.col("id") == "o1", "up").otherwise("2"))
    garbage = F.when(F.col("id") == "o0", F.unhex(F.lit("0101"))).when(
        F.col("id") == "o1", F.unhex(F.lit("FF" * 40))
    )
    points = objects.withColumn("geom", garbage).drop("lon", "lat")
    cases = [
        (texts, None, {"lon: must be a number, got 'east'", "lat: must be a number, got 'up'"}),
        (
            points,
            {"point": "geom"},
            {
                "point: must be a WKB point, got 0101",
                f"point: must be a WKB point, got {'ff' * 32}...",
                "lon: is missing, got null",
            },
        ),
    ]
    for number, (frame, columns, errors) in enumerate(cases):
        dead = Collected()
        stream = Stream(spark, state=tmp_path / f"state{number}")
        query = stream.start(
            frame,
            object_columns=columns,
            to=CallSink(spark, dead, "dead", dead=True),
            trigger={"availableNow": True},
        )
        query.awaitTermination()
        assert {row["error"] for row in dead.rows} == errors
    assert {json.loads(row["event"])["lon"] for row in dead.rows} >= {"WKB 0101", None}


def test_a_state_without_its_checkpoint_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    split_log(tmp_path, 1, objects=50, subscriptions=20, seed=9)
    for turn in range(2):
        stream = Stream(spark, state=tmp_path / "state")
        events = follow(spark, tmp_path / "source")
        if turn:
            with pytest.raises(Unusable, match="its checkpoint is missing"):
                stream.start(events=events)
            return
        query = stream.start(events=events, trigger={"availableNow": True})
        query.awaitTermination()
        assert stream.closed.wait(WAIT_S)
        shutil.rmtree(tmp_path / "state" / "checkpoint")


def test_points_of_every_spelling() -> None:
    points = [(1.5, -2.25), (180.0, 90.0)]
    wkb = []
    for lon, lat in points:
        wkb += [
            struct.pack("<BIdd", 1, 1, lon, lat),
            struct.pack(">BIdd", 0, 1, lon, lat),
            struct.pack("<BIIdd", 1, 0x20000001, 4326, lon, lat),
            struct.pack(">BIIdd", 0, 0x20000001, 4326, lon, lat),
        ]
    wkb += [
        None,
        b"",
        b"\x01",
        struct.pack("<BIdd", 1, 2, 0, 0),
        struct.pack("<BIddd", 1, 1001, 1, 2, 3),
    ]
    lon, lat = read_points(pa.chunked_array([pa.array(wkb, pa.binary())]))
    expected_lon = [p[0] for p in points for _ in range(4)]
    assert lon.to_pylist() == [*expected_lon, None, None, None, None, None]
    assert lat.to_pylist()[:8] == [p[1] for p in points for _ in range(4)]


@pytest.mark.slow
def test_logs_and_results_are_tables(spark: SparkSession, tmp_path: Path) -> None:
    """A log is read by its format, and so are the results that a stream keeps in its state."""
    register(spark)
    log = tmp_path / "log.jsonl"
    write_log(CityLife(objects=900, subscriptions=200, queries=12, seed=5), str(log))
    log.write_bytes(log.read_bytes() + b'\n{"type": "\xff"}\n')
    events = spark.read.format("placewire").load(str(log))
    lines = log.read_bytes().splitlines()
    assert [(row["seq"], bytes(row["value"])) for row in events.orderBy("seq").collect()] == list(
        enumerate(lines)
    )
    state = tmp_path / "state"
    stream = Stream(spark, state=state, workers=2, with_data=True)
    growing = spark.readStream.format("placewire").option("rows", "300").load(str(log))
    query = stream.start(events=growing, trigger={"processingTime": "0 seconds"})

    def caught_up() -> bool:
        assert query.isActive, query.exception()
        return stream.coordinator is not None and stream.coordinator.latest.next_seq >= len(lines)

    until(caught_up, "every line is processed")
    query.stop()
    assert stream.closed.wait(WAIT_S)
    assert stream.coordinator.latest.batch >= 3
    results = spark.read.format("placewire").option("state", str(state)).load()
    rows = [row.asDict(recursive=True) for row in results.collect()]
    rows.sort(key=lambda row: (row["seq"], row["type"], row["subscription"] or row["query"]))
    assert [as_result(row) for row in rows] == expected(log.read_bytes())
    by_uri = spark.read.format("placewire").option("state", f"file://{state}").load()
    assert by_uri.count() == len(rows)
    for nowhere in (str(tmp_path), f"file://{tmp_path}"):
        with pytest.raises(AnalysisException, match="has no results; a stream without sinks"):
            spark.read.format("placewire").option("state", nowhere).load().collect()
    flowing = spark.readStream.format("placewire").option("state", str(state)).load()
    query = (
        flowing.writeStream.format("memory")
        .queryName("kept")
        .option("checkpointLocation", str(tmp_path / "second"))
        .start()
    )
    query.processAllAvailable()
    query.stop()
    assert spark.table("kept").count() == len(rows)


def test_lines_get_a_type_where_they_have_none(spark: SparkSession) -> None:
    given = {
        b'{"id":"a"}': b'{"type":"object","id":"a"}',
        b'  {"id":1}': b'{"type":"object","id":1}',
        b'{"data":{"type":"x"},"id":1}': b'{"type":"object","data":{"type":"x"},"id":1}',
        b'{"text":"\\"type\\" \xff"}': b'{"type":"object","text":"\\"type\\" \xff"}',
        b' {"text":"tea \xff"}': b'{"type":"object","text":"tea \xff"}',
        b'\x0c{"id":1}': None,
        b'{"type":"subscribe","id":1}': None,
        b'{"id":1, "type" : "subscribe"}': None,
        b'{"\\u0074ype":"subscribe"}': None,
        b'{"type":"object", broken': None,
        b"{}": None,
        b"{ }": None,
        b"nope": None,
        b"[1]": None,
        b"": None,
    }
    frame = spark.createDataFrame([(line,) for line in given], "value binary")
    taken = select_lines(frame, kind="object").select("line").collect()
    wanted = [line if typed is None else typed for line, typed in given.items()]
    assert [bytes(row["line"]) for row in taken] == wanted


def test_lines_are_joined_as_they_are() -> None:
    lines = pa.array([b'{"a":\n1}', b"", b"\xff\n"], pa.large_binary())
    assert join_lines(lines).to_pybytes() == b'{"a":\r1}\n\n\xff\r'
    changes = [b'{"id":"a"}', b'{"where":"{\\"any\\":[\\"b\\"]}"}', b'{"region":"no"}', b""]
    changes += [b'{"region":"{}"}\xff']
    written = write_changes(pa.array(changes, pa.large_binary())).to_pylist()
    assert written == [changes[0], b'{"where":{"any":["b"]}}', *changes[2:]]


def test_texts_that_are_not_utf8_are_refused_one_by_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    texts = [b"tea", b"tea \xff\xfe", b"tea caf\xe9", b"\xf5\x90\x80\x80 tea", b"more tea"]
    rows = [(f"o{number}".encode(), text) for number, text in enumerate(texts)]
    rows.append((b"o\xff", b"tea"))
    raw = spark.createDataFrame(rows, "id binary, text binary")
    place = (F.lit(1.0).alias("lon"), F.lit(1.0).alias("lat"))
    objects = raw.select(F.col("id").cast("string"), F.col("text").cast("string"), *place)
    wish = spark.sql(
        """select cast(id as string) id, 'tea' where, timestamp '2026-03-01 12:00:00Z' ts
           from values (X'61'), (X'61FF'), (X'61FE') as wishes(id)"""
    )
    objects.withColumn("ts", F.lit("2026-03-01T12:00:01Z")).write.parquet(str(tmp_path / "posts"))
    stored = spark.read.parquet(str(tmp_path / "posts"))
    for table in (objects, stored):
        told = {row["id"]: row["error"] for row in refused_objects(table).collect()}
        assert told.pop("o\ufffd") == "id: is not UTF-8"
        assert told == {f"o{number}": "text: is not UTF-8" for number in (1, 2, 3)}
        found = match(table, wish.where("is_valid_utf8(id)")).collect()
        assert sorted(tuple(row) for row in found) == [("a", "o0"), ("a", "o4")]
    with pytest.raises(Unusable, match="UTF-8"):
        match(objects, wish)
    results: list[Any] = []
    letters: list[Any] = []
    stream = Stream(spark, state=tmp_path / "state")
    query = stream.start(
        spark.readStream.schema(stored.schema).parquet(str(tmp_path / "posts")),
        wish,
        to=[
            lambda frame, _: results.extend(frame.collect()),
            CallSink(spark, lambda frame, _: letters.extend(frame.collect()), "dead", dead=True),
        ],
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    assert sorted((r["subscription"], r["object"]) for r in results) == [("a", "o0"), ("a", "o4")]
    assert len(letters) == 6
    assert all("UTF-8" in letter["error"] for letter in letters)
