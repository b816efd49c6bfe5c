"""Continuous top-k relevance: exact over windows of count and time, whatever keeps the results."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local_runs import check_equals_oracle, run_local
from oracle import replay
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log
from placewire.ingest.decode import decode_lines
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.kinds.relevant.kind import KIND
from placewire.kinds.relevant.refill import LEAST_SLID
from placewire.kinds.relevant.results import BUFFERS
from placewire.model.kinds import RELEVANT
from placewire.model.settings import parse_settings
from placewire.plans.cost.measures import spread_workers
from placewire.plans.cost.model import Prices
from placewire.plans.relevant.methods import RELEVANT_METHODS, RelevantSample
from placewire.plans.relevant.strategy import choose_relevant
from placewire.storage.layout import StateDir
from placewire.text.analyzer import Analyzer
from profiles import examples
from sliding_logs import START, sliding_log

windows = st.sampled_from(
    [{"count": 1}, {"count": 2}, {"count": 5}, {"count": 20}, {"time": "PT1S"}, {"time": "PT30S"}]
)


sliding = st.integers(0, 1 << 30).map(sliding_log)


@pytest.mark.parametrize("buffer", BUFFERS)
@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("rows", [1, 17, 1_000_000])
@settings(max_examples=examples(8), suppress_health_check=list(HealthCheck))
@given(log=sliding, window=windows, life=st.sampled_from([None, 1, 4]))
def test_windows_slide(
    buffer: str, workers: int, rows: int, log: bytes, window: dict[str, Any], life: int | None
) -> None:
    """Buffers run short in the middle of batches; a new process takes over in mid-window."""
    table = {"window": window, "retention": "PT1S"}
    run = run_local(
        log, plan="shared", workers=workers, rows=rows, table=table, life=life, buffer=buffer
    )
    check_equals_oracle(log, run, table)


@pytest.mark.parametrize("plan", [*RELEVANT_METHODS, "auto", "scan"])
@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("rows", [1, 17, 1_000_000])
@settings(max_examples=examples(4), suppress_health_check=list(HealthCheck))
@given(log=sliding, window=windows, sample=st.sampled_from([0, 5, 40]))
def test_every_plan_of_relevant_equals_oracle(
    plan: str, workers: int, rows: int, log: bytes, window: dict[str, Any], sample: int
) -> None:
    """Postings are dealt out by hash until the sample is full, then by the plan."""
    table = {"window": window}
    plans = f"relevant={plan}"
    run = run_local(log, plan=plans, workers=workers, rows=rows, sample_events=sample, table=table)
    check_equals_oracle(log, run, table)


@pytest.mark.parametrize("documents", [0, 10])
@settings(max_examples=examples(15), suppress_health_check=list(HealthCheck))
@given(log=sliding, window=windows, rows=st.sampled_from([1, 17, 1_000_000]))
def test_a_lexicon_weighs_words(
    tmp_path_factory: pytest.TempPathFactory,
    documents: int,
    log: bytes,
    window: dict[str, Any],
    rows: int,
) -> None:
    lexicon = {"documents": documents, "df": {"tea": 9, "jazz": 0, "é": 3}}
    path = tmp_path_factory.mktemp("lexicon") / "lexicon.json"
    path.write_text(json.dumps(lexicon))
    table = {"window": window, "lexicon": str(path)}
    run = run_local(log, plan="shared", workers=2, rows=rows, table=table, life=3)
    check_equals_oracle(log, run, {"window": window, "lexicon": lexicon})


def thing(number: int, text: str = "tea", **more: Any) -> dict[str, Any]:
    when = (START + timedelta(seconds=number)).isoformat()
    return {
        "type": "object",
        "id": f"o{number}",
        "ts": when,
        "lon": 0,
        "lat": 0,
        "text": text,
    } | more


def relevant(number: int, name: str = "s", **more: Any) -> dict[str, Any]:
    asked = {"kind": "relevant", "lon": 0, "lat": 0, "keywords": ["tea"], "k": 2, "alpha": 0.5}
    when = (START + timedelta(seconds=number)).isoformat()
    return {"type": "subscribe", "id": name, "ts": when, **asked} | more


def updates(events: list[dict[str, Any]], rows: int, **table: Any) -> list[tuple[Any, ...]]:
    """The updates of a log as (seq, ids added, ids dropped); the oracle has them too."""
    log = "".join(json.dumps(event) + "\n" for event in events).encode()
    run = run_local(log, plan="shared", workers=1, rows=rows, table=table)
    assert run.results == replay(log, with_data=True, settings=table).results
    return [
        (
            update["seq"],
            [one["object"] for one in update["add"]],
            [one["object"] for one in update["drop"]],
        )
        for update in run.results
    ]


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_the_newest_of_equal_scores_comes_first(rows: int) -> None:
    events = [relevant(0), thing(1), thing(2), thing(3)]
    assert updates(events, rows, window={"count": 10}) == [
        (1, ["o1"], []),
        (2, ["o2"], []),
        (3, ["o3"], ["o1"]),
    ]


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_a_window_smaller_than_k(rows: int) -> None:
    """What arrives and what leaves at one event is one update."""
    events = [relevant(0, k=5), thing(1), thing(2), thing(3, "jazz"), thing(4)]
    assert updates(events, rows, window={"count": 2}) == [
        (1, ["o1"], []),
        (2, ["o2"], []),
        (3, [], ["o1"]),
        (4, ["o4"], ["o2"]),
    ]


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_an_object_that_comes_too_late_is_in_no_update(rows: int) -> None:
    late = thing(4, ts=thing(1)["ts"])
    events = [relevant(0), thing(1), thing(30), late, thing(31)]
    assert updates(events, rows, window={"time": "PT10S"}) == [
        (1, ["o1"], []),
        (2, ["o30"], ["o1"]),
        (4, ["o31"], []),
    ]


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_any_event_lets_the_window_slide(rows: int) -> None:
    """A subscription begins with what is there, and loses it at an event of another."""
    events = [thing(0), relevant(1), relevant(20, "other", keywords=["jazz"])]
    assert updates(events, rows, window={"time": "PT10S"}) == [(1, ["o0"], []), (2, [], ["o0"])]


@pytest.mark.parametrize("rows", [pytest.param(1, marks=pytest.mark.slow), 7, 1_000])
@pytest.mark.parametrize("buffer", BUFFERS)
def test_a_result_is_filled_from_what_was_not_kept(rows: int, buffer: str) -> None:
    """Good ones come first and leave together; many that were passed over have to come back."""
    events = [relevant(0, k=3)]
    events += [thing(number, "tea") for number in range(1, 60)]
    events += [thing(number, "tea and much more besides", lat=1) for number in range(60, 200)]
    events += [thing(number, "jazz") for number in range(200, 300)]
    log = "".join(json.dumps(event) + "\n" for event in events).encode()
    table = {"window": {"count": 120}}
    run = run_local(log, plan="shared", workers=1, rows=rows, table=table, buffer=buffer)
    check_equals_oracle(log, run, table)


@pytest.mark.parametrize("plan", ["shared", "prefix"])
def test_rows_on_several_threads(plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placewire.kinds.relevant.settle.MIN_THREAD_ROWS", 1)
    monkeypatch.setattr(
        "placewire.kinds.relevant.settle.OUTPUT_ROOM", 1_001
    )  # updates come in many parts
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    for seed in (13, 19, 28):
        log, table = sliding_log(seed), {"window": {"count": 20}}
        run = run_local(log, plan=plan, workers=2, rows=40, sample_events=50, table=table)
        check_equals_oracle(log, run, table)


@pytest.mark.parametrize("rows", [2, 9, 40])
@settings(max_examples=examples(25), suppress_health_check=list(HealthCheck))
@given(log=sliding, window=windows, lives=st.randoms(use_true_random=False))
def test_another_life_has_another_plan_and_another_rule(
    rows: int, log: bytes, window: dict[str, Any], lives: random.Random
) -> None:
    """What one plan dealt out, and one rule kept, another goes on with."""
    plans = [f"relevant={lives.choice([*RELEVANT_METHODS, 'shared', 'auto'])}" for _ in range(3)]
    rules = [lives.choice(BUFFERS) for _ in range(2)]
    run = run_local(
        log,
        plan=plans,
        workers=lives.choice([1, 2, 5]),
        rows=rows,
        sample_events=lives.choice([0, 9, 60]),
        table={"window": window},
        life=lives.choice([1, 2, 5]),
        buffer=rules,
    )
    check_equals_oracle(log, run, {"window": window})


def test_a_full_buffer_of_a_resumed_run() -> None:
    """Deltas are not applied in the order of events; what is dominated meanwhile takes no room."""
    near = {"keywords": ["tea"], "k": 1, "alpha": 1, "reach_m": 2e6}
    events = [relevant(0, **near), thing(1, "no")]
    events += [thing(50 + i, lat=1 + i / 10) for i in range(13)]
    events += [thing(80, lat=5), thing(70, lat=0.5), thing(40, lat=0.1)]
    events += [thing(175, "no"), thing(178, "no")]
    log = "".join(json.dumps(event) + "\n" for event in events).encode()
    table = {"window": {"time": "PT100S"}}
    run = run_local(log, plan="shared", workers=1, rows=2, table=table, life=9)
    check_equals_oracle(log, run, table)


def test_a_keyword_of_very_many_words() -> None:
    many = " ".join(f"w{i}" for i in range(5_000))
    events = [thing(1, "w4999 tea"), relevant(2, keywords=[many, "tea"]), thing(3, "w7 w8")]
    assert updates(events, 2, window={"count": 10}) == [(1, ["o1"], []), (2, ["o3"], [])]


def test_a_window_larger_than_any_log() -> None:
    events = [relevant(0), thing(1), thing(2)]
    assert updates(events, 2, window={"count": 10**20}) == [(1, ["o1"], []), (2, ["o2"], [])]


@pytest.mark.parametrize("plan", ["nearest=dkm", "relevant=prefix", "auto"])
@settings(max_examples=examples(10), suppress_health_check=list(HealthCheck))
@given(log=sliding, window=windows)
def test_merges_beside_the_batches(plan: str, log: bytes, window: dict[str, Any]) -> None:
    """Thresholds sink while a merge is under way, and a plan that is made takes it over."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("placewire.segments.live.INLINE_ROWS", 0)
        patch.setattr("placewire.kinds.relevant.results.RISEN", 0)
        patch.setattr("placewire.segments.live.MOST_DELTAS", 2)
        patch.setattr("placewire.kinds.relevant.match.ROOM", 8)
        table = {"window": window}
        run = run_local(log, plan=plan, workers=2, rows=7, sample_events=60, table=table, life=6)
        check_equals_oracle(log, run, table)


