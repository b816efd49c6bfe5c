"""The own columns of `trending` rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.model.kinds import TRENDING
from placewire.model.subscriptions import SubscriptionRows


class TrendingRows(NamedTuple):
    """When rows report: at begun + n * every, on the objects of the window before."""

    begun_us: NDArray[np.int64]
    window_us: NDArray[np.int64]
    every_us: NDArray[np.int64]


NO_TRENDING = TrendingRows(*3 * (np.empty(0, np.int64),))


def trending_columns(rows: SubscriptionRows) -> TrendingRows:
    """Return the own columns of `trending` rows: i64[n] each."""
    own: TrendingRows = rows.own.get(TRENDING, NO_TRENDING)
    return own
