"""The columns specific to `nearest` rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import read_only
from placewire.model.arrays import F64
from placewire.model.kinds import NEAREST
from placewire.model.subscriptions import SubscriptionRows


class NearestRows(NamedTuple):
    """The circle of each row f64[n, 3]: lon, lat, and the largest distance of a result in metres.

    The distance is infinite if there is no limit. The three are stored side by side because kernels
    read them together, and rows are scattered in memory.
    """

    circle: F64

    @property
    def lon(self) -> F64:
        return self._column(LON)

    @property
    def lat(self) -> F64:
        return self._column(LAT)

    @property
    def within_m(self) -> F64:
        return self._column(WITHIN)

    def _column(self, place: int) -> F64:
        """Return one number of every circle, read-only."""
        return read_only(self.circle[:, place].copy())


LON, LAT, WITHIN = range(3)  # places in a circle
NO_NEAREST = NearestRows(read_only(np.empty((0, 3))))


def nearest_columns(rows: SubscriptionRows) -> NearestRows:
    """Return the columns specific to `nearest` rows, read-only."""
    return NearestRows(*map(read_only, rows.own.get(NEAREST, NO_NEAREST)))
