"""Objects from Parquet come to the same as the same objects from JSON Lines."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.model.errors import Unusable
from placewire.model.settings import Settings
from placewire.sinks.files import FileSink
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Offset

UTC = datetime.UTC
START = datetime.datetime(2026, 3, 1, 12, tzinfo=UTC)
SUBSCRIBE = {
    "type": "subscribe",
    "id": "s",
    "ts": "2026-03-01T12:00:00Z",
    "kind": "boolean",
    "region": {"box": [-10, -10, 10, 10]},
    "where": "coffee OR straße",
}


def objects(count: int) -> dict[str, list[Any]]:
    texts = ["Free coffee!", "STRASSE", "tea", "", "Coffee, тепло"]
    return {
        "id": [f"o{i}" for i in range(count)],
        "ts": [START + datetime.timedelta(seconds=i % 7) for i in range(count)],
        "lon": [(i * 7 % 41) - 20.0 for i in range(count)],
        "lat": [(i * 5 % 31) - 15.0 for i in range(count)],
        "text": [texts[i % len(texts)] for i in range(count)],
    }


def write_parquet(path: Path, columns: dict[str, list[Any]], group: int) -> None:
    schema = pa.schema(
        {
            "id": pa.string(),
            "ts": pa.timestamp("us", "UTC"),
            "lon": pa.float64(),
            "lat": pa.float64(),
            "text": pa.string(),
        }
    )
    pq.write_table(pa.table(columns, schema=schema), path, row_group_size=group)


def run_parts(tmp_path: Path, source: LogSource, rows: int) -> tuple[bytes, bytes]:
    """One subscription from a log of its own, then the objects of `source`."""
    log = tmp_path / "subscriptions.jsonl"
    log.write_text(json.dumps(SUBSCRIBE) + "\n")
    state = StateDir(tmp_path / f"state-{source.form}-{rows}")
    coordinator = Coordinator(state, Settings(), lambda _: "same")
    sink = FileSink(state, with_data=False)
    for manifest in replay_log(coordinator, LogSource(str(log)), rows, 1):
        sink.deliver(manifest)

    coordinator.latest = msgspec.structs.replace(
        coordinator.latest, offset=Offset(coordinator.latest.next_seq, 0)
    )
    for manifest in replay_log(coordinator, source, rows, 2):
        sink.deliver(manifest)
    coordinator.close()
    return sink.results.read_bytes(), sink.dead.read_bytes()


@pytest.mark.parametrize("rows", [10, 1_000])
def test_equals_json_lines(tmp_path: Path, rows: int) -> None:
    columns = objects(200)
    write_parquet(tmp_path / "objects.parquet", columns, 37)
    with open(tmp_path / "objects.jsonl", "w") as log:
        for values in zip(*columns.values(), strict=True):
            event = dict(zip(columns, values, strict=True))
            event["ts"] = event["ts"].strftime("%Y-%m-%dT%H:%M:%SZ")
            log.write(json.dumps({"type": "object", **event}, ensure_ascii=False) + "\n")
    parquet = run_parts(tmp_path, LogSource(str(tmp_path / "objects.parquet"), "parquet"), rows)
    lines = run_parts(tmp_path, LogSource(str(tmp_path / "objects.jsonl")), rows)
    assert parquet == lines
    assert parquet[0].count(b"\n") > 5


def test_bad_rows_become_dead_letters(tmp_path: Path) -> None:
    columns = objects(8)
    columns["lon"][1] = 181.0
    columns["lat"][2] = float("nan")
    columns["text"][3] = None
    columns["id"][4] = ""
    columns["ts"][5] = None
    columns["text"][6] = "x" * 65_537
    columns["lon"][7] = None
    write_parquet(tmp_path / "objects.parquet", columns, 100)
    _, dead = run_parts(tmp_path, LogSource(str(tmp_path / "objects.parquet"), "parquet"), 1_000)
    letters = [json.loads(line) for line in dead.splitlines()]
    assert [letter["seq"] for letter in letters] == [2, 3, 4, 5, 6, 7, 8]
    places = ["lon", "lat", "text", "id", "ts", "text", "lon"]
    assert [re.match("[a-z]+", letter["error"])[0] for letter in letters] == places


def test_missing_column_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "lon": [1.0]}), tmp_path / "objects.parquet")
    with pytest.raises(Unusable, match="needs columns"):
        run_parts(tmp_path, LogSource(str(tmp_path / "objects.parquet"), "parquet"), 10)


def test_identity_of_a_log_follows_its_growth(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\ntwo\n")
    before = identify_log(log)(Offset(1, 4))
    log.write_bytes(b"one\ntwo\nthree\n")
    assert identify_log(log)(Offset(1, 4)) == before
    log.write_bytes(b"ONE\ntwo\nthree\n")
    assert identify_log(log)(Offset(1, 4)) != before
