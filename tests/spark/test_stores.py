"""Runs on Spark whose state lies in another file system."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from logs import BUILT_KINDS
from oracle import replay
from placewire import Unusable, open_snapshot
from placewire.cli.main import app
from placewire.sinks.files import FolderSink
from placewire.spark.config import read_config
from placewire.spark.runner import Run
from placewire.storage import mirror
from run_config import EVENTS, SINKS, lines_of
from s3_server import KEY, SECRET, without_keys
from streams import split_log

SESAME = "sesame"  # a part of every secret here


Told = list[tuple[str, dict[str, Any]]]


def run_once(spark: SparkSession, config: Path, told: Told) -> None:
    """Run until all is done or something fails, with what is told of it."""

    def tell(what: str, facts: dict[str, Any]) -> None:
        told.append((what, facts))
        if what == "failed":
            run.stop()

    run = Run(spark, read_config(config), tell)
    run.go(available=True)


def run_there(spark: SparkSession, folder: Path, uri: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run to a state elsewhere, in two halves; between them this machine loses all it has.

    Gives all that was said meanwhile.
    """
    cut = split_log(folder, 6, objects=900, subscriptions=200, queries=12, seed=5)
    config = folder / "wire.toml"
    config.write_text(
        f'state = "{uri.replace("NAME", "state")}"\nworkers = 2\nwith_data = true\nplan = "kdt"\n'
        f'cache = "cache"\n{EVENTS}{SINKS}'
        f'[[sink]]\nname = "far"\nformat = "parquet"\npath = "{uri.replace("NAME", "far")}"\n'
    )
    write, calls = FolderSink.write, []

    def write_thrice(self: FolderSink, delivered: Any) -> None:
        write(self, delivered)
        calls.append(delivered.batch)
        if len(calls) == 9:
            raise OSError("the machine is gone")

    monkeypatch.setattr(FolderSink, "write", write_thrice)
    before: Told = []
    run_once(spark, config, before)
    monkeypatch.setattr(FolderSink, "write", write)
    assert [facts["error"] for what, facts in before if what == "failed"] == ["the machine is gone"]
    assert len(calls) == 9
    assert list((folder / "cache").rglob("*.plw"))
    shutil.rmtree(folder / "cache")
    forget_mirrors()
    told: Told = []
    run_once(spark, config, told)
    assert not [facts for what, facts in told if what == "failed"]
    assert told[0][0] == "started"
    assert told[0][1]["batch"] > 0
    expected = replay(b"".join(cut), kinds=BUILT_KINDS, with_data=True)
    assert lines_of(folder / "lines") == expected.results
    system, path = fs.FileSystem.from_uri(uri.replace("NAME", "far"))
    table = pq.read_table(path, filesystem=system)
    assert table["seq"].to_pylist() == [result["seq"] for result in expected.results]
    assert not (folder / "state").exists()
    last = max(facts["batch"] for what, facts in told if what == "batch")
    shown = CliRunner().invoke(app, ["status", "--state", uri.replace("NAME", "state")])
    assert f"batch {last}: " in shown.stdout
    with open_snapshot(uri.replace("NAME", "state")) as snapshot:
        query = {"kind": "boolean", "region": {"box": [-180, -90, 180, 90]}, "last": "P1D"}
        assert snapshot.answer(query)["total"] > 0
    return f"{before} {told} {shown.output}"


def forget_mirrors() -> None:
    mirror._mirrors.clear()
    mirror._roots.clear()


