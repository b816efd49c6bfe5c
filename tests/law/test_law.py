"""The one law: same log, same results, whatever the batch size, the workers and the plan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local_runs import check_equals_oracle, run_local
from logs import flowing, logs
from placewire.plans.boolean.methods import METHODS
from placewire.plans.nearest.methods import NEAREST_METHODS
from profiles import examples

# Settings that change what is retained; durations that logs of a few minutes outlive.
tables = st.fixed_dictionaries(
    {
        "retention": st.sampled_from(["P1D", "PT20S", "PT3S"]),
        "window": st.sampled_from([{"count": 3}, {"time": "PT10S"}, {"count": 100_000}]),
        "reach_m": st.sampled_from([20015114.35, 1e5]),
    }
)


@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("rows", [1, 17, 1_000_000])
@settings(max_examples=examples(20), suppress_health_check=list(HealthCheck))
@given(log=logs)
def test_equals_oracle_however_it_is_cut(workers: int, rows: int, log: bytes) -> None:
    check_equals_oracle(log, run_local(log, plan="shared", workers=workers, rows=rows))


@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("rows", [1, 17, 1_000_000])
@settings(max_examples=examples(25), suppress_health_check=list(HealthCheck))
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
@settings(max_examples=examples(4), suppress_health_check=list(HealthCheck))
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
@settings(max_examples=examples(6), suppress_health_check=list(HealthCheck))
@given(log=logs, sample_events=st.sampled_from([0, 3, 12]))
def test_every_plan_of_nearest_equals_oracle(
    plan: str, workers: int, rows: int, log: bytes, sample_events: int
) -> None:
    """Subscriptions are dealt out by their hash until the sample is full, then by the plan."""
    plans = f"nearest={plan},boolean=grid"
    run = run_local(log, plan=plans, workers=workers, rows=rows, sample_events=sample_events)
    check_equals_oracle(log, run)


@settings(max_examples=examples(20), suppress_health_check=list(HealthCheck))
@given(log=logs)
def test_scanning_equals_oracle(log: bytes) -> None:
    check_equals_oracle(log, run_local(log, plan="scan", workers=1, rows=7))
