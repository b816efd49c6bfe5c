"""The columns specific to `relevant` rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import read_only
from placewire.model.arrays import F64
from placewire.model.kinds import RELEVANT
from placewire.model.subscriptions import SubscriptionRows
from placewire.objects.kernels.best_of_rows import ALPHA, LAT, LON, NORM, REACH, WEIGHTS, ScoredRows


class RelevantRows(NamedTuple):
    """The data that scores of rows depend on: weights f64[n, WEIGHTS], and the idf of each literal.

    The literals of a row are its terms in code-point order. The norm is the root of the sum of
    their squared idf, added in that order.
    """

    weights: F64
    literal_idf: F64

    @property
    def points(self) -> F64:
        """Return the point of each row, f64[n, 2]."""
        return self.weights[:, :2].copy()

    @property
    def lon(self) -> F64:
        return self._column(LON)

    @property
    def lat(self) -> F64:
        return self._column(LAT)

    @property
    def alpha(self) -> F64:
        return self._column(ALPHA)

    @property
    def reach_m(self) -> F64:
        return self._column(REACH)

    @property
    def norm(self) -> F64:
        return self._column(NORM)

    def _column(self, place: int) -> F64:
        """Return one of the weights of every row, read-only."""
        return read_only(self.weights[:, place].copy())


NO_RELEVANT = RelevantRows(read_only(np.empty((0, WEIGHTS))), read_only(np.empty(0)))


def relevant_columns(rows: SubscriptionRows) -> RelevantRows:
    """Return the columns specific to `relevant` rows, read-only."""
    return RelevantRows(*map(read_only, rows.own.get(RELEVANT, NO_RELEVANT)))


def scored_rows(rows: SubscriptionRows) -> ScoredRows:
    """Return the columns of `relevant` rows that kernels need to score objects, read-only."""
    literals = read_only(rows.literal_offsets), read_only(rows.literal_term)
    return ScoredRows(*literals, *relevant_columns(rows))
