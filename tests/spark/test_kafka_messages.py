"""Messages without a broker: what results and tombstones become; packages that are not there."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from placewire import Unusable
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log
from placewire.demo import CityLife, write_log
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.model.settings import Settings
from placewire.sinks.delivery import Delivered
from placewire.spark.kafka import message_table, pack_parts, unpack_parts, unsubscribe_line
from placewire.spark.session import PACKAGES, require_format
from placewire.storage.layout import StateDir


@pytest.mark.parametrize("matches", [True, False])
def test_a_message_is_a_line_with_its_id(tmp_path: Path, matches: bool) -> None:
    """Lines and typed rows are made apart, and must be in the same order to belong together."""
    log = tmp_path / "city.jsonl"
    write_log(CityLife(objects=900, subscriptions=200, queries=12, bad=20, seed=5), str(log))
    if not matches:
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join(line for line in lines if b'"boolean"' not in line))
    state = StateDir(tmp_path / "state")
    coordinator = Coordinator(state, Settings(), identify_log(log), "shared", 1)
    types = set()
    letters = 0
    for manifest in replay_log(coordinator, LogSource(str(log)), 400):
        for row in message_table(Delivered(state, manifest, True, False)).to_pylist():
            result = json.loads(row["value"])
            types.add(result["type"])
            key = result.get("subscription", result.get("query"))
            at = f":{result['at']}" if "at" in result else ""
            assert row["key"] == key
            assert row["id"] == f"{result['seq']}:{result['type']}:{key}{at}"
        for row in message_table(Delivered(state, manifest, False, True)).to_pylist():
            assert row["id"] == f"{json.loads(row['value'])['seq']}:dead"
            assert row["key"] is None
            letters += 1
    coordinator.close()
    assert types == {"answer", "report", "update"} | ({"match"} if matches else set())
    assert letters > 10


def test_a_tombstone_is_an_unsubscribe_at_its_time(spark: SparkSession) -> None:
    """Whatever the zone of the session, in an hour that it has twice or not at all, too."""
    times = [
        "2026-03-29T02:30:00Z",
        "2026-10-25T00:30:00Z",
        "2026-10-25T01:30:00.250Z",
        "1969-12-31T23:59:59.999Z",
    ]
    usual = spark.conf.get("spark.sql.session.timeZone")
    rows = [(f'a"{n}', datetime.datetime.fromisoformat(at)) for n, at in enumerate(times)]
    try:
        spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        frame = spark.createDataFrame(rows, "key string, timestamp timestamp")
        line = unsubscribe_line(frame["key"].cast("binary"), F.col("timestamp"))
        found = [json.loads(row[0]) for row in frame.select(line).collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", usual)
    for event, (key, _), at in zip(found, rows, times, strict=True):
        ts = event.pop("ts")
        assert event == {"type": "unsubscribe", "id": key}
        assert datetime.datetime.fromisoformat(ts) == datetime.datetime.fromisoformat(at)


def test_a_package_that_is_not_there_is_named(spark: SparkSession) -> None:
    require_format(spark, "parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PACKAGES, "nothing", "org.nothing:nothing:1")
        with pytest.raises(Unusable, match=r"format nothing: .*jars\.packages=org\.nothing"):
            require_format(spark, "nothing")


def test_what_one_key_gets_is_in_one_part_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placewire.spark.kafka.MIN_TASK_MESSAGES", 100)
    values = [b"%d" % number for number in range(1000)]
    keys = [None if number % 50 == 0 else f"s{number * number % 37}" for number in range(1000)]
    whole = pa.table({"key": keys, "value": pa.array(values, pa.large_binary()), "id": keys})
    for most, count in ((1, 1), (3, 3), (64, 10)):
        parts = pack_parts(whole, most)
        assert len(parts) == count
        seen: dict[str | None, list[int]] = {}
        for number in range(count):
            numbers = pa.record_batch([pa.array([number])], ["id"])
            batches = list(unpack_parts(parts, [numbers]))
            rows = [row for batch in batches for row in batch.to_pylist()]
            assert not seen.keys() & {row["key"] for row in rows}
            for row in rows:
                seen.setdefault(row["key"], []).append(int(row["value"]))
        assert sum(map(len, seen.values())) == 1000
        assert all(got == sorted(got) for got in seen.values())
