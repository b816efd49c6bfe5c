"""States, sinks and archives that lie elsewhere: the same results, whatever is lost on the way."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from oracle import replay
from placewire import Unusable, open_snapshot
from placewire.batch.coordinator import Coordinator
from placewire.cli.main import app
from placewire.ingest.sources import name_stream
from placewire.model.settings import Settings
from placewire.sinks.files import FolderSink
from placewire.spark.config import read_config
from placewire.spark.runner import Run
from placewire.storage import mirror
from placewire.storage.arrays import forget_deleted, open_arrays, write_arrays
from placewire.storage.filesystem import Folder, Unreachable, as_uri, send_at_once, without_secrets
from placewire.storage.layout import StateDir
from placewire.storage.mirror import Mirrored, mirror_of
from s3_server import KEY, SECRET, serve_bucket, without_keys
from test_law import BUILT_KINDS
from test_run import EVENTS, SINKS, lines_of
from test_stream import split_log

SESAME = "sesame"  # a part of every secret here


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a folder of a bucket, keys and all; the folder's name is to be put in."""
    with serve_bucket(tmp_path_factory.mktemp("s3") / "log") as uri:
        yield uri


def test_small_files_go_to_s3_in_one_request() -> None:
    assert send_at_once("s3://b/a") == "s3://b/a?allow_delayed_open=true"
    assert send_at_once("s3://b/a?region=x") == "s3://b/a?region=x&allow_delayed_open=true"
    assert send_at_once("s3://b/a?allow_delayed_open=false") == "s3://b/a?allow_delayed_open=false"
    assert send_at_once("gs://b/a") == "gs://b/a"


def test_uris_are_told_from_paths() -> None:
    assert as_uri("s3://bucket/a/b/") == "s3://bucket/a/b"
    assert as_uri(Path("s3://bucket/a")) == "s3://bucket/a"
    assert as_uri(Path("file:///data/state")) == "file:///data/state"
    assert as_uri("/data/s3:/x") is None
    assert as_uri("state") is None


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("s3://key:sesame@bucket/a?region=x", "s3://bucket/a"),
        ("s3://key:open@sesame@bucket/a", "s3://bucket/a"),
        ("s3://bucket/a@b?secret=sesame", "s3://bucket/a@b"),
        ("s3://key:open/sesame@bucket/a", "s3://..."),
        ("s3://key:1/sesame@bucket/a", "s3://..."),
        ("s3://key:sesame?1@bucket/a", "s3://..."),
        ("s3://key:sesame#1@bucket/a", "s3://..."),
        ("s3://key:sesame", "s3://..."),
        (
            "abfs://box:sesame@account.dfs.core.windows.net/a",
            "abfs://box@account.dfs.core.windows.net/a",
        ),
        ("hdfs://host:8020/a", "hdfs://host:8020/a"),
        ("hdfs://user:sesame@[::1]:8020/a", "hdfs://[::1]:8020/a"),
        ("file:///a/b", "file:///a/b"),
        ("/a/b@c:d", "/a/b@c:d"),
    ],
)
def test_what_is_shown_of_a_uri(uri: str, shown: str) -> None:
    assert without_secrets(uri) == shown


@pytest.mark.parametrize(
    "uri",
    [
        "s3://key:sesame@",
        "s3://?secret=sesame",
        "s3://key:sesame@bucket/a?nonsense=1",
        "s3://key:open/sesame@bucket/a",
        "s3://key:sesame?1@bucket/a",
        "s3://key:sesame#1@bucket/a",
        "s3://key:sesame %zz@bucket/a",
        "s3://key:sesame@bucket:x/a",
        "ftp://key:sesame@bucket/a",
    ],
)
def test_errors_show_no_secrets(uri: str, tmp_path: Path) -> None:
    with pytest.raises(Unusable) as refused:
        StateDir.given(uri)
    assert SESAME not in str(refused.value)
    with pytest.raises(Unusable, match="sink a: ") as refused:
        FolderSink("a", uri)
    assert SESAME not in str(refused.value)
    config = tmp_path / "wire.toml"
    config.write_text(
        f'state = "a"\n{EVENTS}[[sink]]\nname = "a"\nformat = "stdout"\npath = "{uri}"\n'
    )
    with pytest.raises(Unusable, match="has no path, got") as refused:
        read_config(config)
    assert SESAME not in str(refused.value)


def check_place(place: Folder, folder: Path) -> None:
    assert place.list() == []
    assert place.list("no/such") == []
    place.write("a/b.json", b"one")
    place.write("a/b.json", b"two")
    (folder / "large").write_bytes(b"x" * 9_000_000)
    place.write("a/large", folder / "large")
    assert place.read("a/b.json") == b"two"
    assert sorted(place.list("a")) == ["b.json", "large"]
    assert place.list() == ["a"]
    place.write("a/deeper/c", b"")
    assert sorted(place.list("a", deep=True)) == ["b.json", "deeper/c", "large"]
    place.fetch("a/large", folder / "back")
    assert (folder / "back").read_bytes() == b"x" * 9_000_000
    for missing in (lambda: place.read("a/no"), lambda: place.fetch("a/no", folder / "no")):
        with pytest.raises(FileNotFoundError):
            missing()
    assert {path.name for path in folder.iterdir()} >= {"large", "back"}
    assert not list(folder.glob(".*"))
    place.remove("a/b.json")
    place.remove("a/b.json")
    assert "b.json" not in place.list("a")


