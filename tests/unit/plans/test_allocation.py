"""Allocation against brute force and the bounds of the differencing method."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewire.plans.allocation import allocate


def sums_of(loads: list[float], workers: int) -> np.ndarray:
    """The workers' sums, ascending."""
    values = np.array(loads, np.float64)
    worker = allocate(values, workers)
    assert worker.dtype == np.int32
    assert worker.shape == values.shape
    return np.sort(np.bincount(worker, values, minlength=workers))


def least_peak(loads: list[float], workers: int) -> float:
    """The smallest possible largest sum."""
    return min(
        max(sum(x for x, w in zip(loads, ws, strict=True) if w == k) for k in range(workers))
        for ws in product(range(workers), repeat=len(loads))
    )


@pytest.mark.parametrize(
    ("loads", "workers", "sums"),
    [
        ([8, 7, 6, 5, 4], 2, [14, 16]),
        ([8, 7, 6, 5, 4], 3, [8, 11, 11]),
        ([4, 5, 6, 7, 8], 2, [14, 16]),
        ([10, 8, 7, 6, 5], 2, [17, 19]),
        ([3, 1, 1, 2, 2, 1], 2, [5, 5]),
        ([5, 5, 5, 5], 4, [5, 5, 5, 5]),
    ],
)
def test_known_examples(loads: list[float], workers: int, sums: list[float]) -> None:
    assert sums_of(loads, workers).tolist() == sums


def test_few_loads() -> None:
    assert allocate(np.empty(0), 3).tolist() == []
    assert sums_of([7], 3).tolist() == [0, 0, 7]
    assert sums_of([7, 2], 5).tolist() == [0, 0, 0, 2, 7]
    assert allocate(np.array([1.0, 2.0, 3.0]), 1).tolist() == [0, 0, 0]


def test_zeros_go_where_the_fewest_are() -> None:
    loads = np.array([0.0, 9.0, 0.0, 4.0, 5.0, 0.0, 0.0])
    worker = allocate(loads, 3)
    assert sorted(np.bincount(worker, minlength=3)) == [2, 2, 3]
    assert np.bincount(allocate(np.zeros(12), 4)).tolist() == [3, 3, 3, 3]


@given(st.lists(st.integers(0, 40), max_size=4))
def test_two_ways_and_four_loads_are_optimal(loads: list[float]) -> None:
    assert sums_of(loads, 2)[-1] == least_peak(loads, 2)


@given(st.lists(st.integers(0, 40), max_size=7), st.integers(2, 3))
def test_never_far_from_brute_force(loads: list[float], workers: int) -> None:
    ratio = 7 / 6 if workers == 2 else 4 / 3 - 1 / (3 * workers)
    assert sums_of(loads, workers)[-1] <= ratio * least_peak(loads, workers) + 1e-9


@given(st.lists(st.integers(0, 1000), max_size=60), st.integers(1, 12), st.randoms())
def test_bound_and_order(loads: list[float], workers: int, random: object) -> None:
    sums = sums_of(loads, workers)
    assert sums.sum() == sum(loads)
    assert sums[-1] - sums[0] <= max(loads, default=0)
    shuffled = list(loads)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert sums_of(shuffled, workers).tolist() == sums.tolist()
    again = np.array(loads, np.float64)
    assert np.array_equal(allocate(again, workers), allocate(again, workers))


def test_many_loads_come_out_even() -> None:
    loads = np.random.default_rng(5).pareto(2.5, 10_000) + 0.01
    sums = np.bincount(allocate(loads, 100), loads, minlength=100)
    assert sums.max() - sums.min() < 0.001 * sums.mean()
