"""The columns of `nearest` rows by name."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.model.subscriptions import SubscriptionRows


class NearestPoints(NamedTuple):
    """The point of each row and the largest distance of a result, infinite if there is no limit."""

    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    within_m: NDArray[np.float64]


def read_points(rows: SubscriptionRows) -> NearestPoints:
    """Return the points of rows that are all `nearest`: f64[n] each, contiguous copies."""
    shape = rows.shape.reshape(-1, len(NearestPoints._fields))
    return NearestPoints(*(column.copy() for column in shape.T))
