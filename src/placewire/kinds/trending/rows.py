"""The columns specific to `trending` rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.model.arrays import I64
from placewire.model.kinds import TRENDING
from placewire.model.subscriptions import SubscriptionRows


class TrendingRows(NamedTuple):
    """When rows report: at begun + n * every, on the objects of the window before that time."""

    begun_us: I64
    window_us: I64
    every_us: I64


NO_TRENDING = TrendingRows(*3 * (np.empty(0, np.int64),))


def trending_columns(rows: SubscriptionRows) -> TrendingRows:
    """Return the columns specific to `trending` rows: i64[n] each."""
    return rows.own.get(TRENDING, NO_TRENDING)
