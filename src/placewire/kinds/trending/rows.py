"""The columns of `trending` rows by name.

These rows have no words: the terms of their three literals hold times instead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.model.subscriptions import SubscriptionRows


class TrendingTimes(NamedTuple):
    """When rows report: at begun + n * every, on the objects of the window before."""

    begun_us: NDArray[np.int64]
    window_us: NDArray[np.int64]
    every_us: NDArray[np.int64]


def read_times(rows: SubscriptionRows) -> TrendingTimes:
    """Return the times of rows that are all `trending`: i64[n] each, views."""
    times = rows.literal_term.view(np.int64).reshape(-1, len(TrendingTimes._fields))
    return TrendingTimes(*times.T)


def without_begin(rows: SubscriptionRows) -> SubscriptionRows:
    """Return rows whose subscriptions all began at 0, so that only what they ask for differs."""
    times = rows.literal_term.copy().reshape(-1, len(TrendingTimes._fields))
    times[:, 0] = 0
    return rows._replace(literal_term=times.reshape(-1))
