"""The benchmark's workload keeps its promises, and the DuckDB peer counts what a scan counts."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import workload as workloads
from bench.workload import Workload, analyze, settle_text
from peers import need_peers

need_peers("duckdb")
from bench.peers import duckdb_sql as duck


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "CACHE", tmp_path / "cache")


def scan_matches(workload: Workload) -> int:
    """Every object against every subscription, by the words of the specification."""
    terms = [set(analyze(text)) for text in workload.objects["text"].to_pylist()]
    lon, lat = (workload.objects[name].to_numpy() for name in ("lon", "lat"))
    total = 0
    for s in workload.subscriptions.to_pylist():
        in_box = (lon >= s["west"]) & (lon <= s["east"]) & (lat >= s["south"]) & (lat <= s["north"])
        holds = all if s["operator"] == "AND" else any
        total += sum(
            holds(word in terms[row] for word in s["keywords"]) for row in np.flatnonzero(in_box)
        )
    return total


@pytest.mark.parametrize("cell_deg", [0.05, 0.25, 3.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_duck_counts_what_a_scan_counts(cell_deg: float, seed: int) -> None:
    workload = workloads.generated(objects=400, subscriptions=600, seed=seed)
    expected = scan_matches(workload)
    assert expected > 100
    assert duck.run(workload, cell_deg=cell_deg, repeats=1).matches == expected


def test_duck_agrees_on_borders_and_repeated_terms() -> None:
    objects = pa.table(
        {
            "id": ["o0", "o1", "o2"],
            "ts": pa.array([0, 1, 2], pa.timestamp("us", "UTC")),
            "lon": [0.5, -0.5, 180.0],
            "lat": [0.5, -0.5, -90.0],
            "text": ["Sale sale FREE", "free; coffee — café", ""],
        }
    )
    boxes = {"west": [0.5, -1.0, -0.5], "south": [0.5, -1.0, -0.5]}
    boxes |= {"east": [0.5, 1.0, 180.0], "north": [0.5, 1.0, 0.5]}
    keywords = [["sale", "free"], ["free", "café", "sale"], ["coffee", "free", "café"]]
    operators = ["AND", "OR", "AND"]
    subscriptions = pa.table(
        {"id": ["s0", "s1", "s2"], **boxes, "keywords": keywords, "operator": operators}
    )
    workload = Workload(objects, subscriptions)
    assert scan_matches(workload) == 4
    assert duck.run(workload, cell_deg=0.25, repeats=1).matches == 4


def test_generated_is_a_function_of_its_arguments(tmp_path: Path) -> None:
    drawn = workloads.generated(50, 70, 3)
    assert drawn.objects.equals(workloads.generated(50, 70, 3).objects)  # from the cache
    for file in (tmp_path / "cache").iterdir():
        file.unlink()
    assert drawn.subscriptions.equals(workloads.generated(50, 70, 3).subscriptions)
    assert not drawn.subscriptions.equals(workloads.generated(50, 70, 4).subscriptions)


def test_rows_are_drawn_again_when_too_few(tmp_path: Path) -> None:
    rows = 40
    table = pa.table(
        {
            "id": np.arange(rows),
            "ts": pa.array(np.arange(rows)[::-1] * 10**14, pa.timestamp("us", "UTC")),
            "lat": np.linspace(-89.99, 89.99, rows),
            "lon": np.linspace(-179.99, 179.99, rows),
            "text": [f"{'even' if k % 2 == 0 else 'odd'} Row{k}" for k in range(rows)],
        }
    )
    pq.write_table(table, tmp_path / "posts_us.parquet")
    workload = workloads.real(tmp_path, "posts_us", objects=90, subscriptions=1000, seed=5)
    assert set(workload.objects["lon"].to_pylist()) == set(table["lon"].to_pylist()[1::2])
    assert len(set(workload.objects["id"].to_pylist())) == 90
    ts = workload.objects["ts"].cast(pa.int64()).to_numpy()
    assert (np.diff(ts) >= 0).all()

    drawn = workload.subscriptions
    words = [word for keywords in drawn["keywords"].to_pylist() for word in keywords]
    assert "even" in words
    assert not any("odd" in word for word in words)
    west, south, east, north = (
        drawn[name].to_numpy() for name in ("west", "south", "east", "north")
    )
    assert ((west >= -180) & (west < east) & (east <= 180)).all()
    assert ((south >= -90) & (south < north) & (north <= 90)).all()
    assert ((north - south) * workloads.KM_PER_DEG <= 50.001).all()
    assert all(1 <= len(set(k)) == len(k) <= 3 for k in drawn["keywords"].to_pylist())
    assert 400 < drawn["operator"].to_pylist().count("AND") < 600


def test_log_has_subscriptions_first_and_objects_in_time_order(tmp_path: Path) -> None:
    workload = workloads.generated(20, 30, 6)
    workloads.write_log(workload, tmp_path / "log.jsonl")
    lines = (tmp_path / "log.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
    events = [json.loads(line) for line in lines]
    assert [event["type"] for event in events] == ["subscribe"] * 30 + ["object"] * 20
    assert all(a["ts"] <= b["ts"] for a, b in pairwise(events))
    for event, row in zip(events, workload.subscriptions.to_pylist(), strict=False):
        assert event["kind"] == "boolean"
        assert event["region"]["box"] == [row[n] for n in ("west", "south", "east", "north")]
        assert event["where"].split(f" {row['operator']} ") == row["keywords"]
    assert [e["text"] for e in events[30:]] == workload.objects["text"].to_pylist()


@pytest.mark.parametrize("text", ["plain Text", "Straße ΟΔΟΣ", "ＡＢＣ ½ ﬁn", "İstanbul", "né’e…"])
def test_settled_text_reads_the_same_lowered_and_folded(text: str) -> None:
    settled = settle_text(text)
    assert workloads._WORD.findall(settled.lower()) == analyze(settled)
    assert settle_text(settled) == settled


def test_objects_parquet_in_one_file_or_several(tmp_path: Path) -> None:
    workload = workloads.generated(100, 10, 7)
    workloads.write_objects_parquet(workload, tmp_path / "one.parquet")
    workloads.write_objects_parquet(workload, tmp_path / "several", files=3)
    for path in ("one.parquet", "several"):
        assert pq.read_table(tmp_path / path).equals(workload.objects)
