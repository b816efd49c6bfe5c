"""The assignment of least cost, by the Hungarian method with shortest augmenting paths."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def assign_least(cost: NDArray[np.float64]) -> NDArray[np.int64]:
    """The column i64[n] of each row of a square of costs, each taken once, least in sum.

    Rows join one after another; each path of exchanges that lets one in is the shortest by costs
    less potentials, which stay a lower bound of what the rows that are in have to pay.
    """
    n = cost.shape[0]
    row_price, column_price = np.zeros(n), np.zeros(n)
    row_of = np.full(n, -1)
    for row in range(n):
        distance, came_from = np.full(n, np.inf), np.full(n, -1)
        seen = np.zeros(n, np.bool_)
        at, column, path = row, -1, 0.0
        while True:
            reach = path + cost[at] - row_price[at] - column_price
            better = ~seen & (reach < distance)
            distance[better], came_from[better] = reach[better], column
            column = int(np.argmin(np.where(seen, np.inf, distance)))
            path = float(distance[column])
            seen[column] = True
            if row_of[column] < 0:
                break
            at = int(row_of[column])
        done = seen & (distance < path)
        row_price[row] += path
        row_price[row_of[done]] += path - distance[done]
        column_price[done] -= path - distance[done]
        while column >= 0:
            before = int(came_from[column])
            row_of[column] = row_of[before] if before >= 0 else row
            column = before
    return np.argsort(row_of)
