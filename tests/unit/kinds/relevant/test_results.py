"""Sizes of the buffers that hold results of `relevant`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from placewire.kinds.relevant.kernels.buffers import buffer_cost, cheapest_sizes, steps_down
from placewire.model.settings import Settings
from placewire.objects.window import SlidingWindow, count_between
from placewire.storage.layout import StateDir
from placewire.storage.manifest import StoreEntry


def test_the_cheapest_size_of_a_buffer_is_where_the_cost_is_least() -> None:
    ks = np.array([1, 5, 20, 1000], np.uint16)
    for looked, growth in ((0.0, 1.0), (1e3, 1.0), (1e6, 1.0), (1e3, 0.5), (1e3, 2.0)):
        sizes = cheapest_sizes(ks, np.full(4, looked), growth)
        for k, size in zip(ks.tolist(), sizes.tolist(), strict=True):
            around = [
                buffer_cost(float(n), float(k), looked, growth) for n in range(k, 8 * k + 2_000)
            ]
            assert size >= k
            assert buffer_cost(float(size), float(k), looked, growth) == pytest.approx(
                min(around), rel=1e-6
            )


@pytest.mark.parametrize("growth", [0.6, 1.0, 1.4])
def test_the_steps_of_a_walk_down_are_those_of_its_recurrence(growth: float) -> None:
    """From the barrier down, a step from i to i - 1 takes 1 + up (steps of i + 1 and of i)."""
    n, above = 12, 7
    up = growth / (1.0 + growth)
    each = [1.0 / (1.0 - up)]
    for _ in range(n + above - 1):
        each.append((1.0 + up * each[-1]) / (1.0 - up))
    assert steps_down(float(above), float(n), growth) == pytest.approx(sum(each[n:]))
    assert steps_down(7.0, 12.0, 1.0) == pytest.approx(steps_down(7.0, 12.0, 1.0001), rel=0.01)


def test_a_window_of_time_tells_how_its_stream_swells_and_dries_up() -> None:
    entries = [StoreEntry("a", 100, 0, 99, 0, 99), StoreEntry("b", 10, 100, 109, 100, 109)]
    assert count_between(entries, -1, 49) == pytest.approx(50)
    assert count_between(entries, 89, 104) == pytest.approx(15)
    assert count_between(entries, 200, 300) == 0
    window = SlidingWindow(Settings(window_count=None, window_us=10), StateDir(Path("nowhere")))
    assert window.growth == 1.0
    window.arrived, window.left = 30.0, 20.0
    assert window.growth == pytest.approx(1.5)
    window.arrived, window.left = 1.0, 20.0
    assert window.growth == 0.5
    window.left = 0.0
    assert window.growth == 2.0
