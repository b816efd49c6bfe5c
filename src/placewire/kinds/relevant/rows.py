"""The columns of `relevant` rows by name.

The shape of a row is lon, lat, alpha, reach_m, norm, and then the idf of each of its terms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kinds.relevant.kernels.score import ALPHA, IDF, LAT, LON, NORM, REACH
from placewire.model.subscriptions import SubscriptionRows, take_slices


class RelevantPoints(NamedTuple):
    """The point of each row: f64[n] each."""

    lon: NDArray[np.float64]
    lat: NDArray[np.float64]


class RelevantWeights(NamedTuple):
    """What the score of a row depends on: f64[n] each, `idf` f64[literals]."""

    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    alpha: NDArray[np.float64]
    reach_m: NDArray[np.float64]
    norm: NDArray[np.float64]
    idf: NDArray[np.float64]


def read_points(rows: SubscriptionRows) -> RelevantPoints:
    """Return the points of rows that are all `relevant`."""
    starts = rows.shape_offsets[:-1]
    return RelevantPoints(rows.shape[starts + LON], rows.shape[starts + LAT])


def read_weights(rows: SubscriptionRows) -> RelevantWeights:
    """Return the weights of rows that are all `relevant`."""
    starts = rows.shape_offsets[:-1]
    return RelevantWeights(
        lon=rows.shape[starts + LON],
        lat=rows.shape[starts + LAT],
        alpha=rows.shape[starts + ALPHA],
        reach_m=rows.shape[starts + REACH],
        norm=rows.shape[starts + NORM],
        idf=read_idf(rows, np.arange(rows.total)),
    )


def read_idf(rows: SubscriptionRows, picked: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the idf of each literal of the picked rows, in order."""
    _, literals = take_slices(rows.literal_offsets, picked)
    lengths = np.diff(rows.literal_offsets)[picked]
    # Literal i of a row has its idf IDF + i after the start of the row's shape.
    ahead = rows.shape_offsets[:-1][picked] + IDF - rows.literal_offsets[:-1][picked]
    return rows.shape[literals + np.repeat(ahead, lengths)]
