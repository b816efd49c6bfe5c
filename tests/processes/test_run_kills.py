"""`placewire run` killed at every bad moment, sinks that are slow: nothing lost, nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from crashes import STARTER, Killed
from logs import BUILT_KINDS
from oracle import replay
from placewire.demo import CityLife, write_log
from placewire.sinks.files import FolderSink
from placewire.spark.config import read_config
from placewire.spark.runner import Run
from placewire.storage.intake import Intake
from placewire.storage.layout import StateDir
from run_config import EVENTS, SINKS, lines_of, write_config
from streams import split_log
from waits import WAIT_S, until

SUBSCRIPTIONS = EVENTS.replace('"events"', '"subscriptions"').replace('"source"', '"wishes"')
DELTA = '[[sink]]\nname = "delta"\nformat = "delta"\npath = "delta"\n'
KILLS = {
    "the order is recorded, and nothing has run": Killed(
        "placewire.storage.intake", "Intake.record", "after", 2
    ),
    "all files of a batch are there, and it is not committed": Killed(
        "placewire.batch.coordinator", "write_manifest", "before", 2
    ),
    "it is committed, and no sink has it": Killed(
        "placewire.batch.coordinator", "write_manifest", "after", 2
    ),
    "a sink has half of it": Killed("placewire.sinks.files", "pq.write_table", "after", 1),
    "a sink has it, and its cursor does not say so": Killed(
        "placewire.sinks.files", "FolderSink.write", "after", 3
    ),
    "a table of Delta has it, and its cursor does not say so": Killed(
        "placewire.sinks.delta", "DeltaSink.write", "after", 1
    ),
    "all sinks have it, and Spark does not know": Killed(
        "placewire.storage.intake", "Intake.tidy", "before", 1
    ),
}


def split_sources(folder: Path, parts: int) -> bytes:
    """Subscriptions and all else as two folders of files; gives the log, a file of each in turn."""
    log = folder / "whole.jsonl"
    write_log(CityLife(objects=1_500, subscriptions=200, queries=12, seed=5), str(log))
    lines: dict[str, list[bytes]] = {"wishes": [], "source": []}
    for line in log.read_bytes().splitlines(keepends=True):
        change = json.loads(line)["type"] in ("subscribe", "unsubscribe")
        lines["wishes" if change else "source"].append(line)
    cut: list[bytes] = []
    for number in range(parts):
        for name, some in lines.items():
            (folder / name).mkdir(exist_ok=True)
            part = some[number * len(some) // parts : (number + 1) * len(some) // parts]
            write_at(folder / name / f"{number:03d}.jsonl", b"".join(part), number)
            cut += part
    return b"".join(cut)


def write_at(path: Path, content: bytes, number: int) -> None:
    path.write_bytes(content)
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def check_sinks(folder: Path, log: bytes) -> None:
    """Every sink has every result of the log once, in order, and nothing else."""
    expected = replay(log, kinds=BUILT_KINDS, with_data=True).results
    assert len(expected) > 100
    assert lines_of(folder / "lines") == expected
    places = [(r["seq"], r["type"], r.get("subscription", r.get("query"))) for r in expected]
    sheets = [pa_csv.read_csv(file) for file in sorted((folder / "sheet").glob("0*.csv"))]
    for table in (
        pq.read_table(folder / "table"),
        pa.concat_tables(sheets, promote_options="permissive"),
    ):
        rows = table.select(["seq", "type", "subscription", "query", "id"]).to_pylist()
        assert [(r["seq"], r["type"], r["subscription"] or r["query"]) for r in rows] == places
        assert len({row["id"] for row in rows}) == len(rows)


def test_a_run_may_be_killed_at_every_moment(spark: SparkSession, tmp_path: Path) -> None:
    log = split_sources(tmp_path, 3 * len(KILLS))
    config = write_config(
        tmp_path, 'master = "local[2]"\n' + SUBSCRIPTIONS + EVENTS + SINKS + DELTA
    )
    intake = Intake(StateDir(tmp_path / "state"))
    for moment, killed in KILLS.items():
        with open(tmp_path / "said", "wb") as said:
            # Into a file, and not waiting for it to be closed: Java may outlive who started it.
            ended = subprocess.run(
                [sys.executable, "-c", STARTER, json.dumps(killed), "run", "--config", str(config)],
                stdout=said,
                stderr=said,
                check=False,
                timeout=1_000,
            )
        assert ended.returncode == -signal.SIGKILL, (moment, (tmp_path / "said").read_text())
        if killed.name == "Intake.record":
            number = intake.last()
            assert number is not None
            for name in ("wishes", "source"):  # now they would give that batch in another order
                file = tmp_path / name / f"{number:03d}.jsonl"
                lines = file.read_bytes().splitlines(keepends=True)
                write_at(file, b"".join(reversed(lines)), number)
    told: list[tuple[str, dict[str, Any]]] = []
    Run(spark, read_config(config), lambda what, facts: told.append((what, facts))).go(True)
    assert {what for what, _ in told} == {"started", "batch", "lag"}
    check_sinks(tmp_path, log)
    rows = DeltaTable(tmp_path / "delta").to_pyarrow_table().sort_by("seq")
    expected = pq.read_table(tmp_path / "table")
    assert rows["seq"].to_pylist() == expected["seq"].to_pylist()
    assert sorted(rows["id"].to_pylist()) == sorted(expected["id"].to_pylist())


def test_a_slow_sink_holds_the_stream_up_and_loses_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the sink blocks, files pile up in the source and not in the state."""
    cut = split_log(tmp_path, 12, objects=900, subscriptions=200, queries=12, seed=5)
    late = {}
    for number in range(3, 12):
        path = tmp_path / "source" / f"{number:03d}.jsonl"
        late[number] = path.read_bytes()
        path.unlink()
    write, blocked, free = FolderSink.write, threading.Event(), threading.Event()

    def write_slowly(self: FolderSink, delivered: Any) -> None:
        if self.name == "table" and delivered.batch >= 1:
            blocked.set()
            assert free.wait(WAIT_S)
        write(self, delivered)

    monkeypatch.setattr(FolderSink, "write", write_slowly)
    config = read_config(write_config(tmp_path, EVENTS + SINKS))
    told: list[tuple[str, dict[str, Any]]] = []
    run = Run(spark, config, lambda what, facts: told.append((what, facts)))
    worker = threading.Thread(target=run.go)
    worker.start()
    try:
        assert blocked.wait(WAIT_S)
        intake = Intake(StateDir(tmp_path / "state"))
        held = intake.last()
        assert held is not None
        for number, content in late.items():
            write_at(tmp_path / "source" / f"{number:03d}.jsonl", content, number)
        time.sleep(2)  # long enough to take another batch
        assert intake.last() == held
        assert run.stream is not None
        assert run.stream.undelivered() == {"lines": 0, "table": 1, "sheet": 1, "dead": 1}
        free.set()
        until(lambda: len([1 for what, _ in told if what == "batch"]) >= 4, "four batches are done")
        assert worker.is_alive()
    finally:
        free.set()
        run.stop()  # in the middle of some batch
        worker.join(WAIT_S)
    assert not [facts for what, facts in told if what == "failed"]
    batches = [facts["events"] for what, facts in told if what == "batch"]
    assert len(batches) < len(cut)
    Run(spark, config, lambda what, facts: told.append((what, facts))).go(available=True)
    check_sinks(tmp_path, b"".join(cut))
    batches = [facts["events"] for what, facts in told if what == "batch"]
    largest = max(after - before for before, after in zip([0, *batches], batches, strict=False))
    assert largest == max(part.count(b"\n") for part in cut)  # a file a batch, however many wait
