"""The one law on Spark: the same steps inside stages, with shuffles, give what the oracle gives."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, given, seed, settings
from pyspark.sql import SparkSession

from logs import BUILT_KINDS, logs
from oracle import Outcome, replay
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log
from placewire.demo import CityLife, write_log
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.model.errors import Unusable
from placewire.model.settings import Settings, parse_settings
from placewire.plans.planners import USUAL_REBALANCE
from placewire.plans.rebalance.rebalancer import RebalanceRule, read_rebalance
from placewire.plans.sample.sampler import SAMPLE_EVENTS
from placewire.sinks.files import FileSink
from placewire.spark.session import count_hosts, count_machines
from placewire.spark.stages import replay_on_spark
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest, committed_batches, read_latest
from placewire.storage.runtime_files import request_plan
from sliding_logs import sliding_log

pytestmark = pytest.mark.spark
slow = pytest.mark.slow


class Run(NamedTuple):
    results: list[dict[str, Any]]
    dead: list[tuple[int, str]]
    idle_unsubscribes: int
    batches: int


def small_logs(count: int) -> list[bytes]:
    """Logs of the law tests, the same ones each time."""
    drawn: list[bytes] = []

    @seed(20260301)
    @settings(max_examples=count * 4, phases=[Phase.generate])
    @given(logs)
    def draw(log: bytes) -> None:
        drawn.append(log)

    draw()
    return sorted(drawn, key=len, reverse=True)[:count]


@pytest.fixture(scope="module")
def city() -> bytes:
    """A few hundred events of city life with much coming and going, and leaps in time."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "city.jsonl"
        write_log(CityLife(objects=400, subscriptions=200, churn=0.7, bad=20, seed=3), str(path))
        lines = path.read_bytes().splitlines()
    everywhere = {"type": "subscribe", "kind": "boolean", "region": {"box": [-180, -90, 180, 90]}}
    nearest = {"type": "subscribe", "kind": "nearest", "keywords": ["the", "coffee", "in"]}
    choose = random.Random(5)
    for number in range(30):
        minute = choose.randrange(60)
        event = {
            **nearest,
            "id": f"near{number % 20}",
            "ts": f"2026-03-01T12:{minute:02d}:00Z",
            "lon": choose.uniform(-180, 180),
            "lat": choose.uniform(-90, 90),
            "k": choose.choice([1, 3, 10]),
        }
        lines.insert(choose.randrange(len(lines)), json.dumps(event).encode())
    for number in range(12):
        at = choose.randrange(len(lines))
        minute = choose.randrange(60)
        event = {
            **everywhere,
            "id": f"all{number % 3}",
            "ts": f"2026-03-01T12:{minute:02d}:00Z",
            "expires": f"2026-03-01T12:{min(minute + 9, 59):02d}:00Z",
        }
        lines.insert(at, json.dumps(event).encode())
        lines.insert(at // 2, b'{"type":"unsubscribe","id":"all1","ts":"2030-01-01T00:00:00Z"}')
    return b"\n".join(lines)


def run_on_spark(
    spark: SparkSession,
    folder: Path,
    log: bytes,
    *,
    plan: str,
    workers: int,
    rows: int,
    sample_events: int = SAMPLE_EVENTS,
    table: dict[str, Any] | None = None,
    rebalance: RebalanceRule = USUAL_REBALANCE,
    asked: Sequence[int] = (),
) -> Run:
    """Replay on Spark from wherever the folder's state is.

    After each batch the next of `asked` is how many workers are asked for.
    """
    path = folder / "log.jsonl"
    path.write_bytes(log)
    state = StateDir(folder / "state")
    coordinator = Coordinator(
        state,
        parse_settings(table or {}),
        identify_log(path),
        plan,
        workers,
        sample_events,
        rebalance=rebalance,
    )
    batches = 0
    numbers = iter(asked)
    try:
        sink = FileSink(state, with_data=True)
        assert coordinator.latest is not None
        sink.deliver(coordinator.latest)

        def after(manifest: Manifest) -> None:
            nonlocal batches
            batches += 1
            sink.deliver(manifest)
            coordinator.delivered = manifest.batch
            for number in islice(numbers, 1):
                request_plan(state, workers=number)

        replay_on_spark(
            spark, coordinator, LogSource(str(path)), batch_rows=rows, workers=workers, after=after
        )
        counters = coordinator.latest.counters
    finally:
        coordinator.close()
    results = [json.loads(line) for line in sink.results.read_bytes().splitlines()]
    dead = [json.loads(line) for line in sink.dead.read_bytes().splitlines()]
    assert counters.results == len(results)
    assert counters.dead_letters == len(dead)
    letters = [(letter["seq"], letter["event"]) for letter in dead]
    return Run(results, letters, counters.idle_unsubscribes, batches)


def check_equals(run: Run, expected: Outcome) -> None:
    assert run.results == expected.results
    assert run.dead == [(letter["seq"], letter["event"]) for letter in expected.dead]
    assert run.idle_unsubscribes == expected.idle_unsubscribes


def test_machines_are_counted_by_their_executors(spark: SparkSession) -> None:
    assert count_machines(spark) == 1
    assert count_hosts(["10.0.0.1:4000"], "10.0.0.1") == 1
    assert count_hosts(["a:1", "b:1", "b:2", "c:1"], "a") == 2
    assert count_hosts(["a:1", "b:1", "b:2", "c:1", "a:2"], "a") == 3


def expected_of(log: bytes, table: dict[str, Any] | None = None) -> Outcome:
    return replay(log, kinds=BUILT_KINDS, with_data=True, settings=table)


@pytest.mark.parametrize("plan", ["shared", "grid"])
@pytest.mark.parametrize(
    ("workers", "batches"), [(2, 3), pytest.param(1, 1, marks=slow), pytest.param(7, 2, marks=slow)]
)
def test_city_life_equals_the_oracle(
    spark: SparkSession, tmp_path: Path, city: bytes, plan: str, workers: int, batches: int
) -> None:
    expected = expected_of(city)
    assert len(expected.results) > 150
    assert len(expected.dead) > 25
    events = city.count(b"\n") + 1
    rows = -(-events // batches)
    run = run_on_spark(spark, tmp_path, city, plan=plan, workers=workers, rows=rows)
    assert run.batches == batches
    check_equals(run, expected)


@pytest.mark.parametrize(
    ("plan", "workers", "cuts"),
    [("shared", 1, 3), ("shared", 2, 1), ("grid", 2, 2), ("shared", 7, 2), ("grid", 7, 1)],
)
def test_small_worlds_equal_the_oracle(
    spark: SparkSession, tmp_path: Path, plan: str, workers: int, cuts: int
) -> None:
    log = small_logs(7)[workers - 1 if plan == "shared" else 3 + cuts]
    rows = -(-log.count(b"\n") // cuts)
    run = run_on_spark(spark, tmp_path, log, plan=plan, workers=workers, rows=rows)
    check_equals(run, expected_of(log))


def test_a_run_goes_on_in_another_way(spark: SparkSession, tmp_path: Path, city: bytes) -> None:
    """Stopped after a commit and before its delivery, and resumed with another plan and width."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(city)
    state = StateDir(tmp_path / "state")
    coordinator = Coordinator(state, Settings(), identify_log(path), "shared", 2)

    def stop(manifest: Manifest) -> None:
        if manifest.batch == 1:
            raise RuntimeError("stopped")

    with pytest.raises(Unusable, match="stopped"):
        replay_on_spark(
            spark, coordinator, LogSource(str(path)), batch_rows=200, workers=2, after=stop
        )
    coordinator.close()
    assert committed_batches(state) == [0, 1]
    run = run_on_spark(spark, tmp_path, city, plan="grid", workers=3, rows=300)
    check_equals(run, expected_of(city))


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        pytest.param("ps2-local", (5, 5, 5, 2), marks=slow),
        pytest.param("sstd", (), marks=slow),
        pytest.param("ps2-global", (), marks=slow),
    ],
)
def test_plans_and_workers_change_on_spark(
    spark: SparkSession, tmp_path: Path, city: bytes, name: str, asked: tuple[int, ...]
) -> None:
    run = run_on_spark(
        spark,
        tmp_path,
        city,
        plan="boolean=kdt,nearest=dkm,relevant=prefix",
        workers=3,
        rows=60,
        sample_events=100,
        rebalance=read_rebalance(name)._replace(eager=True),
        asked=asked,
    )
    check_equals(run, expected_of(city))
    latest = read_latest(StateDir(tmp_path / "state"))
    assert latest is not None
    assert latest.leaf_plan.version > 2
    assert latest.leaf_plan.workers == (asked[-1] if asked else 3)


def test_begun_in_process_and_finished_on_spark(
    spark: SparkSession, tmp_path: Path, city: bytes
) -> None:
    """The runner may change between two runs of one log."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(city)
    state = StateDir(tmp_path / "state")
    coordinator = Coordinator(state, Settings(), identify_log(path), "shared", 2)
    for manifest in replay_log(coordinator, LogSource(str(path)), 60, 2):
        if manifest.batch == 4:
            break
    coordinator.close()
    run = run_on_spark(spark, tmp_path, city, plan="shared", workers=2, rows=300)
    check_equals(run, expected_of(city))


def test_a_log_that_has_grown(spark: SparkSession, tmp_path: Path, city: bytes) -> None:
    lines = city.splitlines(keepends=True)
    for part in (lines[:300], lines):
        log = b"".join(part)
        run = run_on_spark(spark, tmp_path, log, plan="shared", workers=2, rows=1000)
        check_equals(run, expected_of(log))


def test_a_log_without_a_valid_event(spark: SparkSession, tmp_path: Path) -> None:
    log = b"\n\xff\r\n\n{}"
    run = run_on_spark(spark, tmp_path, log, plan="shared", workers=2, rows=10)
    check_equals(run, expected_of(log))


@pytest.mark.parametrize(
    ("plan", "workers", "rows"),
    [
        pytest.param("grid", 3, 250, marks=slow),
        pytest.param("kdtree", 2, 400, marks=slow),
        pytest.param("rtree", 7, 400, marks=slow),
        pytest.param("frequency", 7, 250, marks=slow),
        pytest.param("hypergraph", 2, 400, marks=slow),
        pytest.param("metric", 3, 400, marks=slow),
        pytest.param("termhash", 7, 400, marks=slow),
        pytest.param("kdt", 7, 150, marks=slow),
        pytest.param("agrid", 7, 250, marks=slow),
        pytest.param("qt", 7, 250, marks=slow),
        pytest.param("auto", 2, 400, marks=slow),
        pytest.param("nearest=kop", 2, 250, marks=slow),
        pytest.param("nearest=sop", 7, 250, marks=slow),
        ("nearest=dkm,boolean=kdt", 2, 400),
        pytest.param("nearest=dkm,boolean=kdt", 7, 150, marks=slow),
        pytest.param("nearest=ps2,boolean=agrid", 3, 250, marks=slow),
        pytest.param("nearest=sstd", 7, 250, marks=slow),
    ],
)
def test_a_plan_that_is_made_of_what_was_seen(
    spark: SparkSession, tmp_path: Path, city: bytes, plan: str, workers: int, rows: int
) -> None:
    """By stripes at first; after enough events the plan is made and the next batch uses it."""
    run = run_on_spark(
        spark, tmp_path, city, plan=plan, workers=workers, rows=rows, sample_events=200
    )
    check_equals(run, expected_of(city))


@pytest.mark.parametrize(
    ("plan", "workers", "rows", "window"),
    [
        ("shared", 1, 60, {"count": 20}),
        ("shared", 2, 1_000, {"time": "PT30S"}),
        pytest.param("relevant=hash", 2, 60, {"time": "PT30S"}, marks=slow),
        pytest.param("relevant=location", 7, 60, {"count": 5}, marks=slow),
        pytest.param("relevant=keyword", 3, 60, {"count": 20}, marks=slow),
        pytest.param("relevant=prefix", 7, 40, {"count": 20}, marks=slow),
        pytest.param("relevant=location+prefix", 4, 60, {"time": "PT30S"}, marks=slow),
        pytest.param("relevant=prefix+location", 4, 60, {"count": 20}, marks=slow),
        pytest.param("relevant=auto", 2, 60, {"count": 20}, marks=slow),
    ],
)
def test_windows_slide_on_spark(
    spark: SparkSession,
    tmp_path: Path,
    plan: str,
    workers: int,
    rows: int,
    window: dict[str, Any],
) -> None:
    """Postings are dealt out by hash at first, and by the plan once it is made."""
    log = sliding_log(13)
    assert log.count(b"\n") == 150
    table = {"window": window, "retention": "PT5S"}
    expected = expected_of(log, table)
    assert len(expected.results) > 40
    run = run_on_spark(
        spark, tmp_path, log, plan=plan, workers=workers, rows=rows, sample_events=50, table=table
    )
    check_equals(run, expected)


def test_many_queries_and_reports_are_portions_of_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    """More of both in one batch than one task takes."""
    choose = random.Random(11)
    words = ["coffee", "tea", "free", "sale", "café"]
    events: list[dict[str, Any]] = []
    for number in range(90):
        west = choose.uniform(-10, 9)
        box = [west, choose.uniform(-10, 0), west + choose.uniform(0, 9), 5]
        every = choose.choice(["PT1M", "PT2M"])
        asked = {"kind": "trending", "region": {"box": box}, "k": 3, "window": "PT5M"}
        events.append({"type": "subscribe", "id": f"t{number}", "every": every, **asked})
    kinds: list[dict[str, Any]] = [
        {"kind": "boolean", "where": "coffee OR tea"},
        {"kind": "nearest", "lon": 1, "lat": 1, "keywords": ["coffee", "free"], "k": 3},
        {"kind": "relevant", "lon": 1, "lat": 1, "keywords": ["tea"], "k": 3, "alpha": 0.5},
        {"kind": "trending", "k": 2},
    ]
    for number in range(600):
        lon, lat = choose.uniform(-10, 10), choose.uniform(-10, 10)
        text = " ".join(choose.choices(words, k=3))
        events.append({"type": "object", "id": f"o{number}", "lon": lon, "lat": lat, "text": text})
        events.append({"type": "query", "id": f"q{number}", "last": "PT3M", **kinds[number % 4]})
    start = datetime(2026, 3, 1, 12, tzinfo=UTC)
    for number, event in enumerate(events):
        event["ts"] = (start + timedelta(seconds=number)).isoformat()
    log = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    run = run_on_spark(spark, tmp_path, log, plan="shared", workers=2, rows=1_000)
    assert {result["type"] for result in run.results} == {"answer", "report"}
    check_equals(run, expected_of(log))
