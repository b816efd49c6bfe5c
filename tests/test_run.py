"""`placewire run`: folders in, folders out, stopped and started again at any time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from oracle import replay
from placewire import Unusable
from placewire.cli.main import app
from placewire.sinks.files import FolderSink
from placewire.spark import runner as running
from placewire.spark.config import read_config
from placewire.spark.runner import Run
from processes import until
from test_law import BUILT_KINDS
from test_stream import split_log, write_tables

EVENTS = """
[[source]]
takes = "events"
format = "jsonl"
path = "source"
options = { maxFilesPerTrigger = "1" }
"""
SINKS = """
[[sink]]
name = "lines"
format = "jsonl"
path = "lines"

[[sink]]
name = "table"
format = "parquet"
path = "table"

[[sink]]
name = "sheet"
format = "csv"
path = "sheet"

[[sink]]
name = "dead"
takes = "dead"
format = "jsonl"
path = "dead"
"""


SOURCE = "[[source]]\ntakes = 'events'\nformat = 'jsonl'\npath = 'a'\n"


def write_config(folder: Path, text: str) -> Path:
    path = folder / "wire.toml"
    path.write_text('state = "state"\nworkers = 2\nwith_data = true\n' + text)
    return path


def go(spark: SparkSession, config: Path) -> list[tuple[str, dict[str, Any]]]:
    """Run once in this process; gives what was told."""
    told: list[tuple[str, dict[str, Any]]] = []
    Run(spark, read_config(config), lambda what, facts: told.append((what, facts))).go(True)
    return told


def lines_of(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


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


def test_objects_and_subscriptions_from_columns(spark: SparkSession, tmp_path: Path) -> None:
    log = write_tables(tmp_path)
    text = "".join(
        f'[[source]]\ntakes = "{takes}"\nformat = "parquet"\npath = "{takes}"\n'
        for takes in ("objects", "subscriptions")
    )
    go(spark, write_config(tmp_path, text + SINKS))
    expected = replay(log, kinds=BUILT_KINDS, with_data=True)
    assert lines_of(tmp_path / "lines") == expected.results


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


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "needs a [[source]]"),
        ("[[source]]\ntakes = 'events'\nformat = 'xml'\npath = 'a'", "got 'xml'"),
        ("[[source]]\ntakes = 'events'\nformat = 'jsonl'", "needs path"),
        ("[[source]]\ntakes = 'all'\nformat = 'jsonl'\npath = 'a'", "'all'"),
        ("[[source]]\ntakes = 'events'\nformat = 'jsonl'\npath = 'a'\nurl = 'b'", "url"),
        ("[[source]]\ntakes = 'events'\nformat = 'jsonl'\npath = 'a'\ntopic = 'b'", "has no topic"),
        (f"{SOURCE}rows = 0", "rows must be 1 or more, got 0"),
        (f"{SOURCE.replace('jsonl', 'delta')}schema = 'id string'", "has no schema"),
        (f"{SOURCE}columns = {{ text = 'body' }}", "columns needs schema"),
        (f"{SOURCE}options = {{ maxFilesPerTrigger = 'x' }}", "maxFilesPerTrigger must be"),
        (f"{SOURCE}[[sink]]\nname = '../s'\nformat = 'stdout'", "name must be letters"),
        (f"{SOURCE}[[sink]]\nname = 's'\nformat = 'csv'\npath = './a'", "the path of source 1"),
        (f"every = 'soon'\n{SOURCE}", "every must be as '5 seconds', got 'soon'"),
        (f"cache_gb = 0\n{SOURCE}", "cache_gb must be greater than 0"),
        ("workers = 0", "workers"),
        ("x = [", "is not TOML"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, error: str, tmp_path: Path) -> None:
    config = tmp_path / "wire.toml"
    head = 'state = "state"\n' if "source" in text or not text else 'state = "s"\nsource = []\n'
    config.write_text(head + (text if text else "source = []"))
    shown = CliRunner().invoke(app, ["run", "--config", str(config)])
    assert isinstance(shown.exception, Unusable)
    assert error in str(shown.exception) or "needs a [[source]]" in str(shown.exception)
    assert str(config) in str(shown.exception)


def test_what_is_not_there_is_told(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="does not exist"):
        go(spark, write_config(tmp_path, EVENTS))
    (tmp_path / "source").mkdir()
    parquet = EVENTS.replace("jsonl", "parquet").replace("events", "objects")
    with pytest.raises(Unusable, match="give its schema"):
        go(spark, write_config(tmp_path, parquet))
    with pytest.raises(Unusable, match=r"source: schema: .*STRIN"):
        go(spark, write_config(tmp_path, parquet + 'schema = "id strin"\n'))
    (tmp_path / "file").write_text("")
    with pytest.raises(Unusable, match="must be a folder, got a file"):
        go(spark, write_config(tmp_path, EVENTS.replace('"source"', '"file"')))


def test_a_run_ends_when_it_is_told_to_and_goes_on(tmp_path: Path) -> None:
    """SIGTERM to it or to all its processes, SIGKILL anywhere; the last run finishes."""
    cut = split_log(tmp_path, 12, objects=2_000, subscriptions=200, queries=12, seed=5)
    config = write_config(tmp_path, EVENTS + SINKS)
    command = [sys.executable, "-m", "placewire.cli.main", "run", "--config", str(config)]
    kills = [
        (os.kill, signal.SIGTERM, 2),
        (os.killpg, signal.SIGTERM, 4),
        (os.kill, signal.SIGKILL, 6),
    ]
    for kill, number, much in kills:
        with subprocess.Popen(
            [*command, "--log", "json"], stderr=subprocess.PIPE, start_new_session=True
        ) as process:
            waits = time.monotonic() + 300
            while len(list((tmp_path / "lines").glob("*.jsonl"))) < much:
                assert process.poll() is None, process.stderr and process.stderr.read()
                assert time.monotonic() < waits
                time.sleep(0.02)
            kill(process.pid, number)
            told = process.stderr.read().decode() if process.stderr else ""
            process.wait(120)
        assert process.returncode == (0 if number == signal.SIGTERM else -signal.SIGKILL), told
        assert "Traceback" not in told
        said = [json.loads(line)["what"] for line in told.splitlines() if line.startswith("{")]
        assert set(said) <= {"starting", "started", "batch", "lag", "ended"}
        assert said.count("ended") == (number == signal.SIGTERM)
        assert number == signal.SIGKILL or said[-1] == "ended"
    ended = subprocess.run(
        [*command, "--once"], capture_output=True, text=True, check=False, timeout=400
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    expected = replay(b"".join(cut), kinds=BUILT_KINDS, with_data=True)
    assert lines_of(tmp_path / "lines") == expected.results


@pytest.mark.parametrize("kill", [os.kill, os.killpg])
def test_a_run_that_is_told_to_end_while_it_starts(
    tmp_path: Path, kill: Callable[[int, int], None]
) -> None:
    (tmp_path / "source").mkdir()
    config = write_config(tmp_path, EVENTS + SINKS)
    command = [sys.executable, "-m", "placewire.cli.main", "run", "--config", str(config)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        java = until(lambda: process.poll() is None and children.read_text(), "Spark starts")
        kill(process.pid, signal.SIGTERM)
        told = process.stderr.read() if process.stderr else ""
        process.wait(120)
    assert told.splitlines()[-1] == "ended before it had started"
    assert process.returncode == 0
    assert "Traceback" not in told
    assert not any(Path(f"/proc/{pid}").exists() for pid in java.split())


def test_who_waits_for_the_end_does_not_wait_for_ever(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that cannot be read is never passed over; once it is gone the run goes on."""
    monkeypatch.setattr(running, "PAUSES_S", (0.01, 0.02))
    monkeypatch.setattr(running, "FAILURES", 3)
    (tmp_path / "posts").mkdir()
    (tmp_path / "posts" / "bad.parquet").write_bytes(b"no Parquet")
    source = '[[source]]\ntakes = "objects"\nformat = "parquet"\npath = "posts"\n'
    source += 'schema = "id string, ts timestamp, lon double, lat double, text string"\n'
    config = read_config(write_config(tmp_path, source + SINKS))
    told: list[str] = []
    with pytest.raises(Unusable, match=r"given up after 3 failures in a row: .*bad\.parquet"):
        Run(spark, config, lambda what, _: told.append(what)).go(available=True)
    assert told.count("failed") == 2
    (tmp_path / "posts" / "bad.parquet").unlink()
    Run(spark, config, lambda *_: None).go(available=True)


def test_two_sinks_have_two_names(tmp_path: Path) -> None:
    sink = '[[sink]]\nname = "a"\nformat = "jsonl"\npath = "{}"\n'
    with pytest.raises(Unusable, match="two sinks are named 'a'"):
        read_config(write_config(tmp_path, EVENTS + sink.format("b") + sink.format("c")))
