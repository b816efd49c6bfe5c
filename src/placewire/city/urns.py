"""Weighted choice by the million: urns of numbered balls, one draw from an urn per row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Urns(NamedTuple):
    """Balls of all urns in a row: running weights, and where each urn begins and ends."""

    edges: Floats  # running sum of weights, one a ball
    starts: Ints  # first ball of each urn, and one more
    lows: Floats  # running weight before each urn, and one more

    def draw(self, urns: Ints, u: Floats) -> Ints:
        """A ball (its number among all) from each row's urn, by the uniform draw `u` of the row."""
        lows = self.lows[urns]
        balls = np.searchsorted(self.edges, lows + u * (self.lows[urns + 1] - lows), side="right")
        # A sum may round up to the urn's upper edge, which belongs to the next urn.
        return np.minimum(balls, self.starts[urns + 1] - 1)


def fill(weights: Iterable[Sequence[float]]) -> Urns:
    """Urns from the weights of each urn's balls."""
    urns = [list(urn) for urn in weights]
    edges = np.cumsum(np.array([weight for urn in urns for weight in urn], np.float64))
    starts = np.cumsum([0, *map(len, urns)])
    return Urns(edges, starts, np.concatenate(([0.0], edges))[starts])


def choose(weights: Floats, u: Floats) -> Ints:
    """A row of `weights` for each uniform draw, of the shape of `u`: the case of a single urn."""
    edges = np.cumsum(weights)
    rows: Ints = np.searchsorted(edges, u * edges[-1], side="right")
    return np.minimum(rows, len(edges) - 1)


def zipf(sizes: Ints, u: Floats) -> Ints:
    """A rank below each size by the law of Zipf and Mandelbrot, frequency 1 / (rank + shift).

    No table is needed: a log-uniform number, cut off, is so distributed. Long lists are shifted,
    lest the first of twenty thousand names be one in sixteen of all.
    """
    shifts = np.maximum(sizes / 500.0, 1.0)
    ranks = (shifts * np.power(sizes / shifts + 1.0, u) - shifts).astype(np.int64)
    return np.minimum(ranks, sizes - 1)
