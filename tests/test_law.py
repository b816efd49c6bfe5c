"""The one law: same log, same results, whatever the batch size, the workers and the plan."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logs import BUILT_KINDS, flowing, logs
from oracle import replay
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.kinds.relevant.results import read_rule
from placewire.model.settings import settings_of
from placewire.plans.boolean.methods import METHODS
from placewire.plans.nearest.methods import NEAREST_METHODS
from placewire.plans.planners import USUAL_REBALANCE
from placewire.plans.rebalance.elastic import WorkerRange
from placewire.plans.rebalance.rebalancer import RebalanceRule
from placewire.plans.sample.sampler import SAMPLE_EVENTS
from placewire.sinks.files import FileSink
from placewire.storage.layout import StateDir

# Settings that change what is retained; durations that logs of a few minutes outlive.
tables = st.fixed_dictionaries(
    {
        "retention": st.sampled_from(["P1D", "PT20S", "PT3S"]),
        "window": st.sampled_from([{"count": 3}, {"time": "PT10S"}, {"count": 100_000}]),
        "reach_m": st.sampled_from([20015114.35, 1e5]),
    }
)


class Run(NamedTuple):
    results: list[dict[str, Any]]
    dead: list[dict[str, Any]]
    idle_unsubscribes: int


def run_local(
    log: bytes,
    *,
    plan: str | Sequence[str],
    workers: int | WorkerRange,
    rows: int,
    sample_events: int = SAMPLE_EVENTS,
    table: dict[str, Any] | None = None,
    slice_us: int | None = None,
    life: int | None = None,
    buffer: str | Sequence[str] = "cskyband",
    rebalance: RebalanceRule = USUAL_REBALANCE,
) -> Run:
    """Replay a log in this process; with `life` a new one takes over after so many batches.

    Each takes the next of several plans and rules of buffers.
    """
    plans = cycle([plan] if isinstance(plan, str) else plan)
    buffers = cycle([buffer] if isinstance(buffer, str) else buffer)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        path.write_bytes(log)
        state = StateDir(Path(folder) / "state")
        left = True
        while left:
            coordinator = Coordinator(
                state,
                settings_of(table or {}),
                identify_log(path),
                next(plans),
                workers,
                sample_events,
                slice_us,
                buffer=read_rule(next(buffers)),
                rebalance=rebalance,
            )
            sink = FileSink(state, with_data=True)
            left = False
            batches = replay_log(coordinator, LogSource(str(path)), rows)
            for number, manifest in enumerate(batches):
                sink.deliver(manifest)
                if life is not None and number + 1 == life:
                    left = True
                    break
            counters = coordinator.latest.counters
            coordinator.close()
        results = [json.loads(line) for line in sink.results.read_bytes().splitlines()]
        dead = [json.loads(line) for line in sink.dead.read_bytes().splitlines()]
    assert counters.results == len(results)
    assert counters.dead_letters == len(dead)
    return Run(results, dead, counters.idle_unsubscribes)


def check_equals_oracle(log: bytes, run: Run, table: dict[str, Any] | None = None) -> None:
    expected = replay(log, kinds=BUILT_KINDS, with_data=True, settings=table)
    assert run.results == expected.results
    assert [(d["seq"], d["event"]) for d in run.dead] == [
        (d["seq"], d["event"]) for d in expected.dead
    ]
    assert run.idle_unsubscribes == expected.idle_unsubscribes


@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("rows", [1, 17, 1_000_000])
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(log=logs)
def test_equals_oracle_however_it_is_cut(workers: int, rows: int, log: bytes) -> None:
    check_equals_oracle(log, run_local(log, plan="shared", workers=workers, rows=rows))


@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("rows", [1, 17, 1_000_000])
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    log=flowing(),
    table=tables,
    slice_us=st.sampled_from([None, 1_000_000, 45_000_000]),
    life=st.sampled_from([None, 1, 5]),
)
def test_time_flows_through_the_store(
    workers: int,
    rows: int,
    log: bytes,
    table: dict[str, Any],
    slice_us: int | None,
    life: int | None,
) -> None:
    """Reports fall due; what is retained is cut by slices, merged, dropped and found by a
    rewritten."""
    run = run_local(
        log, plan="shared", workers=workers, rows=rows, table=table, slice_us=slice_us, life=life
    )
    check_equals_oracle(log, run, table)


@pytest.mark.parametrize("plan", [*METHODS, "auto"])
@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("rows", [1, 17, 1_000_000])
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(log=logs | flowing(), sample_events=st.sampled_from([0, 3, 12]))
def test_every_plan_equals_oracle(
    plan: str, workers: int, rows: int, log: bytes, sample_events: int
) -> None:
    """Objects go by stripes until the sample is full, then by the plan that was made of it."""
    run = run_local(log, plan=plan, workers=workers, rows=rows, sample_events=sample_events)
    check_equals_oracle(log, run)


@pytest.mark.parametrize("plan", [*NEAREST_METHODS, "sstd"])
@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("rows", [1, 17, 1_000_000])
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(log=logs, sample_events=st.sampled_from([0, 3, 12]))
def test_every_plan_of_nearest_equals_oracle(
    plan: str, workers: int, rows: int, log: bytes, sample_events: int
) -> None:
    """Subscriptions are dealt out by their hash until the sample is full, then by the plan."""
    plans = f"nearest={plan},boolean=grid"
    run = run_local(log, plan=plans, workers=workers, rows=rows, sample_events=sample_events)
    check_equals_oracle(log, run)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(log=logs)
def test_scanning_equals_oracle(log: bytes) -> None:
    check_equals_oracle(log, run_local(log, plan="scan", workers=1, rows=7))
