"""Weighted random choice for whole arrays of rows, from uniform draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class WeightedGroups(NamedTuple):
    """Groups of weighted items, stored one group after another; items are numbered throughout."""

    cumulative: Floats  # running sum of weights, one per item
    starts: Ints  # first item of each group, and the number of items
    lows: Floats  # running weight before each group, and the total

    @classmethod
    def of(cls, weights: Iterable[Sequence[float]]) -> WeightedGroups:
        """Build from the weights of each group's items."""
        groups = [list(group) for group in weights]
        cumulative = np.cumsum([weight for group in groups for weight in group], dtype=np.float64)
        starts = np.cumsum([0, *map(len, groups)])
        return cls(cumulative, starts, np.concatenate(([0.0], cumulative))[starts])

    def draw(self, groups: Ints, u: Floats) -> Ints:
        """Choose an item from each row's group by the row's uniform draw `u`."""
        lows = self.lows[groups]
        targets = lows + u * (self.lows[groups + 1] - lows)
        items = np.searchsorted(self.cumulative, targets, side="right")
        # A sum may round up to the group's upper end, which belongs to the next group.
        return np.minimum(items, self.starts[groups + 1] - 1)


def choose(weights: Floats, u: Floats) -> Ints:
    """Choose an index into `weights` for each uniform draw."""
    cumulative = np.cumsum(weights)
    chosen: Ints = np.searchsorted(cumulative, u * cumulative[-1], side="right")
    return np.minimum(chosen, len(cumulative) - 1)


def choose_rank(sizes: Ints, u: Floats) -> Ints:
    """Choose a rank below each size by the Zipf-Mandelbrot law, frequency 1 / (rank + shift).

    A log-uniform number, cut off, has this distribution, so no table is needed. Long lists have a
    larger shift: otherwise the first of 20,000 names would be one in sixteen of all.
    """
    shifts = np.maximum(sizes / 500.0, 1.0)
    ranks = (shifts * np.power(sizes / shifts + 1.0, u) - shifts).astype(np.int64)
    return np.minimum(ranks, sizes - 1)