def test_a_row_that_is_filled_anew_again_and_again() -> None:
    """Scores fall all the time and the window is short: every arrival is a search."""
    events = [relevant(0, k=1, alpha=1, reach_m=2e6)]
    events += [thing(number, lat=number / 200) for number in range(1, 1_500)]
    log = "".join(json.dumps(event) + "\n" for event in events).encode()
    table = {"window": {"count": 4}}
    run = run_local(log, plan="shared", workers=1, rows=1_000_000, table=table, buffer="kmax")
    check_equals_oracle(log, run, table)


def test_a_batch_is_about_as_long_as_the_window(tmp_path: Path) -> None:
    memory = KIND.open(StateDir(tmp_path))
    assert memory.cap_batch(200_000, (), 30_000) == 30_000
    assert memory.cap_batch(200_000, (), 3) == LEAST_SLID
    assert memory.cap_batch(500, (), 30_000) == 500


@pytest.mark.parametrize(("table", "first", "later"), [
    ({"window": {"count": 5_000}}, 5_000, 5_000),
    ({"window": {"time": "PT1H"}}, LEAST_SLID, LEAST_SLID),
])  # fmt: skip
def test_batches_are_capped_while_results_slide(
    table: dict[str, Any], first: int, later: int, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(sliding_log(3))
    coordinator = Coordinator(
        StateDir(tmp_path / "state"), parse_settings(table), identify_log(log), workers=1
    )
    assert coordinator.cap_rows(200_000) == first
    for _ in replay_log(coordinator, LogSource(str(log)), 200_000, 1):
        pass
    assert coordinator.live.of_kind(RELEVANT)
    assert coordinator.cap_rows(200_000) == later
    coordinator.close()


@pytest.mark.parametrize(("workers", "never"), [(16, "hash"), (2, "prefix")])
def test_auto_holds_words_against_places_by_the_terms_of_an_object(
    workers: int, never: str
) -> None:
    """Six terms an object: with more workers words may save messages, with fewer they cannot."""
    rng = np.random.default_rng(1)
    hashes = rng.integers(1, 1 << 63, 50, dtype=np.uint64)
    terms = np.concatenate([np.sort(rng.choice(hashes, 6, replace=False)) for _ in range(200)])
    line = np.frombuffer(json.dumps(relevant(0, k=3)).encode() + b"\n", np.uint8)
    rows = decode_lines(line, 0, Analyzer(1, 2), None, 1 << 60).rows
    lon, lat = rng.uniform(-1, 1, (2, 200))
    sample = RelevantSample(
        rows, np.zeros(1, np.int32), lon, lat, np.arange(0, terms.size + 1, 6), terms
    )
    machines = spread_workers(workers, workers, 1e9)
    dear = choose_relevant(sample, workers, Prices(shuffle=1e9), machines)
    assert dear.name == "shared"
    cheap = Prices(shuffle=0.0, probe=0.0, inserts=0.0, candidate=1e6)
    for choice in (dear, choose_relevant(sample, workers, cheap, machines)):
        assert f"6.0 terms an object, {workers} workers" in choice.why
        assert never not in choice.why
        assert "location" in choice.why or "prefix" in choice.why or "hash" in choice.why
