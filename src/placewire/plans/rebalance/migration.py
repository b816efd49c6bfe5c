"""The cells to move from a worker: enough load, and as few subscriptions as can be.

PS2Stream's minimum cost migration: of cells with a load and a size each, a set whose loads come to
`tau` at least and whose sizes sum up to least. `dp` finds the best by dynamic programming, `gr` a
good one by relative cost; `si` and `ra` are the paper's baselines.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Select = Callable[[NDArray[np.float64], NDArray[np.float64], float], NDArray[np.int64]]

MOST_STATES = 200_000_000  # of dynamic programming: beyond it sizes are counted in larger units
SEED = 7


def select_gr(
    load: NDArray[np.float64], size: NDArray[np.float64], tau: float
) -> NDArray[np.int64]:
    """Algorithm GR: cells by size over load; one that would complete the set is a candidate.

    Every candidate with all cells taken before it is an answer; the cheapest is kept.
    """
    order = np.argsort(size / np.maximum(load, 1e-300), kind="stable")
    taken: list[int] = []
    have, paid = 0.0, 0.0
    best: list[int] | None = None
    least = np.inf
    for cell in order.tolist():
        if have + load[cell] < tau:
            taken.append(cell)
            have += load[cell]
            paid += size[cell]
        elif paid + size[cell] < least:
            best, least = [*taken, cell], paid + size[cell]
    return np.array(best if best is not None else order, np.int64)


def select_dp(
    load: NDArray[np.float64], size: NDArray[np.float64], tau: float
) -> NDArray[np.int64]:
    """The best set, sizes in whole units; greedy's answer bounds how far it has to look."""
    bound = float(size[select_gr(load, size, tau)].sum())
    unit = max(1.0, bound * load.size / MOST_STATES)
    whole = np.ceil(size / unit).astype(np.int64)
    most = int(whole[select_gr(load, size, tau)].sum())
    best = np.zeros(most + 1)
    took = np.zeros((load.size, most + 1), np.bool_)
    for cell in range(load.size):
        step = int(whole[cell])
        if step > most:
            continue
        with_it = np.full(most + 1, -np.inf)
        with_it[step:] = best[: most + 1 - step] + load[cell]
        took[cell] = with_it > best
        best = np.maximum(best, with_it)
    enough = np.flatnonzero(best >= tau)
    if enough.size == 0:
        return select_gr(load, size, tau)
    left = int(enough[0])
    chosen = []
    for cell in range(load.size - 1, -1, -1):
        if took[cell, left]:
            chosen.append(cell)
            left -= int(whole[cell])
    return np.array(chosen[::-1], np.int64)


def select_si(
    load: NDArray[np.float64], size: NDArray[np.float64], tau: float
) -> NDArray[np.int64]:
    """The largest cells first."""
    return take_until(np.argsort(-size, kind="stable"), load, tau)


def select_ra(
    load: NDArray[np.float64], size: NDArray[np.float64], tau: float
) -> NDArray[np.int64]:
    """Cells at random."""
    return take_until(np.random.default_rng(SEED).permutation(load.size), load, tau)


def take_until(
    order: NDArray[np.int64], load: NDArray[np.float64], tau: float
) -> NDArray[np.int64]:
    """The first cells of an order whose loads come to `tau`."""
    enough = int(np.searchsorted(np.cumsum(load[order]), tau)) + 1
    return order[:enough]


SELECTS: dict[str, Select] = {
    "dp": select_dp,
    "gr": select_gr,
    "si": select_si,
    "ra": select_ra,
}


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
