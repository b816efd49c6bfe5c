"""How far a run is behind: what Spark tells of topics, what folders say, how it is shown."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from placewire.cli.format import format_lag
from placewire.cli.main import app
from placewire.cli.run import RunLog
from placewire.sinks.delivery import SinkCursor
from placewire.sinks.files import FolderSink
from placewire.spark import runner as running
from placewire.spark.config import SourceConfig, read_config
from placewire.spark.lag import (
    NOTHING_TAKEN,
    LagMeter,
    TakenFiles,
    waiting_files,
    waiting_messages,
    waiting_versions,
)
from placewire.spark.runner import Run
from placewire.status.status import lag_metrics
from placewire.storage.notes import Lag, SourceLag
from test_run import EVENTS, SINKS, write_config
from test_stream import split_log

LAG = Lag(
    "2026-03-01T12:00:00Z",
    [
        SourceLag("kafka posts", messages=1_200, partitions={"posts-0": 1_199, "posts-1": 1}),
        SourceLag("jsonl in", files=1, bytes=70, taken="2026-03-01T11:00:00.000Z"),
        SourceLag("parquet s3://b/p", taken="2026-03-01T11:00:00.000Z"),
        SourceLag('kafka "odd"'),
        SourceLag("delta posts", files=2, versions=3),
    ],
    {"table": 0, "lines": 3},
)


def test_messages_behind_the_latest_offset() -> None:
    latest = '{"b": {"0": 7}, "a": {"10": 5, "2": 9}}'
    end = '{"b": {"0": 7}, "a": {"10": 1}}'
    waiting = waiting_messages(latest, end)
    assert waiting == {"a-2": 9, "a-10": 4, "b-0": 0}
    assert list(waiting) == ["a-2", "a-10", "b-0"]
    assert waiting_messages("null", end) is None
    assert waiting_messages(latest, None) is None
    assert waiting_messages("no JSON", end) is None


def test_versions_behind_the_latest_offset() -> None:
    latest, end = '{"version": 9, "files": 0, "of": 0}', '{"version": 7, "files": 3, "of": 5}'
    assert waiting_versions(latest, end) == (2, 2)
    assert waiting_versions(None, end) == (None, None)


def test_files_that_are_newer_than_what_was_taken(tmp_path: Path) -> None:
    for number, name in enumerate(("a", "b", "b2", "c", ".hidden", "day=1/d", "_x/e")):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * (number + 1))
        second = {"b2": 1}.get(name, number)  # of the same time as b
        os.utime(path, ns=(0, second * 10**9))
    assert waiting_files(str(tmp_path), NOTHING_TAKEN) == (5, 1 + 2 + 3 + 4 + 6)
    assert waiting_files(str(tmp_path), TakenFiles(1_000, frozenset({"b"}))) == (3, 3 + 4 + 6)
    assert waiting_files(str(tmp_path), TakenFiles(1_000, frozenset({"b", "b2"}))) == (2, 4 + 6)
    assert waiting_files("s3://bucket/folder", NOTHING_TAKEN) is None
    assert waiting_files(str(tmp_path / "*"), NOTHING_TAKEN) is None


def test_a_folders_log_tells_what_was_taken(tmp_path: Path) -> None:
    source = SourceConfig(takes="events", format="jsonl", path=str(tmp_path / "in"))
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        (tmp_path / "in" / name).write_text(name)
        os.utime(tmp_path / "in" / name, (5, 5))
    log = tmp_path / "checkpoint" / "sources" / "0"
    log.mkdir(parents=True)
    entry = {"path": f"file://{tmp_path}/in/a", "timestamp": 5_000, "batchId": 0}
    (log / "9.compact").write_text("v1\n" + json.dumps(entry))
    meter = LagMeter([source], tmp_path / "checkpoint")
    [lag] = meter.measure({"sources": [{"endOffset": '{"logOffset": 9}'}]}, {}).sources
    assert (lag.files, lag.bytes, lag.taken) == (1, 1, "1970-01-01T00:00:05.000Z")
    (log / "10").write_text("v1\n" + json.dumps({**entry, "path": f"file://{tmp_path}/in/b"}))
    [lag] = meter.measure({"sources": [{"endOffset": '{"logOffset": 10}'}]}, {}).sources
    assert (lag.files, lag.bytes) == (0, 0)
    [lag] = meter.measure({"sources": []}, {}).sources
    assert lag.files == 0


def test_a_lag_in_words_and_as_metrics() -> None:
    assert format_lag(LAG) == (
        "kafka posts: 1,200 messages behind, most in posts-0: 1,199;"
        " jsonl in: 1 file waiting, 70 bytes;"
        " parquet s3://b/p: newest taken is of 2026-03-01T11:00:00.000Z;"
        ' kafka "odd": does not tell; delta posts: 2 files waiting, then 3 versions;'
        " sink lines lacks 3 batches"
    )
    metrics = {name: values for name, _, values in lag_metrics(LAG)}
    assert metrics["source_waiting_messages"] == {'{source="kafka posts"}': 1_200.0}
    files = {'{source="jsonl in"}': 1.0, '{source="delta posts"}': 2.0}
    assert metrics["source_waiting_files"] == files
    assert metrics["source_waiting_versions"] == {'{source="delta posts"}': 3.0}
    assert metrics["source_waiting_bytes"] == {'{source="jsonl in"}': 70.0}
    assert metrics["partition_waiting_messages"]['{source="kafka posts",partition="posts-1"}'] == 1
    assert metrics["sink_lacking_batches"] == {'{sink="table"}': 0.0, '{sink="lines"}': 3.0}


def test_the_progress_line_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    facts = {"batch": 3, "events": 9, "objects": 5, "results": 2, "dead_letters": 0}
    teller = RunLog("plain")
    teller("lag", msgspec.to_builtins(LAG))
    teller("batch", facts)
    assert "events/s; kafka posts: 1,200 messages behind" in capsys.readouterr().err
    RunLog("json")("lag", msgspec.to_builtins(LAG))
    told = json.loads(capsys.readouterr().err)
    assert (told["what"], told["sources"][0]["messages"]) == ("lag", 1_200)


def test_a_run_tells_how_far_it_is_behind(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files wait trigger by trigger; a sink that fails lacks batches, and status knows."""
    split_log(tmp_path, 4, objects=300, subscriptions=60, seed=5)
    monkeypatch.setattr(running, "LOOK_S", 0.0)
    told: list[tuple[str, dict[str, Any]]] = []
    run = Run(
        spark,
        read_config(write_config(tmp_path, EVENTS + SINKS)),
        lambda what, facts: told.append((what, facts)),
    )
    run.go(available=True)
    lags = [facts for what, facts in told if what == "lag"]
    waiting = [lag["sources"][0]["files"] for lag in lags]
    assert waiting == sorted(waiting, reverse=True)
    assert waiting[0] > 0
    assert waiting[-1] == 0
    assert lags[-1]["sinks"] == {"lines": 0, "table": 0, "sheet": 0, "dead": 0}
    state = str(tmp_path / "state")
    shown = CliRunner().invoke(app, ["status", "--state", state])
    assert f"jsonl {tmp_path}/source: 0 files waiting" in shown.stdout
    # A sink that is behind: its cursor says so, whatever was noted.
    note = tmp_path / "state" / "sinks" / "table.json"
    note.write_bytes(msgspec.json.encode(SinkCursor(json.loads(note.read_bytes())["batch"] - 2)))
    shown = CliRunner().invoke(app, ["status", "--state", state, "--metrics"])
    assert 'placewire_sink_lacking_batches{sink="table"} 2\n' in shown.stdout
    assert 'placewire_sink_lacking_batches{sink="lines"} 0\n' in shown.stdout
    assert f'placewire_source_waiting_files{{source="jsonl {tmp_path}/source"}} 0' in shown.stdout
    shown = CliRunner().invoke(app, ["status", "--state", state, "--json"])
    assert json.loads(shown.stdout)["lag"]["sinks"]["table"] == 2


def test_a_failing_sink_is_seen_to_lack_batches(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    split_log(tmp_path, 2, objects=300, subscriptions=60, seed=5)

    def fail(self: FolderSink, _: Any) -> None:
        run.stop()
        raise OSError("the network is down")

    monkeypatch.setattr(FolderSink, "write", fail)
    told: list[tuple[str, dict[str, Any]]] = []
    config = read_config(write_config(tmp_path, EVENTS + SINKS))
    run = Run(spark, config, lambda what, facts: told.append((what, facts)))
    run.go()
    failed = next(facts for what, facts in told if what == "failed")
    assert failed["error"] == "the network is down"
    assert failed["undelivered"]["lines"] == 1
