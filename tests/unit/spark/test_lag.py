"""How far a run is behind: what Spark tells of topics, what folders say, how it is shown."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from placewire.cli.output import format_lag
from placewire.cli.replay import RunLog
from placewire.spark.config import SourceConfig
from placewire.spark.lag import (
    NO_FILES_TAKEN,
    LagMeter,
    TakenFiles,
    count_waiting_files,
    count_waiting_messages,
    count_waiting_versions,
)
from placewire.status import Exposition, add_lag
from placewire.storage.runtime_files import Lag, SourceLag

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
    waiting = count_waiting_messages(latest, end)
    assert waiting == {"a-2": 9, "a-10": 4, "b-0": 0}
    assert list(waiting) == ["a-2", "a-10", "b-0"]
    assert count_waiting_messages("null", end) is None
    assert count_waiting_messages(latest, None) is None
    assert count_waiting_messages("no JSON", end) is None


def test_versions_behind_the_latest_offset() -> None:
    latest, end = '{"version": 9, "files": 0, "of": 0}', '{"version": 7, "files": 3, "of": 5}'
    assert count_waiting_versions(latest, end) == (2, 2)
    assert count_waiting_versions(None, end) == (None, None)


def test_files_that_are_newer_than_what_was_taken(tmp_path: Path) -> None:
    for number, name in enumerate(("a", "b", "b2", "c", ".hidden", "day=1/d", "_x/e")):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * (number + 1))
        second = {"b2": 1}.get(name, number)  # of the same time as b
        os.utime(path, ns=(0, second * 10**9))
    assert count_waiting_files(str(tmp_path), NO_FILES_TAKEN) == (5, 1 + 2 + 3 + 4 + 6)
    assert count_waiting_files(str(tmp_path), TakenFiles(1_000, frozenset({"b"}))) == (3, 3 + 4 + 6)
    assert count_waiting_files(str(tmp_path), TakenFiles(1_000, frozenset({"b", "b2"}))) == (
        2,
        4 + 6,
    )
    assert count_waiting_files("s3://bucket/folder", NO_FILES_TAKEN) is None
    assert count_waiting_files(str(tmp_path / "*"), NO_FILES_TAKEN) is None


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
        " parquet s3://b/p: newest event taken is of 2026-03-01T11:00:00.000Z;"
        ' kafka "odd": unknown; delta posts: 2 files waiting, then 3 versions;'
        " sink lines lacks 3 batches"
    )
    out = Exposition()
    add_lag(out, LAG)
    assert [line.removeprefix("placewire_") for line in out.lines if not line.startswith("#")] == [
        'source_waiting_messages{source="kafka posts"} 1200',
        'source_waiting_files{source="jsonl in"} 1',
        'source_waiting_files{source="delta posts"} 2',
        'source_waiting_bytes{source="jsonl in"} 70',
        'source_waiting_versions{source="delta posts"} 3',
        'partition_waiting_messages{source="kafka posts",partition="posts-0"} 1199',
        'partition_waiting_messages{source="kafka posts",partition="posts-1"} 1',
        'sink_lacking_batches{sink="table"} 0',
        'sink_lacking_batches{sink="lines"} 3',
    ]


def test_the_progress_line_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    facts = {"batch": 3, "events": 9, "objects": 5, "results": 2, "dead_letters": 0}
    teller = RunLog("plain")
    teller("lag", msgspec.to_builtins(LAG))
    teller("batch", facts)
    assert "events/s; kafka posts: 1,200 messages behind" in capsys.readouterr().err
    RunLog("json")("lag", msgspec.to_builtins(LAG))
    told = json.loads(capsys.readouterr().err)
    assert (told["what"], told["sources"][0]["messages"]) == ("lag", 1_200)
