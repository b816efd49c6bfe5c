"""The number of workers follows the load within its range, and results know nothing of it."""

from __future__ import annotations

import re
from itertools import cycle, pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from local_runs import check_equals_oracle, run_local
from logs import flowing, logs
from placewire import Unusable, run
from placewire.batch import resize as resizing
from placewire.batch.resize import Elastic, ElasticRule, WorkerRange, read_workers
from placewire.cli.main import app
from placewire.demo import CityLife, write_log
from placewire.model.kinds import BOOLEAN
from placewire.storage.manifest import WorkersEntry
from profiles import examples

RULE = ElasticRule(busy_s=0.5, aim_s=0.25, idle_s=0.1, streak=3, cooldown=6)


def told(batch: int, busy_s: list[float]) -> WorkersEntry:
    zeros = [0] * len(busy_s)
    return WorkersEntry(
        batch=batch,
        kind=BOOLEAN,
        objects=zeros,
        candidates=zeros,
        matches=zeros,
        bytes=zeros,
        busy_s=busy_s,
    )


def follow(elastic: Elastic, works: list[float], workers: int) -> list[int]:
    """How many workers there are after each batch, whose work they share evenly."""
    numbers, history = [], []
    for batch, work in enumerate(works):
        history.append(told(batch, [work / workers] * workers))
        wanted = elastic.wanted(history, workers)
        if wanted != workers:
            elastic.since, workers = batch, wanted
        numbers.append(workers)
    return numbers


def test_workers_are_added_when_they_are_busy_and_retired_when_idle() -> None:
    elastic = Elastic(WorkerRange(2, 16), rule=RULE)
    numbers = follow(elastic, [0.5] * 8 + [2.9] * 12 + [0.3] * 12, 2)
    assert numbers[7] == 2
    assert numbers[19] == 12  # 2.9 s at a quarter of a second each
    assert numbers[-1] == 2
    assert len([1 for one, other in pairwise(numbers) if one != other]) == 2


def test_a_range_is_kept() -> None:
    assert follow(Elastic(WorkerRange(2, 3), rule=RULE), [50.0] * 20, 2)[-1] == 3
    assert follow(Elastic(WorkerRange(2, 3), rule=RULE), [0.0] * 20, 3)[-1] == 2


@given(st.lists(st.floats(1.1, 3.9), min_size=30, max_size=60))
def test_a_load_that_fits_changes_nothing(works: list[float]) -> None:
    """Work that swings nearly by four times between batches keeps 8 workers."""
    assert set(follow(Elastic(WorkerRange(1, 64), rule=RULE), works, 8)) == {8}


def test_one_long_batch_changes_nothing() -> None:
    works = [1.0, 1.0, 30.0, 1.0, 1.0] * 8
    assert set(follow(Elastic(WorkerRange(1, 64), rule=RULE), works, 4)) == {4}


def test_a_resumed_run_begins_with_as_many_as_there_were() -> None:
    elastic = Elastic(WorkerRange(2, 8))
    assert elastic.opening(0) == 2
    assert elastic.opening(5) == 5
    assert elastic.opening(40) == 8


@pytest.mark.parametrize("text", ["0", "-1", "x", "3..2", "1..5000", "2..", "..4", "1.5", "2...4"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(Unusable, match=re.escape(f"got {text}")):
        read_workers(text)


def test_ranges_are_read() -> None:
    assert read_workers(4) == (4, 4)
    assert read_workers("2..8") == (2, 8)


@settings(max_examples=examples(8), suppress_health_check=list(HealthCheck))
@given(
    log=logs | flowing(),
    plan=st.sampled_from(["kdt", "auto", "nearest=dkm,relevant=prefix", "nearest=sstd"]),
    rows=st.sampled_from([1, 17]),
    life=st.sampled_from([None, 1, 3]),
    numbers=st.lists(st.integers(1, 7), min_size=1, max_size=6),
)
def test_no_result_depends_on_how_many_workers_the_load_asks_for(
    log: bytes, plan: str, rows: int, life: int | None, numbers: list[int]
) -> None:
    turns = cycle(numbers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Elastic, "wanted", lambda *_: next(turns))
        span = WorkerRange(1, 7)
        ran = run_local(log, plan=plan, workers=span, rows=rows, sample_events=3, life=life)
    check_equals_oracle(log, ran)


def test_a_replay_tells_how_many_workers_it_goes_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log.jsonl"
    write_log(CityLife(objects=4_000, subscriptions=400, seed=3), str(log))
    eager = ElasticRule(busy_s=0.0, aim_s=1e-9, streak=2, cooldown=1)
    monkeypatch.setattr(resizing, "Elastic", lambda span, plan: Elastic(span, plan, eager))
    words = ["replay", str(log), "--results", str(tmp_path / "r"), "--runner", "local"]
    words += ["--plan", "kdt", "--workers", "2..5", "--batch-rows", "200"]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0, shown.output
    assert "workers 2 to 5: each had" in shown.output


def test_a_saved_plan_has_its_own_workers(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    write_log(CityLife(objects=300, subscriptions=40, seed=3), str(log))
    words = ["plan", "--objects", str(log), "--subscriptions", str(log), "--workers", "3"]
    shown = CliRunner().invoke(app, [*words, "--plan", "kdt", "--out", str(tmp_path)])
    assert shown.exit_code == 0, shown.output
    saved = tmp_path / "kdt.plan"
    with pytest.raises(Unusable, match="a saved plan has its own, 3, got 2"):
        run([], plan=str(saved), workers="2..8")
