"""Places of the end-to-end benchmark: what is published and seen, without Spark or Kafka."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import workload as workloads
from bench.product.connectors import OBJECT_ID, Folders, subscribe_lines
from bench.workload import Workload, object_lines
from placewire.spark.config import read_config


@pytest.fixture
def workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workload:
    monkeypatch.setattr(workloads, "CACHE", tmp_path / "cache")
    return workloads.generated(objects=30, subscriptions=20, seed=2)


def test_folders_are_what_a_run_takes(tmp_path: Path, workload: Workload) -> None:
    place = Folders(None, tmp_path / "place", 10)  # type: ignore[arg-type]
    place.publish_subscriptions(workload)
    place.publish(workload.objects.slice(0, 10))
    place.publish(workload.objects.slice(10, 20))
    (tmp_path / "place" / "run.toml").write_text(place.config())
    config = read_config(tmp_path / "place" / "run.toml")
    assert [source.takes for source in config.source] == ["subscriptions", "objects"]
    files = sorted((tmp_path / "place" / "objects").iterdir())
    assert pa.concat_tables(map(pq.read_table, files))["id"].to_pylist() == [
        f"o{n}" for n in range(30)
    ]
    lines = (tmp_path / "place" / "subscriptions" / "all.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [f"s{n}" for n in range(20)]


def test_results_are_seen_once(tmp_path: Path) -> None:
    place = Folders(None, tmp_path / "place", 10)  # type: ignore[arg-type]
    out = tmp_path / "place" / "out"
    out.mkdir()
    pq.write_table(pa.table({"object": ["o1"]}), out / "0.parquet")
    look = place.watch()
    assert look().tolist() == []  # it was there before
    pq.write_table(pa.table({"object": ["o2", "o2", "o7"]}), out / "1.parquet")
    assert look().tolist() == [2, 2, 7]
    assert look().tolist() == []


def test_of_files_that_spark_writes_only_committed_ones_count(tmp_path: Path) -> None:
    place = Folders(None, tmp_path / "place", 10)  # type: ignore[arg-type]
    out = tmp_path / "place" / "out"
    (out / "_spark_metadata").mkdir(parents=True)
    look = place.watch()
    pq.write_table(pa.table({"id": ["o3"]}), out / "part-0.parquet")
    assert look().tolist() == []
    path = (out / "part-0.parquet").as_uri()
    (out / "_spark_metadata" / "0").write_text("v1\n" + json.dumps({"path": path}))
    assert look().tolist() == [3]


def test_objects_are_found_in_messages(workload: Workload) -> None:
    [lines] = list(object_lines(workload))
    found = [OBJECT_ID.search(line) for line in lines.splitlines()]
    assert [int(one.group(1)) for one in found if one] == list(range(30))
    match = b'{"seq":7,"type":"match","subscription":"s12","object":"o44"}'
    one = OBJECT_ID.search(match)
    assert one is not None
    assert one.group(1) == b"44"
    assert OBJECT_ID.search(next(subscribe_lines(workload))[1]) is None
