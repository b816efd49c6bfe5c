"""No result depends on a change of plan."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local_runs import check_equals_oracle, run_local
from logs import flowing, logs
from placewire.plans.boolean.methods import METHODS
from placewire.plans.boolean.subset import halve_box
from placewire.plans.leaves import NO_SPLIT, TextSplit
from placewire.plans.rebalance.adjustment import Adjustment, cells_of, leaves_of
from placewire.plans.rebalance.rebalancer import (
    ADJUSTERS,
    OTHERS,
    Readings,
    RebalanceRule,
)
from placewire.plans.relevant.methods import RELEVANT_METHODS
from profiles import examples
from sliding_logs import sliding_log


def shuffle_plan(readings: Readings) -> Adjustment | None:
    """Anything at all, as long as it is a plan: other workers, cuts by space, cuts by text."""
    leaves, loads, sample = readings.leaves, readings.loads, readings.source.sample()
    rng = np.random.default_rng(int(loads.held.sum()) + leaves.total)
    cells = []
    for cell in cells_of(leaves, loads):
        boxes = [cell.box]
        axis = int(rng.integers(2))
        if rng.random() < 0.3 and cell.box[axis + 2] - cell.box[axis] > 1 and leaves.total < 50:
            at = int(rng.integers(cell.box[axis] + 1, cell.box[axis + 2]))
            boxes = list(halve_box(cell.box, axis, at))
        for box in boxes:
            split = cell.split
            if rng.random() < 0.3:
                terms = rng.permutation(sample.lexicon)[
                    : int(rng.integers(sample.lexicon.size + 1))
                ]
                parts = int(rng.integers(1, 5))
                split = TextSplit(parts, terms, rng.integers(parts, size=terms.size))
                split = split if parts > 1 else NO_SPLIT
            worker = rng.integers(leaves.workers, size=split.parts).astype(np.int32)
            cells.append(cell._replace(box=box, split=split, worker=worker))
    return Adjustment("shuffle", leaves_of(cells, leaves), np.zeros(leaves.workers), 0.0)


@pytest.fixture(autouse=True)
def _shuffling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ADJUSTERS, "shuffle", shuffle_plan)


@pytest.mark.parametrize("name", ["shuffle", "auto", *sorted(ADJUSTERS | OTHERS)])
@pytest.mark.parametrize(("workers", "rows"), [(2, 17), (7, 17), (2, 1)])
@settings(max_examples=examples(4), suppress_health_check=list(HealthCheck))
@given(
    log=logs | flowing(),
    plan=st.sampled_from([*METHODS, "auto"]),
    life=st.sampled_from([None, 1, 3]),
    dual=st.booleans(),
)
def test_no_result_depends_on_a_change_of_plan(
    name: str, workers: int, rows: int, log: bytes, plan: str, life: int | None, dual: bool
) -> None:
    """The plan changes after nearly every second batch; runs stop between decision and change."""
    run = run_local(
        log,
        plan=plan,
        workers=workers,
        rows=rows,
        sample_events=3,
        life=life,
        rebalance=RebalanceRule(name, eager=True, dual=dual),
    )
    check_equals_oracle(log, run)


@pytest.mark.parametrize(
    "plan",
    [f"nearest={name}" for name in ("kop", "sop", "dkm", "ps2", "sstd", "auto")]
    + [f"relevant={name}" for name in RELEVANT_METHODS]
    + ["relevant=auto"],
)
@pytest.mark.parametrize(
    ("workers", "rows", "life"), [(2, 17, None), pytest.param(7, 7, 2, marks=pytest.mark.slow)]
)
def test_dealing_out_anew_changes_no_result(
    plan: str, workers: int, rows: int, life: int | None
) -> None:
    """Subscriptions are dealt out anew after every batch that workers had objects in."""
    log = sliding_log(workers) if plan.startswith("relevant") else near_log(workers)
    run = run_local(
        log,
        plan=plan,
        workers=workers,
        rows=rows,
        sample_events=3,
        life=life,
        table={"window": {"count": 20}},
        rebalance=RebalanceRule("auto", eager=True),
    )
    check_equals_oracle(log, run, {"window": {"count": 20}})


def near_log(seed: int) -> bytes:
    """Objects and `nearest` subscriptions that come, are replaced and end."""
    rng = np.random.default_rng(seed)
    lines = []
    for number in range(160):
        event = {"ts": f"2026-03-01T12:{number // 60:02d}:{number % 60:02d}Z"}
        place = {"lon": float(rng.integers(0, 9)), "lat": float(rng.integers(0, 9))}
        if number % 4 == 0:
            event |= {"type": "subscribe", "id": f"s{rng.integers(12)}", "kind": "nearest"}
            event |= place | {"keywords": [str(rng.choice(["tea", "jazz"]))], "k": 2}
        elif number % 23 == 0:
            event |= {"type": "unsubscribe", "id": f"s{rng.integers(12)}"}
        else:
            text = str(rng.choice(["tea", "jazz", "tea jazz", "none"]))
            event |= {"type": "object", "id": f"o{number}", **place, "text": text}
        lines.append(json.dumps(event).encode() + b"\n")
    return b"".join(lines)
