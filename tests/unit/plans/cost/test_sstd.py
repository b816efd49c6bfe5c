"""The statistics quadtree against plain counting, and SSTD's workload against its equations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewire.plans.boolean.subset import WORLD
from placewire.plans.cost.model import CostModel
from placewire.plans.cost.sstd import SstdCost, describe_cell, gather_statistics
from placewire.plans.sample.questions import assume_kind
from placewire.plans.sample.sample import ANY, CRQ, KINDS, SIDE, SRQ, STQ, Sample
from plan_samples import TERMS, sample_of, samples, traits_drawn
from profiles import examples


def touching(sample: Sample, box: tuple[int, int, int, int]) -> np.ndarray:
    """Which subscriptions touch a box, cell range by cell range."""
    west, south, east, north = box
    first, low, last, high = sample.cell.T
    straight = (first < east) & (last >= west)
    around = (first < east) | (last >= west)
    inside: np.ndarray = np.where(first <= last, straight, around) & (low < north) & (high >= south)
    return inside


@settings(max_examples=examples(30))
@given(samples, st.integers(0, 99))
def test_counts_add_up_at_every_level(sample: Sample, seed: int) -> None:
    traits = traits_drawn(sample, seed)
    tree = gather_statistics(sample._replace(traits=traits), capacity=3, most=80)
    width = tree.box[:, 2] - tree.box[:, 0]
    leaf = tree.first_child < 0
    for size in np.unique(width):
        level = (width == size) | (leaf & (width > size))
        assert tree.objects[level].sum() == sample.objects
        area = (width[level].astype(np.int64) ** 2).sum()
        assert area == SIDE * SIDE
    for at, box in enumerate(tree.box.tolist()):
        cell = tree.cells[at]
        rows = touching(sample, box)
        assert cell.kinds.tolist() == np.bincount(traits.kind[rows], minlength=KINDS).tolist()
        assert cell.lives.sum() == rows.sum()
        assert cell.lived.sum() == pytest.approx(traits.duration[rows].sum())
        west, south, east, north = box
        column, row = sample.object_column, sample.object_row
        here = (column >= west) & (column < east) & (row >= south) & (row < north)
        assert cell.objects == here.sum()
        assert (cell.span, cell.total) == (24, sample.subscriptions)
        for kind in range(KINDS):
            of_kind = np.flatnonzero(rows & (traits.kind == kind))
            expected = np.zeros(TERMS, np.int64)
            for r in of_kind:
                posts = sample.posts[sample.post_offsets[r] : sample.post_offsets[r + 1]]
                expected[posts[posts >= 0]] += 1
            keywords, counts = cell.keywords_of(kind)
            assert keywords.tolist() == np.flatnonzero(expected).tolist()
            assert counts.tolist() == expected[keywords].tolist()
            lengths = np.bincount(traits.length[of_kind], minlength=cell.lengths.shape[1])
            assert cell.lengths[kind].tolist() == lengths.tolist()
    assert (tree.probabilities <= 1).all()
    assert tree.probabilities[0].tolist() == (tree.cells[0].kinds > 0).tolist()


def test_empty_tree() -> None:
    tree = gather_statistics(sample_of([], []))
    assert tree.box.tolist() == [list(WORLD)]
    assert tree.first_child.tolist() == [-1]
    assert tree.probabilities.tolist() == [[0.0] * KINDS]


def test_full_cells_are_quartered_first() -> None:
    crowd = [(5, 5, [0])] * 20 + [(8000, 8000, [1])] * 3
    tree = gather_statistics(sample_of(crowd, []), capacity=4, most=13)
    west = tree.box[1]
    assert west.tolist() == [0, 0, SIDE // 2, SIDE // 2]
    assert tree.objects[:5].tolist() == [23, 20, 0, 0, 3]
    assert tree.first_child[:5].tolist() == [1, 5, -1, -1, -1]
    assert tree.box.shape[0] == 13


def test_one_plan_cell_is_never_quartered() -> None:
    tree = gather_statistics(sample_of([(5, 5, [0])] * 20, []), capacity=4)
    assert (tree.box[:, 2] - tree.box[:, 0]).min() == 1
    assert tree.box.shape[0] == 1 + 4 * 13


def test_kinds_are_told_apart() -> None:
    """Ten objects in 5 units of time, three rows of every kind, term 0 in all objects."""
    sample = sample_of([(0, 0, [0])] * 10, [((0, 0, 0, 0), [k % 2]) for k in range(4)] * 3)
    everything = np.arange(10), np.arange(12)
    costs = []
    for kind in range(KINDS):
        traits = assume_kind(sample, kind)._replace(duration=np.full(12, 2.5), span=5.0)
        model: CostModel = SstdCost()
        costs.append(model.cost(sample._replace(traits=traits), *everything))
    # Half of the keywords are there; a continuous query sees half of the objects.
    assert costs == pytest.approx([5.0, 5.0, 10.0, 5.0, 5.0, 5.0])
    weighed = SstdCost(1, 2, 3, 4, 5, 6)
    for kind in range(KINDS):
        traits = assume_kind(sample, kind)._replace(duration=np.full(12, 2.5), span=5.0)
        cost = weighed.cost(sample._replace(traits=traits), *everything)
        assert cost == pytest.approx(costs[kind] * (kind + 1))


def test_a_mix_of_kinds_is_the_sum() -> None:
    sample = sample_of([(0, 0, [0])] * 6, [((0, 0, 0, 0), [0])] * 4)
    kind = np.array([SRQ, STQ, CRQ, CRQ], np.int8)
    traits = assume_kind(sample, CRQ)._replace(kind=kind, duration=np.array([1.0, 1.0, 2.0, 4.0]))
    cost = SstdCost().cost(sample._replace(traits=traits), np.arange(6), np.arange(4))
    assert cost == pytest.approx((6 + 6 + 6 * 2.0 + 6 * 4.0) / 4)


def test_keyword_numbers_raise_the_share_to_a_power() -> None:
    sample = sample_of([(0, 0, [0])] * 8, [((0, 0, 0, 0), [0]), ((0, 0, 0, 0), [1])] * 2)
    length = np.array([1, 2, 3, 3], np.int8)
    traits = assume_kind(sample, SRQ)._replace(length=length)
    cost = SstdCost().cost(sample._replace(traits=traits), np.arange(8), np.arange(4))
    assert cost == pytest.approx(8 * (0.5 + 0.25 + 2 * 0.125) / 4)


def test_default_is_the_share_of_subscriptions_times_objects() -> None:
    sample = sample_of([(0, 0, [])] * 7, [((0, 0, 0, 0), [3])] * 4)
    assert SstdCost().cost(sample, np.arange(7), np.arange(3)) == pytest.approx(7 * 3 / 4)
    assert SstdCost().cost(sample, np.arange(0), np.arange(3)) == 0
    assert SstdCost().cost(sample_of([], []), np.arange(0), np.arange(0)) == 0


def test_rows_without_keywords_always_look() -> None:
    sample = sample_of([(0, 0, [])] * 5, [((0, 0, 0, 0), [ANY])] * 2)
    traits = assume_kind(sample, SRQ)
    assert traits.length.tolist() == [0, 0]
    sample = sample._replace(traits=traits)
    assert SstdCost().cost(sample, np.arange(5), np.arange(2)) == pytest.approx(5)
    cell = describe_cell(sample, np.arange(5), np.arange(2))
    assert cell.keywords.size == 0