@pytest.mark.slow
def test_a_run_with_its_state_elsewhere(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_there(spark, tmp_path, f"file://{tmp_path}/away/NAME", monkeypatch)


@pytest.mark.slow
def test_a_run_with_its_state_in_a_bucket(
    spark: SparkSession, s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its keys are in the URI, and neither told of nor kept with what is written."""
    said = run_there(spark, tmp_path, s3, monkeypatch)
    assert SESAME not in said
    assert KEY not in said
    system, bucket = fs.FileSystem.from_uri(s3.replace("/NAME", ""))
    files = system.get_file_info(fs.FileSelector(bucket, recursive=True))
    contents = [system.open_input_stream(one.path).read() for one in files if one.is_file]
    contents += [path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert len(contents) > 100
    assert not [one for one in contents if SESAME.encode() in one]


@pytest.mark.slow
def test_tasks_that_may_not_read_the_state(
    spark: SparkSession, s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver has keys and Spark's older processes have none: that is told at each attempt."""
    uri = s3.replace("NAME", "denied")
    config = tmp_path / "wire.toml"
    rest = f'workers = 2\ncache = "cache"\n{EVENTS}{SINKS}'
    split_log(tmp_path, 2, objects=300, subscriptions=60, seed=5)
    last = max((tmp_path / "source").iterdir())
    held = last.read_bytes()
    last.unlink()
    config.write_text(f'state = "{uri}"\n{rest}')
    told: Told = []
    run_once(spark, config, told)
    assert not [facts for what, facts in told if what == "failed"]
    last.write_bytes(held)
    os.utime(last, (1_800_000_000, 1_800_000_000))
    shutil.rmtree(tmp_path / "cache")
    forget_mirrors()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    config.write_text(f'state = "{without_keys(uri)}"\n{rest}')
    told.clear()
    run_once(spark, config, told)
    [facts] = [facts for what, facts in told if what == "failed"]
    assert re.match(
        r"in a task: s3://wire/denied: files/\S+ cannot be read: .*ACCESS_DENIED", facts["error"]
    )
    assert facts["again_in_s"] == 1.0
    assert SESAME not in str(told)


@pytest.mark.slow
def test_a_folder_is_one_sinks(spark: SparkSession, tmp_path: Path) -> None:
    """Files go by the numbers of batches, so two sinks would write over each other's."""
    split_log(tmp_path, 1, objects=300, subscriptions=60, bad=20, seed=5)
    both = '[[sink]]\nname = "a"\nformat = "jsonl"\npath = "out"\n'
    other = both.replace('"a"', '"b"') + 'takes = "dead"\n'
    config = tmp_path / "wire.toml"
    config.write_text('state = "state"\n' + EVENTS + both + other)
    with pytest.raises(Unusable, match="sink b: has the path of sink a"):
        read_config(config)
    config.write_text('state = "state"\n' + EVENTS + both)
    Run(spark, read_config(config), lambda *_: None).go(True)
    free = '[[sink]]\nname = "free"\nformat = "jsonl"\npath = "free"\n'
    config.write_text('state = "again"\n' + EVENTS + free + both)
    with pytest.raises(Unusable, match=r"sink a: .*/out belongs to another sink or state"):
        Run(spark, read_config(config), lambda *_: None).go(True)
    assert list((tmp_path / "free").iterdir()) == []
    config.write_text('state = "again"\n' + EVENTS + free)
    Run(spark, read_config(config), lambda *_: None).go(True)
    assert list((tmp_path / "free").glob("*.jsonl"))
    (tmp_path / "file").write_text("x")
    config.write_text('state = "third"\n' + EVENTS + both.replace('"out"', '"file"'))
    with pytest.raises(Unusable, match=r"sink a: .*/file: cannot be written"):
        Run(spark, read_config(config), lambda *_: None).go(True)


@pytest.mark.slow
def test_a_sink_that_comes_later_gets_what_there_is(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = split_log(tmp_path, 12, objects=900, subscriptions=100, seed=5)
    late = [(path, path.read_bytes()) for path in sorted((tmp_path / "source").iterdir())[10:]]
    for path, _ in late:
        path.unlink()
    monkeypatch.setattr("placewire.batch.coordinator.COLLECT_EVERY", 2)
    one = '[[sink]]\nname = "a"\nformat = "jsonl"\npath = "a"\n'
    config = tmp_path / "wire.toml"
    config.write_text('state = "state"\n' + EVENTS + one)
    Run(spark, read_config(config), lambda *_: None).go(True)
    other = one.replace('"a"', '"b"')
    config.write_text('state = "state"\n' + EVENTS + other)
    for number, (path, content) in enumerate(late):
        path.write_bytes(content)
        os.utime(path, (1_800_000_000 + number, 1_800_000_000 + number))
    Run(spark, read_config(config), lambda *_: None).go(True)
    first, later = lines_of(tmp_path / "a"), lines_of(tmp_path / "b")
    expected = replay(b"".join(cut), kinds=BUILT_KINDS).results
    assert first == expected[: len(first)]
    assert later == expected[-len(later) :]
    assert 0 < len(later) < len(expected)
    for turn in range(4):
        more = tmp_path / "source" / f"more{turn}.jsonl"
        more.write_bytes(late[0][1])
        os.utime(more, (1_800_000_100 + turn, 1_800_000_100 + turn))
    Run(spark, read_config(config), lambda *_: None).go(True)
    config.write_text('state = "state"\n' + EVENTS + one + other)
    with pytest.raises(Unusable, match=r"sink a: lacks batches \d+ to \d+, which the state no"):
        Run(spark, read_config(config), lambda *_: None).go(True)
