"""The own columns of `nearest` rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.model.kinds import NEAREST
from placewire.model.subscriptions import SubscriptionRows


class NearestRows(NamedTuple):
    """The point of each row and the largest distance of a result, infinite if there is no limit."""

    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    within_m: NDArray[np.float64]


NO_NEAREST = NearestRows(*3 * (read_only(np.empty(0)),))


def nearest_columns(rows: SubscriptionRows) -> NearestRows:
    """Return the own columns of `nearest` rows: f64[n] each, read-only."""
    return NearestRows(*map(read_only, rows.own.get(NEAREST, NO_NEAREST)))
