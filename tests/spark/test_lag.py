"""The lag of a run that Spark executes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from placewire.cli.main import app
from placewire.sinks.delivery import SinkCursor
from placewire.sinks.files import FolderSink
from placewire.spark import runner as running
from placewire.spark.config import read_config
from placewire.spark.runner import Run
from run_config import EVENTS, SINKS, write_config
from streams import split_log


@pytest.mark.slow
def test_a_run_tells_how_far_it_is_behind(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files wait trigger by trigger; a sink that fails lacks batches, and status knows."""
    split_log(tmp_path, 4, objects=300, subscriptions=60, seed=5)
    monkeypatch.setattr(running, "LAG_INTERVAL_S", 0.0)
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


@pytest.mark.slow
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
