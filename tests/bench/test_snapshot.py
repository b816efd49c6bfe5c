"""The scan reads snapshot queries as the specification does, and the peers answer as the scan."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from peers import need_peers

need_peers("duckdb", "tantivy")
from bench.harness import Setup
from bench.papers.sstd.data import GAUSSIAN, HOUR_US, REAL, UNIFORM, RetainedObjects, retain
from bench.papers.sstd.queries import (
    BOOLEAN,
    KINDS,
    NEAREST,
    RELEVANT,
    TRENDING,
    Answer,
    Engine,
    Query,
    Setting,
    distances_m,
    draw_sources,
    make_queries,
    same_answer,
    sweep,
)
from bench.peers.duckdb_snapshots import Duck
from bench.peers.scan_snapshots import REACH_M, Scan
from bench.peers.spark_snapshots import Spark

COUNT = 3_000


@pytest.fixture(scope="module")
def retained(tmp_path_factory: pytest.TempPathFactory) -> RetainedObjects:
    return retain(Setup(None, tmp_path_factory.mktemp("snapshot")), COUNT)


def all_queries(retained: RetainedObjects, count: int = 5) -> list[Query]:
    """Some queries of every setting."""
    sources = draw_sources(retained, count)
    settings = {s for kind in KINDS for of in sweep(kind).values() for s in of}
    return [q for s in sorted(settings) for q in make_queries(retained, sources, s)]


def read_plainly(retained: RetainedObjects, query: Query) -> Answer:
    """One object after another, by the words of the specification."""
    after = retained.now_us - int(query["last"][2:-1]) * HOUR_US
    seqs = []
    terms_of = retained.objects["terms"].to_pylist()
    rows = retained.objects.select(["ts", "lon", "lat"]).to_pydict()
    times = retained.objects["ts"].cast("int64").to_pylist()
    for seq in range(COUNT):
        if times[seq] <= after:
            continue
        if "region" in query:
            west, south, east, north = query["region"]["box"]
            if not (west <= rows["lon"][seq] <= east and south <= rows["lat"][seq] <= north):
                continue
        wanted = query["where"].split(" AND ") if "where" in query else query.get("keywords", [])
        has = [word in terms_of[seq] for word in wanted]
        if any(has) if query["kind"] == RELEVANT else all(has):
            seqs.append(seq)
    if query["kind"] == BOOLEAN:
        newest = [{"object": f"o{seq}"} for seq in reversed(seqs)]
        return {"total": len(seqs), "objects": newest[: query["limit"]]}
    if query["kind"] == TRENDING:
        counts = Counter(term for seq in seqs for term in terms_of[seq])
        return {"terms": [list(p) for p in sorted(counts.items(), key=by_count)[: query["k"]]]}
    ranked = []
    for seq in seqs:
        place = np.array([rows["lon"][seq]]), np.array([rows["lat"][seq]])
        away = float(distances_m(query["lon"], query["lat"], *place)[0])
        shared = len(set(query["keywords"]) & set(terms_of[seq]))
        likeness = shared / (len(query["keywords"]) * len(terms_of[seq])) ** 0.5
        score = query.get("alpha", 0) * (1 - away / REACH_M)
        score = round(score + (1 - query.get("alpha", 0)) * likeness, 9)
        key = (away, seq) if query["kind"] == NEAREST else (-score, -seq)
        ranked.append((key, {"object": f"o{seq}", "distance_m": away, "score": score}))
    name = "distance_m" if query["kind"] == NEAREST else "score"
    first = [found for _, found in sorted(ranked, key=lambda pair: pair[0])[: query["k"]]]
    return {"objects": [{"object": o["object"], name: o[name]} for o in first]}


def by_count(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]


def disagreements(engine: Engine, truth: Engine, queries: list[Query]) -> list[Query]:
    asked = [q for q in queries if q["kind"] in engine.kinds]
    assert asked
    return [q for q in asked if not same_answer(engine.answer(q), truth.answer(q))]


def test_scan_answers_as_the_specification_says(retained: RetainedObjects) -> None:
    scan = Scan(retained)
    for query in all_queries(retained, 2):
        assert same_answer(scan.answer(query), read_plainly(retained, query)), query


def test_duckdb_answers_as_the_scan(retained: RetainedObjects, tmp_path: Path) -> None:
    engine = Duck(retained, tmp_path / "duck")
    assert disagreements(engine, Scan(retained), all_queries(retained)) == []
    engine.close()


def test_tantivy_answers_as_the_scan(
    retained: RetainedObjects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.peers import tantivy_snapshots as snapshot_tantivy

    engine = snapshot_tantivy.Tantivy(retained, tmp_path / "tantivy")
    queries = all_queries(retained)
    assert disagreements(engine, Scan(retained), queries) == []
    monkeypatch.setattr(snapshot_tantivy, "FEW", 0)  # growing boxes for every term
    near = [q for q in queries if q["kind"] == NEAREST]
    assert disagreements(engine, Scan(retained), near) == []


@pytest.mark.spark
def test_spark_answers_as_the_scan(retained: RetainedObjects, spark: SparkSession) -> None:
    engine = Spark(retained, spark)
    queries = [q for q in all_queries(retained, 1) if q["kind"] in engine.kinds]
    assert disagreements(engine, Scan(retained), queries) == []
    engine.close()


def test_every_query_finds_its_source(retained: RetainedObjects) -> None:
    scan = Scan(retained)
    for query in all_queries(retained, 2):
        answer = scan.answer(query)
        assert answer.get("objects") or answer.get("terms"), query


def test_objects_are_a_month_in_the_order_of_the_log(retained: RetainedObjects) -> None:
    lines = [json.loads(line) for line in retained.log.read_text("utf-8").splitlines()]
    assert [line["id"] for line in lines] == [f"o{seq}" for seq in range(COUNT)]
    times = retained.objects["ts"].cast("int64").to_numpy()
    assert (np.diff(times) > 0).all()
    assert times[-1] - times[0] < 31 * 24 * HOUR_US
    assert set(lines[0]) == {"type", "id", "ts", "lon", "lat", "text"}


def test_relocations_keep_texts_and_space(retained: RetainedObjects) -> None:
    setup = Setup(None, retained.log.parent)
    for name in (UNIFORM, GAUSSIAN):
        moved = retain(setup, COUNT, name)
        assert moved.objects["text"] == retained.objects["text"]
        assert moved.space == retained.space
        assert moved.objects["lon"] != retained.objects["lon"]
    assert retained.name == REAL


def test_settings_of_a_sweep_differ_in_one_parameter() -> None:
    for kind in KINDS:
        for name, settings in sweep(kind).items():
            for setting in settings:
                usual = Setting(kind)._asdict()
                changed = {k for k, v in setting._asdict().items() if v != usual[k]}
                assert changed <= {name}
