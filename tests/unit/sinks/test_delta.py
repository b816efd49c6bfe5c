"""Delta tables for real: rows once whoever else writes, commits in order, refusals in words."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from placewire import Unusable
from placewire.sinks.delta import DeltaSink
from placewire.sinks.outbox import SCHEMA
from placewire.storage.delta_tables import TableLocation
from placewire.storage.filesystem import Unreachable

KEY = (7, -9)


def batch(number: int, rows: int = 3, key: tuple[int, int] = KEY) -> Any:
    """So many results under a batch's number."""
    made = [{"id": f"{number}:{row}", "seq": row, "type": "match"} for row in range(rows)]
    table = pa.Table.from_pylist(made, SCHEMA)
    return SimpleNamespace(batch=number, table=table, manifest=SimpleNamespace(key=key))


def ids_of(path: Path) -> list[str]:
    return sorted(DeltaTable(path).to_pyarrow_table()["id"].to_pylist())


def test_a_batch_that_comes_again_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "a table"
    sink = DeltaSink("table", str(path))
    sink.check(KEY)
    assert not path.exists()
    sink.claim(KEY)
    assert ids_of(path) == []  # whoever reads it finds it, results or not
    for number in (0, 0, 1, 2, 1, 2):
        sink.write(batch(number))
    DeltaSink("table", str(path)).write(batch(2))  # another process
    sink.write(batch(3, rows=0))
    once = [f"{number}:{row}" for number in range(3) for row in range(3)]
    assert ids_of(path) == once
    assert DeltaTable(path).version() == 3  # nothing for what came again, nor for what is empty
    assert DeltaTable(path).transaction_version("placewire-7--9-table") == 2
    DeltaSink("other", str(path)).write(batch(0))
    DeltaSink("table", str(path)).write(batch(0, key=(1, 1)))
    assert len(ids_of(path)) == 15  # batches of another sink, and of another state


def test_a_commit_has_the_rows_and_the_number_or_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that write one batch at the same time: one of them finds that it is there."""
    path = tmp_path / "table"
    sink = DeltaSink("table", str(path))
    sink.write(batch(0))
    version = DeltaTable.transaction_version

    def overtaken(self: DeltaTable, app: str) -> int | None:
        known = version(self, app)
        monkeypatch.undo()
        DeltaSink("table", str(path)).write(batch(1))
        return known

    monkeypatch.setattr(DeltaTable, "transaction_version", overtaken)
    with pytest.raises(Unreachable, match=r"sink table: .*table: cannot be written: .*oncurrent"):
        sink.write(batch(1))
    sink.write(batch(1))
    assert len(ids_of(path)) == 6


def test_another_writer_appends_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "table"
    sink = DeltaSink("table", str(path))
    sink.claim(KEY)
    started = threading.Barrier(2)

    def append() -> None:
        started.wait()
        for number in range(10):
            other = CommitProperties(app_transactions=[Transaction("other", number)])
            rows = pa.Table.from_pylist([{"id": f"other {number}"}], SCHEMA)
            write_deltalake(path, rows, mode="append", commit_properties=other)

    worker = threading.Thread(target=append)
    worker.start()
    started.wait()
    for number in range(10):
        sink.write(batch(number, rows=1))
    worker.join()
    expected = [f"{n}:0" for n in range(10)] + [f"other {n}" for n in range(10)]
    assert ids_of(path) == sorted(expected)


def test_a_table_that_was_there_takes_the_rows_or_is_refused(tmp_path: Path) -> None:
    more = SCHEMA.insert(0, pa.field("note", pa.string()))
    DeltaTable.create(tmp_path / "more", more, partition_by=["type"])
    sink = DeltaSink("table", str(tmp_path / "more"))
    sink.check(KEY)
    sink.write(batch(0))
    assert ids_of(tmp_path / "more") == ["0:0", "0:1", "0:2"]

    DeltaTable.create(tmp_path / "fewer", SCHEMA.remove(0))
    DeltaTable.create(tmp_path / "other", SCHEMA.set(1, pa.field("seq", pa.string())))
    DeltaTable.create(tmp_path / "must", SCHEMA.append(pa.field("note", pa.string(), False)))
    for name, error in (
        ("fewer", 'fewer: column id must be "string", got none'),
        ("other", 'other: column seq must be "long", got "string"'),
        ("must", "must: column note must be nullable"),
    ):
        sink = DeltaSink("table", str(tmp_path / name))
        with pytest.raises(Unusable, match=error):
            sink.check(KEY)
        with pytest.raises(Unusable, match=error):
            sink.write(batch(0))


def test_what_is_no_table_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for who in ("source", "sink table:"):
        with pytest.raises(Unusable, match=rf"{who} .*file: must be a folder, got a file"):
            TableLocation(who, str(tmp_path / "file"))
        with pytest.raises(Unusable, match=r"does not support '%' in a path"):
            TableLocation(who, str(tmp_path / "a%20b"))
    (tmp_path / "folder").mkdir()
    for name in ("folder", "nowhere"):
        with pytest.raises(Unusable, match=rf"source .*{name}: has no Delta table"):
            TableLocation("source", str(tmp_path / name)).open()
    with pytest.raises(Unusable, match=r"sink table: zz://host/t: cannot be made: .*zz"):
        DeltaSink("table", "zz://key:secret@host/t").claim(KEY)
    store = {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "r",
        "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "max_retries": "0",
    }  # fmt: skip
    with pytest.raises(Unreachable, match=r"s3://bucket/t: cannot be opened: .*127\.0\.0\.1:1"):
        DeltaSink("table", "s3://bucket/t", options=store).check(KEY)
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(Unusable, match=r"format delta: .*pip install 'placewire\[delta\]'"):
        DeltaSink("table", str(tmp_path / "table"))
