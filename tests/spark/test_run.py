"""`placewire run`: folders in, folders out, stopped and started again at any time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from logs import BUILT_KINDS
from oracle import replay
from placewire import Unusable
from placewire.sinks.files import FolderSink
from placewire.spark import runner as running
from placewire.spark.config import read_config
from placewire.spark.runner import Run
from run_config import EVENTS, SINKS, lines_of, write_config
from streams import split_log, write_tables


def go(spark: SparkSession, config: Path) -> list[tuple[str, dict[str, Any]]]:
    """Run once in this process; gives what was told."""
    told: list[tuple[str, dict[str, Any]]] = []
    Run(spark, read_config(config), lambda what, facts: told.append((what, facts))).go(True)
    return told


def test_every_folder_gets_the_same_results(spark: SparkSession, tmp_path: Path) -> None:
    cut = split_log(tmp_path, 3, objects=900, subscriptions=200, queries=12, bad=20, seed=5)
    told = go(spark, write_config(tmp_path, EVENTS + SINKS))
    expected = replay(b"".join(cut), kinds=BUILT_KINDS, with_data=True)
    assert lines_of(tmp_path / "lines") == expected.results
    assert [d["seq"] for d in lines_of(tmp_path / "dead")] == [d["seq"] for d in expected.dead]
    table = pq.read_table(tmp_path / "table")
    assert table["seq"].to_pylist() == [r["seq"] for r in expected.results]
    assert table["type"].to_pylist() == [r["type"] for r in expected.results]
    sheets = [pa_csv.read_csv(file) for file in sorted((tmp_path / "sheet").glob("*.csv"))]
    assert sum(sheet.num_rows for sheet in sheets) == len(expected.results)
    batches = [facts for what, facts in told if what == "batch"]
    assert batches[-1]["events"] == b"".join(cut).count(b"\n")
    assert batches[-1]["results"] == len(expected.results)
    assert go(spark, tmp_path / "wire.toml")[0][1]["batch"] == batches[-1]["batch"]
    assert lines_of(tmp_path / "lines") == expected.results


@pytest.mark.slow
def test_objects_and_subscriptions_from_columns(spark: SparkSession, tmp_path: Path) -> None:
    log = write_tables(tmp_path)
    text = "".join(
        f'[[source]]\ntakes = "{takes}"\nformat = "parquet"\npath = "{takes}"\n'
        for takes in ("objects", "subscriptions")
    )
    go(spark, write_config(tmp_path, text + SINKS))
    expected = replay(log, kinds=BUILT_KINDS, with_data=True)
    assert lines_of(tmp_path / "lines") == expected.results


@pytest.mark.slow
def test_lines_without_a_type_and_csv(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "wishes").mkdir()
    wish = {"id": "s", "ts": "2026-03-01T12:00:00Z", "kind": "boolean", "where": "tea"}
    extra = {**wish, "id": "t", "data": {"type": "Point"}}
    text = f"{json.dumps(wish)}\n{json.dumps(extra)}\nno JSON\n{{ }}\n"
    (tmp_path / "wishes" / "a.jsonl").write_text(text)
    (tmp_path / "posts").mkdir()
    (tmp_path / "posts" / "a.csv").write_text(
        "post,when,x,y,body\n"
        'p1,2026-03-01T12:00:01Z,1,2,"tea, and more"\np2,2026-03-01T12:00:02Z,east,2,tea\n'
    )
    sources = """
[[source]]
takes = "subscriptions"
format = "jsonl"
path = "wishes"

[[source]]
takes = "objects"
format = "csv"
path = "posts"
columns = { id = "post", ts = "when", lon = "x", lat = "y", text = "body" }
"""
    go(spark, write_config(tmp_path, sources + SINKS))
    assert lines_of(tmp_path / "lines") == [
        {"seq": 4, "type": "match", "subscription": "s", "object": "p1"},
        {"seq": 4, "type": "match", "subscription": "t", "object": "p1"},
    ]
    dead = lines_of(tmp_path / "dead")
    assert [d["seq"] for d in dead] == [2, 3, 5]
    assert [d["event"] for d in dead[:2]] == ["no JSON", "{ }"]


@pytest.mark.slow
def test_a_sink_that_fails_gets_everything_in_the_end(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = split_log(tmp_path, 4, objects=900, subscriptions=200, seed=5)
    write, calls = FolderSink.write, []

    def fail_often(self: FolderSink, delivered: Any) -> None:
        calls.append(1)
        if len(calls) % 3 == 0:
            raise OSError("the network is down\nand more")
        write(self, delivered)

    monkeypatch.setattr(FolderSink, "write", fail_often)
    monkeypatch.setattr(running, "PAUSES_S", (0.01,))
    told = go(spark, write_config(tmp_path, EVENTS + SINKS))
    failures = [facts["error"] for what, facts in told if what == "failed"]
    assert failures
    assert set(failures) == {"the network is down"}
    expected = replay(b"".join(cut), kinds=BUILT_KINDS, with_data=True)
    assert lines_of(tmp_path / "lines") == expected.results


def test_what_is_not_there_is_told(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="does not exist"):
        go(spark, write_config(tmp_path, EVENTS))
    (tmp_path / "source").mkdir()
    parquet = EVENTS.replace("jsonl", "parquet").replace("events", "objects")
    with pytest.raises(Unusable, match="set its schema"):
        go(spark, write_config(tmp_path, parquet))
    with pytest.raises(Unusable, match=r"source: schema: .*STRIN"):
        go(spark, write_config(tmp_path, parquet + 'schema = "id strin"\n'))
    (tmp_path / "file").write_text("")
    with pytest.raises(Unusable, match="must be a folder, got a file"):
        go(spark, write_config(tmp_path, EVENTS.replace('"source"', '"file"')))


def test_who_waits_for_the_end_does_not_wait_for_ever(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that cannot be read is never passed over; once it is gone the run goes on."""
    monkeypatch.setattr(running, "PAUSES_S", (0.01, 0.02))
    monkeypatch.setattr(running, "MAX_FAILURES", 3)
    (tmp_path / "posts").mkdir()
    (tmp_path / "posts" / "bad.parquet").write_bytes(b"no Parquet")
    source = '[[source]]\ntakes = "objects"\nformat = "parquet"\npath = "posts"\n'
    source += 'schema = "id string, ts timestamp, lon double, lat double, text string"\n'
    config = read_config(write_config(tmp_path, source + SINKS))
    told: list[str] = []
    with pytest.raises(Unusable, match=r"gave up after 3 consecutive failures: .*bad\.parquet"):
        Run(spark, config, lambda what, _: told.append(what)).go(available=True)
    assert told.count("failed") == 2
    (tmp_path / "posts" / "bad.parquet").unlink()
    Run(spark, config, lambda *_: None).go(available=True)