def test_a_place_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    check_place(Folder(f"file://{tmp_path}/place"), tmp_path / "here")
    check_place(Folder(tmp_path / "other"), tmp_path / "here")


def test_a_place_in_a_bucket(s3: str, tmp_path: Path) -> None:
    check_place(Folder(s3.replace("NAME", "place")), tmp_path)
    gone = Folder(s3.replace("wire/NAME", "nobucket/x"))
    with pytest.raises(Unreachable, match=r"s3://nobucket/x: a cannot be written: .*bucket"):
        gone.write("a", b"")


def two_mirrors(uri: str, folder: Path, most_bytes: int = 1 << 30) -> tuple[StateDir, StateDir]:
    """The same state on two machines."""
    one, two = (
        StateDir.at(Mirrored(uri, str(folder / name), most_bytes).name) for name in ("one", "two")
    )
    return one, two


def test_files_are_found_on_other_machines(tmp_path: Path) -> None:
    one, two = two_mirrors(f"file://{tmp_path}/state", tmp_path)
    assert one.root != two.root
    one.open()
    path = one.file("b000000001-x-1.plw")
    write_arrays(path, {"numbers": np.arange(1_000)})
    assert not two.file(path.name).exists()
    assert (open_arrays(two.file(path.name)).arrays["numbers"] == np.arange(1_000)).all()
    assert two.file(path.name).exists()
    assert (tmp_path / "state" / "files" / path.name).exists()
    with pytest.raises(Unusable, match="cannot be read"):
        open_arrays(two.file("b000000001-y-1.plw"))
    assert str(two) == f"file://{tmp_path}/state"


def test_a_mirror_stays_small(tmp_path: Path) -> None:
    """What was used least lately goes, and comes back when it is wanted."""
    size = 1_000_000
    one, two = two_mirrors(f"file://{tmp_path}/state", tmp_path, 5 * size)
    one.open()
    names = [f"b000000001-x-{number}.plw" for number in range(8)]
    for number, name in enumerate(names):
        write_arrays(one.file(name), {"bytes": np.full(size, number, np.uint8)})
    assert len(list((tmp_path / "state" / "files").iterdir())) == 8
    for state in (one, two, one):
        for number, name in enumerate(names):
            assert open_arrays(state.file(name)).arrays["bytes"][-1] == number
            os.utime(state.file(names[0]))  # always in use
            forget_deleted()
    for state in (one, two):
        here = [path.name for path in state.files.iterdir()]
        assert 3 <= len(here) <= 6
        assert names[0] in here
        assert names[-1] in here


def test_the_last_to_come_is_the_writer(tmp_path: Path) -> None:
    one, two = two_mirrors(f"file://{tmp_path}/state", tmp_path)
    first = Coordinator(one, Settings(), name_stream)
    first.state.check_writer()
    second = Coordinator(two, Settings(), name_stream)
    second.state.check_writer()
    with pytest.raises(Unusable, match=r"file:///.*/state: another process has become its writer"):
        first.state.check_writer()
    same = StateDir.at(two.name)
    with pytest.raises(Unusable, match="is in use by another process"):
        Coordinator(same, Settings(), name_stream)
    second.state.check_writer()
    first.close()
    second.close()


def test_what_is_no_state_is_refused(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    with pytest.raises(Unusable, match="is not a placewire state directory and is not empty"):
        Coordinator(StateDir.given(f"file://{tmp_path}/full"), Settings(), name_stream)
    with pytest.raises(Unusable, match="is not a placewire state directory"):
        open_snapshot(f"file://{tmp_path}/none")
    with pytest.raises(Unusable, match="must have no #"):
        StateDir.given("s3://a/b#c")
    with pytest.raises(Unusable, match=r"ftp://a/b: its scheme must be one of s3"):
        StateDir.given("ftp://a/b")
    with pytest.raises(Unusable, match="must name a bucket"):
        StateDir.given("s3://")
    with pytest.raises(Unusable, match="cannot be opened"):
        StateDir.given("s3://a/b?nonsense=1")
    shown = CliRunner().invoke(app, ["status", "--state", f"file://{tmp_path}/none"])
    assert isinstance(shown.exception, Unusable)


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


def test_a_run_with_its_state_elsewhere(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_there(spark, tmp_path, f"file://{tmp_path}/away/NAME", monkeypatch)


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


def test_a_sink_that_comes_later_gets_what_there_is(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = split_log(tmp_path, 12, objects=900, subscriptions=100, seed=5)
    late = [(path, path.read_bytes()) for path in sorted((tmp_path / "source").iterdir())[10:]]
    for path, _ in late:
        path.unlink()
    monkeypatch.setattr("placewire.batch.coordinator.SWEEP_EVERY", 2)
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


def test_a_directory_has_no_mirror(tmp_path: Path) -> None:
    state = StateDir.given(tmp_path / "state")
    state.open()
    assert mirror_of(state.files) is None
    assert state.name == str(tmp_path / "state")
