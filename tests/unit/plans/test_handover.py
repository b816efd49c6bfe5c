"""Subscriptions change their workers by counted costs: level, few, neighbours together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewire.plans.allocation import hand_over, scale_costs
from placewire.plans.relevant.methods import TermParts, grow_point_tree
from placewire.plans.relevant.strategy import rebalance_terms


def test_costs_become_what_was_counted() -> None:
    owner = np.array([0, 0, 1, 1, 1], np.int32)
    cost = scale_costs(owner, np.array([1.0, 3.0, 2.0, 1.0, 1.0]), np.array([300.0, 100.0]))
    assert cost.sum() == pytest.approx(8.0)
    assert np.bincount(owner, cost).tolist() == pytest.approx([6.0, 2.0])
    assert cost[1] / cost[0] == pytest.approx(3.0)


def test_costs_stay_where_nothing_was_counted() -> None:
    owner, cost = np.array([0, 2], np.int32), np.array([1.0, 3.0])
    assert scale_costs(owner, cost, np.zeros(3)).tolist() == [1.0, 3.0]
    assert scale_costs(owner, cost, np.array([0.0, 7.0, 0.0])).tolist() == [1.0, 3.0]


@given(st.integers(1, 9), st.integers(0, 300), st.booleans(), st.integers(0, 2**31))
def test_nobody_above_the_mean_gets_more(workers: int, rows: int, near: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    owner = np.minimum(rng.integers(workers, size=rows), rng.integers(workers)).astype(np.int32)
    cost = rng.pareto(2.0, rows) + 1e-3
    place = rng.integers(1 << 40, size=rows) if near else None
    after = hand_over(owner, cost, workers, place)
    before, then = (np.bincount(by, cost, workers) for by in (owner, after))
    mean = cost.sum() / workers
    # A worker keeps what is dearer than all it has too much; it gets at most one row too many.
    assert then.max() <= max(before.max(), mean + cost.max(initial=0.0)) + 1e-9
    assert ((after == owner) | (before[owner] > mean)).all()


def test_many_small_ones_are_levelled_and_few_of_unequal_ones_go() -> None:
    owner = np.repeat(np.arange(4, dtype=np.int32), [700, 100, 100, 100])
    after = hand_over(owner, np.ones(1000), 4)
    assert np.bincount(after).tolist() == [250] * 4
    cost = np.ones(1000)
    cost[:45] = 10.0  # 450 of the 1,105 of the first, which has 749 too many by a mean of 351
    after = hand_over(owner, cost, 4)
    assert np.bincount(after, cost).max() < 1.03 * cost.sum() / 4
    assert (after != owner).sum() < 400


def test_neighbours_go_together() -> None:
    rng = np.random.default_rng(3)
    place = rng.permutation(1000)
    owner = np.where(place < 800, 0, 1).astype(np.int32)
    after = hand_over(owner, np.ones(1000), 2, place)
    assert set(place[after != owner].tolist()) == set(range(500, 800))


def test_places_are_cut_by_cost() -> None:
    rng = np.random.default_rng(5)
    points = rng.random((4000, 2))
    cost = np.where(points[:, 0] < 0.1, 50.0, 1.0)
    tree = grow_point_tree(points, np.empty((0, 2)), 7, cost)
    sums = np.bincount(tree.leaves_of(points[:, 0], points[:, 1]), cost, 7)
    assert sums.max() < 1.15 * sums.mean()


def test_words_are_levelled_and_unknown_ones_are_learnt() -> None:
    terms = np.arange(10, 510, dtype=np.uint64)
    former = TermParts(terms[:400], np.zeros(400, np.int32), 3)
    words = rebalance_terms(former, terms, np.ones(500))
    assert words.terms.tolist() == terms.tolist()
    assert np.bincount(words.part).max() <= 168
    assert words.of(terms).tolist() == words.part.tolist()
