"""States, sinks and archives that lie elsewhere: the same results, whatever is lost on the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from placewire import Unusable, open_snapshot
from placewire.batch.coordinator import Coordinator
from placewire.cli.main import app
from placewire.ingest.sources import identify_stream
from placewire.model.settings import Settings
from placewire.sinks.files import FolderSink
from placewire.spark.config import read_config
from placewire.storage.filesystem import (
    Folder,
    Unreachable,
    allow_single_request,
    as_uri,
    without_secrets,
)
from placewire.storage.layout import StateDir
from run_config import EVENTS

SESAME = "sesame"  # a part of every secret here


def test_small_files_go_to_s3_in_one_request() -> None:
    assert allow_single_request("s3://b/a") == "s3://b/a?allow_delayed_open=true"
    assert allow_single_request("s3://b/a?region=x") == "s3://b/a?region=x&allow_delayed_open=true"
    assert (
        allow_single_request("s3://b/a?allow_delayed_open=false")
        == "s3://b/a?allow_delayed_open=false"
    )
    assert allow_single_request("gs://b/a") == "gs://b/a"


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


def test_what_is_no_state_is_refused(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    with pytest.raises(Unusable, match="is not a placewire state directory and is not empty"):
        Coordinator(StateDir.given(f"file://{tmp_path}/full"), Settings(), identify_stream)
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
