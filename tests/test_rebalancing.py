"""Adjusting plans: the decisions themselves, and that no result depends on them."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placewire.engine.rebalancing import ADJUSTERS, RebalanceRule
from placewire.plan.adjusting import Adjustment, PartLoads, cells_of, leaves_of
from placewire.plan.cost import LoadModel
from placewire.plan.hungarian import assign_least
from placewire.plan.leaves import NO_SPLIT, Leaves, TextSplit
from placewire.plan.methods import METHODS
from placewire.plan.portion import halve_box
from placewire.plan.sample import Sample
from test_law import check_equals_oracle, flowing, logs, run_local


def shuffle_plan(
    leaves: Leaves, loads: PartLoads, sample: Sample, cost: LoadModel
) -> Adjustment | None:
    """Anything at all, as long as it is a plan: other workers, cuts by space, cuts by text."""
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


@pytest.mark.parametrize("name", ["shuffle", "sstd"])
@pytest.mark.parametrize("workers", [2, 7])
@pytest.mark.parametrize("rows", [1, 17])
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    log=logs | flowing(),
    plan=st.sampled_from([*METHODS, "auto"]),
    life=st.sampled_from([None, 1, 3]),
)
def test_no_result_depends_on_a_change_of_plan(
    name: str, workers: int, rows: int, log: bytes, plan: str, life: int | None
) -> None:
    """The plan changes after nearly every second batch; runs stop between decision and change."""
    run = run_local(
        log,
        plan=plan,
        workers=workers,
        rows=rows,
        sample_events=3,
        life=life,
        rebalance=RebalanceRule(name, eager=True),
    )
    check_equals_oracle(log, run)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6])
def test_the_assignment_is_the_cheapest_of_all(size: int) -> None:
    rng = np.random.default_rng(size)
    for _ in range(30):
        cost = rng.integers(0, 9, (size, size)).astype(float)
        found = assign_least(cost)
        assert sorted(found.tolist()) == list(range(size))
        least = min(
            sum(cost[row, column] for row, column in enumerate(columns))
            for columns in permutations(range(size))
        )
        assert cost[np.arange(size), found].sum() == pytest.approx(least)
