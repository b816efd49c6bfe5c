"""The own columns of `relevant` rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.model.kinds import RELEVANT
from placewire.model.subscriptions import SubscriptionRows
from placewire.objects.kernels.best_of_rows import ScoredRows


class RelevantRows(NamedTuple):
    """What the score of a row depends on: f64[n] each, and the idf of each literal.

    The literals of a row are its terms in code-point order. `norm` is the root of the sum of the
    squares of their idf, added in that order.
    """

    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    alpha: NDArray[np.float64]
    reach_m: NDArray[np.float64]
    norm: NDArray[np.float64]
    literal_idf: NDArray[np.float64]


NO_RELEVANT = RelevantRows(*6 * (read_only(np.empty(0)),))


def relevant_columns(rows: SubscriptionRows) -> RelevantRows:
    """Return the own columns of `relevant` rows, read-only."""
    return RelevantRows(*map(read_only, rows.own.get(RELEVANT, NO_RELEVANT)))


def scored_rows(rows: SubscriptionRows) -> ScoredRows:
    """Return the columns of `relevant` rows that kernels take to score objects, read-only."""
    literals = read_only(rows.literal_offsets), read_only(rows.literal_term)
    return ScoredRows(*literals, *relevant_columns(rows))
