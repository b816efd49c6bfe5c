"""Delta tables as sources: a snapshot, then commits in order."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from logs import BUILT_KINDS
from oracle import replay
from placewire import Unusable
from placewire.demo import CityLife, write_log
from placewire.model.times import parse_timestamp
from placewire.spark import runner as running
from placewire.spark.config import read_config
from placewire.spark.datasource import read_delta, read_file
from placewire.spark.runner import Run
from placewire.storage.delta_tables import (
    DeltaLog,
    Position,
    SkippedCommits,
    TableLocation,
    log_file,
)
from placewire.storage.filesystem import Unreachable
from placewire.storage.intake import Intake, IntakeBatch
from run_config import SINKS, lines_of, write_config

SOURCES = """
[[source]]
takes = "subscriptions"
format = "jsonl"
path = "wishes"

[[source]]
takes = "objects"
format = "delta"
path = "posts"
columns = { text = "body" }
options = { maxFilesPerTrigger = "3" }
"""


def table_of(*numbers: int, **more: Any) -> pa.Table:
    columns = {"n": pa.array(numbers, pa.int64())}
    return pa.table(columns | {name: pa.array(v) for name, v in more.items()})


def log_of(path: Path, known: int = 1 << 40, **forgiven: bool) -> DeltaLog:
    return DeltaLog(TableLocation("source", str(path)), known, SkippedCommits(**forgiven))


def read_all(path: Path, log: DeltaLog, most: int = 2, at: Position | None = None) -> list[int]:
    """The numbers of a table, portion by portion, each planned anew as after a crash."""
    at = at or Position()
    schema = pa.schema(DeltaTable(path).schema())
    found: list[int] = []
    while True:
        end = log.advance(at, log.latest(at), most)
        again = log_of(path, log.known, **log.skipped._asdict())
        files = list(again.between(at, end))
        assert len(files) <= most
        for file in files:
            for rows in read_file(log.place, file, schema):
                found += rows["n"].to_pylist()
        if end == at:
            return found
        at = Position(**json.loads(json.dumps(end._asdict())))


def commit(path: Path, *actions: dict[str, Any]) -> None:
    """A commit as another writer might make it."""
    version = DeltaTable(path).version() + 1
    (path / log_file(version)).write_text("".join(json.dumps(one) + "\n" for one in actions))


def test_a_snapshot_then_commits_in_order(tmp_path: Path) -> None:
    """With partitions of every type, compaction, a checkpoint and a restart in the middle."""
    path = tmp_path / "posts"
    rows = table_of(0, 1, 2, 3, day=["a b/c%", "ü", None, ""], at=[1.5, None, 2.0, 2.0])
    rows = rows.append_column("ts", pa.array([0, 1, 2, None], pa.timestamp("us", "UTC")))
    rows = rows.append_column("big", pa.array([1, 2, 3, 4], pa.int32()).cast(pa.decimal128(12, 2)))
    parted = ["day", "at", "ts", "big"]
    write_deltalake(path, rows, partition_by=parted)
    for first in (4, 8):
        more = rows.set_column(0, "n", pa.array(range(first, first + 4), pa.int64()))
        write_deltalake(path, more, mode="append")
    log = log_of(path)
    at = log.advance(Position(), log.latest(Position()), 5)
    assert (at.snapshot, at.version, at.files, at.of) == (2, 2, 5, 12)
    early = {file.path for file in log_of(path).between(Position(), at)}
    DeltaTable(path).optimize.compact()
    for first in (12, 16):
        more = rows.set_column(0, "n", pa.array(range(first, first + 4), pa.int64()))
        write_deltalake(path, more, mode="append")
        DeltaTable(path).create_checkpoint()
    found = read_all(path, log_of(path), 3, at)  # as another process
    assert sorted(found[:7] + [n for n in range(12) if n not in found]) == list(range(12))
    assert (sorted(found[7:11]), sorted(found[11:])) == ([12, 13, 14, 15], [16, 17, 18, 19])
    assert len(early) == 5
    # What a snapshot has as values and a commit as text is the same in rows.
    schema = pa.schema(DeltaTable(path).schema())
    start, log = Position(str(DeltaTable(path).metadata().id), 0, 0, 4, 4), log_of(path)
    for position in (Position(), start):
        end = log.advance(position, log.latest(position), 100)
        files = list(log.between(position, end))
        batches = [rows for file in files for rows in read_file(log.place, file, schema)]
        read = sorted(pa.Table.from_batches(batches).to_pylist(), key=lambda row: row["n"])
        first = 4 if position == start else 0
        expected = [row | {"n": n, "day": row["day"] or None} for n, row in
                    enumerate(rows.to_pylist() * 5)][first:]  # fmt: skip
        assert read == expected
        log = log_of(path)


def test_commits_that_remove_rows_stop_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "posts"
    write_deltalake(path, table_of(0, 1, 2, part=["a", "b", "b"]), partition_by=["part"])
    at = log_of(path).latest(Position())._replace(files=2, of=2)
    write_deltalake(path, table_of(3, part=["b"]), mode="append")
    DeltaTable(path).delete("n = 0")  # a whole file
    write_deltalake(path, table_of(4, part=["b"]), mode="append")
    DeltaTable(path).update(predicate="n = 1", updates={"n": "5"})
    write_deltalake(path, table_of(6, part=["b"]), mode="append")
    log = log_of(path)
    before = log.advance(at, log.latest(at), 9)
    assert before.version == 1  # what came before is taken
    with pytest.raises(Unusable, match=r"posts: version 2 deletes rows.* option ignoreDeletes"):
        log.advance(before, log.latest(before), 9)
    with pytest.raises(Unusable, match=r"version 4 changes rows.* option skipChangeCommits"):
        read_all(path, log_of(path, deletes=True), 9, at)
    assert read_all(path, log_of(path, changes=True), 9, at) == [3, 4, 6]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxFilesPerTrigger", "0"),
        ("maxfilespertrigger", "-1"),
        ("maxFilesPerTrigger", "abc"),
        ("IgnoreDeletes", "yes"),
        ("startingversion", "3"),
    ],
)
def test_options_are_those_that_mean_something(
    spark: SparkSession, tmp_path: Path, name: str, value: str
) -> None:
    write_deltalake(str(tmp_path / "t"), table_of(1))
    with pytest.raises(Unusable, match=rf"t: option (?i:{name}) must be"):
        read_delta(spark, str(tmp_path / "t"), {name: value})
    named = {"MAXFILESPERTRIGGER": "2", "ignoredeletes": "true"}
    assert read_delta(spark, str(tmp_path / "t"), named).isStreaming


def inline_vector(*rows: int) -> dict[str, Any]:
    """A deletion vector in the log itself, as the protocol has it: Z85 of a Roaring bitmap."""
    head = struct.pack("<IQIIIHHI", 1681511377, 1, 0, 12346, 1, 0, len(rows) - 1, 16)
    raw = head + struct.pack(f"<{len(rows)}H", *rows)
    raw += bytes(-len(raw) % 4)
    signs = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    text = ""
    for at in range(0, len(raw), 4):
        number = int.from_bytes(raw[at : at + 4], "big")
        text += "".join(signs[number // 85**power % 85] for power in (4, 3, 2, 1, 0))
    facts = {"storageType": "i", "pathOrInlineDv": text}
    return facts | {"sizeInBytes": len(raw), "cardinality": len(rows)}


def test_what_cannot_be_read_right_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "posts"
    write_deltalake(path, table_of(0, 1))
    at = log_of(path).latest(Position())._replace(files=1, of=1)
    file = pa.table(DeltaTable(path).get_add_actions())["path"][0].as_py()
    feature = {"minReaderVersion": 3, "minWriterVersion": 7}
    known = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    commit(path, {"protocol": feature | known})
    assert read_all(path, log_of(path)) == [0, 1]  # it may have them, and has none
    add = {"path": file, "partitionValues": {}, "size": 1, "modificationTime": 1}
    add |= {"dataChange": True, "stats": '{"numRecords":2}', "deletionVector": inline_vector(1)}
    shutil.copytree(path, tmp_path / "changed")
    commit(path, {"add": add})
    with pytest.raises(Unusable, match="posts: has deletion vectors"):
        read_all(path, log_of(path))
    with pytest.raises(Unusable, match="posts: version 2 has deletion vectors"):
        read_all(path, log_of(path), 9, at)

    path = tmp_path / "changed"
    text = (path / log_file(0)).read_text().splitlines()
    meta = next(json.loads(line)["metaData"] for line in text if "metaData" in line)
    commit(path, {"metaData": meta})
    with pytest.raises(Unreachable, match="version 2 may have other columns"):
        read_all(path, log_of(path, known=1), 9, at)
    assert read_all(path, log_of(path, known=2), 9, at) == []
    meta = meta | {"configuration": {"delta.columnMapping.mode": "name"}}
    commit(path, {"metaData": meta})
    with pytest.raises(Unusable, match=r"version 3: column mapping is not supported: .* is name"):
        read_all(path, log_of(path), 9, at)
    strange = {"readerFeatures": ["strange"], "writerFeatures": ["strange"]}
    commit(path, {"protocol": feature | strange})
    with pytest.raises(Unusable, match="version 4: requires unsupported reader features: strange"):
        log_of(path).files(4, 0)


def test_what_is_gone_is_told(tmp_path: Path) -> None:
    path = tmp_path / "posts"
    write_deltalake(path, table_of(0))
    at = log_of(path).latest(Position())._replace(files=1, of=1)
    for number in (1, 2, 3):
        write_deltalake(path, table_of(number), mode="append")
    DeltaTable(path).create_checkpoint()
    (path / log_file(1)).unlink()
    with pytest.raises(Unusable, match="posts: version 1 is gone from its log"):
        read_all(path, log_of(path), 9, at)
    [*_, file] = path.glob("*.parquet")
    file.unlink()
    with pytest.raises(Unusable, match=r"posts: part-.* was deleted before it was read"):
        read_all(path, log_of(path))
    shutil.rmtree(path)
    write_deltalake(path, table_of(0))
    with pytest.raises(Unusable, match="posts: is another table"):
        log_of(path).latest(at)


def recorded_ids(state: Path) -> list[list[str]]:
    """The ids of objects in the order that the intake has recorded, by batch of the source."""
    folder = state / "intake"
    found = []
    for number in sorted(int(path.stem) for path in folder.glob("*.json")):
        text = (folder / f"{number}.json").read_bytes()
        blocks = [folder / one.file for one in msgspec.json.decode(text, type=IntakeBatch).blocks]
        tables = [pa.ipc.open_file(file).read_all() for file in blocks if file.suffix == ".arrow"]
        found.append([id_ for table in tables for id_ in table["id"].to_pylist()])
    return found


@pytest.mark.slow
def test_a_run_from_a_table_to_a_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits, a compaction and a new column between two runs; a deletion ends the third."""
    monkeypatch.setattr(Intake, "tidy", lambda _: None)
    monkeypatch.setattr(running, "PAUSES_S", (0.01,))
    monkeypatch.setattr(running, "LAG_INTERVAL_S", 0.0)
    write_log(CityLife(objects=600, subscriptions=150, seed=5), str(tmp_path / "whole.jsonl"))
    lines = (tmp_path / "whole.jsonl").read_bytes().splitlines()
    events = [json.loads(line) for line in lines]
    wishes = [line for line, one in zip(lines, events, strict=True) if one["type"] == "subscribe"]
    things = [one for one in events if one["type"] == "object"]
    (tmp_path / "wishes").mkdir()
    (tmp_path / "wishes" / "a.jsonl").write_bytes(b"".join(line + b"\n" for line in wishes))
    by_id = {thing["id"]: thing for thing in things}

    def append(part: int, **more: Any) -> None:
        some = things[part * 100 : part * 100 + 100]
        columns = {name: [one[name] for one in some] for name in ("id", "lon", "lat")}
        ts = pa.array([parse_timestamp(one["ts"]) for one in some], pa.timestamp("us", "UTC"))
        texts = [one["text"] for one in some]
        kind = [f"kind {len(text) % 3}" for text in texts]
        table = pa.table(columns | {"ts": ts, "body": texts, "kind": kind} | more)
        mode = {"schema_mode": "merge"} if more else {"partition_by": ["kind"]}
        write_deltalake(tmp_path / "posts", table, mode="append", **mode)

    told: list[tuple[str, dict[str, Any]]] = []
    delta = '[[sink]]\nname = "delta"\nformat = "delta"\npath = "results"\n'
    text = SOURCES + SINKS + delta
    config = read_config(write_config(tmp_path, text.replace("with_data = true\n", "")))
    append(0)
    append(1)
    Run(spark, config, lambda what, facts: told.append((what, facts))).go(True)
    assert [what for what, _ in told if what == "failed"] == []
    lags = [facts["sources"][1] for what, facts in told if what == "lag"]
    assert [lag["files"] for lag in lags][-2:] == [3, 0]
    append(2)
    DeltaTable(tmp_path / "posts").optimize.compact()
    append(3)
    append(4, likes=[7] * 100)
    append(5, likes=[8] * 100)
    told.clear()
    Run(spark, config, lambda what, facts: told.append((what, facts))).go(True)
    assert [what for what, _ in told if what == "failed"] == []
    batches = [ids for ids in recorded_ids(tmp_path / "state") if ids]
    taken = [id_ for ids in batches for id_ in ids]
    assert len(batches) == 6  # two triggers of three files, then one for each commit
    for part, start in ((slice(0, 200), 0), *((slice(at, at + 100), at) for at in (200, 300, 400))):
        assert sorted(taken[part]) == sorted(one["id"] for one in things[start : part.stop])
    log = wishes + [
        json.dumps(
            {
                **{name: by_id[id_][name] for name in ("type", "id", "ts", "lon", "lat", "text")},
                "data": {"kind": f"kind {len(by_id[id_]['text']) % 3}"},
            }
        ).encode()
        for id_ in taken
    ]
    found = lines_of(tmp_path / "lines")
    results = [{k: v for k, v in one.items() if k != "data"} for one in found]
    expected = replay(b"".join(line + b"\n" for line in log), kinds=BUILT_KINDS).results
    assert len(expected) > 50
    assert [strip(one) for one in results] == expected
    rows = DeltaTable(tmp_path / "results").to_pyarrow_table().sort_by("seq")
    assert rows["seq"].to_pylist() == [one["seq"] for one in expected]
    assert len(set(rows["id"].to_pylist())) == len(expected)

    DeltaTable(tmp_path / "posts").delete("kind = 'kind 1'")
    with pytest.raises(Unusable, match=r"posts: version 7 deletes rows.* ignoreDeletes"):
        Run(spark, config, lambda *_: None).go()


def strip(result: dict[str, Any]) -> dict[str, Any]:
    """A result without the data that ranked objects carry."""
    for name in ("add", "drop", "objects"):
        for one in result.get(name, ()):
            one.pop("data", None)
    return result
