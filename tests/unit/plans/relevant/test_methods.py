"""Parts of space and vocabulary of about equal cost."""

from __future__ import annotations

import numpy as np
import pytest

from placewire.plans.relevant.methods import RelevantPairs, cut_vocabulary, grow_point_tree, halfway


@pytest.mark.parametrize("leaves", [1, 2, 5, 8])
def test_a_tree_of_points_has_so_many_leaves_of_like_cost(leaves: int) -> None:
    rng = np.random.default_rng(7)
    points, objects = rng.normal(size=(4_000, 2)), rng.normal(size=(4_000, 2))
    tree = grow_point_tree(points, objects, leaves)
    rows = np.bincount(tree.leaves_of(*points.T), minlength=leaves)
    seen = np.bincount(tree.leaves_of(*objects.T), minlength=leaves)
    cost = rows * seen
    assert rows.sum() == 4_000
    assert cost.size == leaves
    assert cost.max() < 3 * cost.mean()


@pytest.mark.parametrize("parts", [1, 2, 5, 8])
def test_a_vocabulary_is_cut_into_stretches_of_like_cost(parts: int) -> None:
    rng = np.random.default_rng(7)
    words = 500
    rank = np.minimum(rng.geometric(0.01, (2, 6_000)) - 1, words - 1)
    things = np.repeat(np.arange(2_000), 3)
    part = cut_vocabulary(
        RelevantPairs(things, rank[0]), RelevantPairs(things, rank[1]), words, parts
    )
    assert (np.diff(part) >= 0).all()
    assert np.unique(part).tolist() == list(range(parts))
    rows = [np.unique(things[part[rank[0]] == p]).size for p in range(parts)]
    seen = [np.unique(things[part[rank[1]] == p]).size for p in range(parts)]
    cost = np.array(rows) * np.array(seen)
    assert cost.max() < 3 * cost.mean()


def test_hybrids_cut_twice_about_alike() -> None:
    assert [halfway(n) for n in (1, 2, 7, 8, 16, 32)] == [1, 1, 1, 2, 4, 4]
