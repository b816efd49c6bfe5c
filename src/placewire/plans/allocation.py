"""Assign costs to workers, and reassign them when the load is uneven.

`share_costs` and `share_heaviest_first` are Graham's greedy rule, `allocate` is the differencing
method of Karmarkar and Karp, and `hand_over` moves as little as it can.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.model.arrays import F64, I32, I64
from placewire.plans.kernels.parts import costs_to_workers


def share_costs(costs: F64, loads: F64) -> tuple[I32, F64]:
    """The worker i32[n] of each cost and the loads f64[workers] after; `loads` are those before.

    Of workers with equal loads the first gets it.
    """
    worker, after = costs_to_workers(read_only(costs), read_only(loads))
    return worker, after


def share_heaviest_first(costs: F64, loads: F64) -> I32:
    """The worker i32[n] of each cost, assigned in descending order; `loads` are those before."""
    order = np.argsort(-costs, kind="stable")
    worker = np.empty(costs.size, np.int32)
    worker[order], _ = share_costs(costs[order], loads)
    return worker


def allocate(loads: F64, workers: int) -> I32:
    """The worker i32[n] of each of n loads (none negative), such that the sums differ little.

    The heaviest and the lightest worker never differ by more than the largest load. Loads of zero
    are spread by number.
    """
    worker = np.zeros(loads.size, np.int32)
    heaviest_first = np.argsort(-loads, kind="stable")
    heavy = heaviest_first[: np.count_nonzero(loads)]
    worker[heavy] = difference_loads(loads[heavy], workers)
    crowd = [(int(held), w) for w, held in enumerate(np.bincount(worker[heavy], minlength=workers))]
    heapq.heapify(crowd)
    for at in heaviest_first[heavy.size :]:
        held, w = crowd[0]
        worker[at] = w
        heapq.heapreplace(crowd, (held + 1, w))
    return worker


def difference_loads(loads: F64, workers: int) -> I32:
    """Workers of positive loads in descending order.

    A row is a partial answer: the sums of all workers, largest first, less the smallest. The two
    rows of the largest spread are joined, the largest sum of one with the smallest of the other,
    until one row is left. Going back over the joins gives the worker of each load.
    """
    if loads.size == 0:
        return np.empty(0, np.int32)
    sums = np.zeros((loads.size, workers))
    sums[:, 0] = loads
    # Rows of equal spread are taken in the order of their other sums, so that the order in which
    # equal loads were given cannot change the outcome.
    heap = [((-row).tolist(), at) for at, row in enumerate(sums)]
    heapq.heapify(heap)
    joins = []
    while len(heap) > 1:
        _, one = heapq.heappop(heap)
        _, other = heap[0]
        joined = sums[one] + sums[other, ::-1]
        order = np.argsort(-joined, kind="stable")
        sums[one] = joined[order] - joined[order[-1]]
        joins.append((one, other, order))
        heapq.heapreplace(heap, ((-sums[one]).tolist(), one))
    worker = np.empty((loads.size, workers), np.int32)
    worker[heap[0][1]] = np.arange(workers)
    for one, other, order in reversed(joins):
        worker[one, order] = worker[one].copy()
        worker[other] = worker[one, ::-1]
    return worker[:, 0].copy()


def assign_least(cost: F64) -> I64:
    """Assign each row of a square cost matrix a different column, at the least sum: i64[n].

    The Hungarian method: rows are added one by one, each along the shortest augmenting path by
    reduced costs.
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


def sum_loads(owner: NDArray[np.integer[Any]], load: F64, workers: int) -> F64:
    """The sums of loads by worker."""
    return np.bincount(owner, load, workers).astype(np.float64)


def imbalance(loads: F64) -> float:
    """The largest load, the mean being 1."""
    return float(loads.max() / loads.mean()) if loads.any() else 1.0


def scale_costs(owner: I32, cost: F64, counted: F64) -> F64:
    """Scale costs f64[n] so that those of each worker sum to its share of `counted`.

    The total stays the same.
    """
    estimated = sum_loads(owner, cost, counted.size)
    known = estimated > 0.0
    total = counted[known].sum()
    if total <= 0.0:
        return cost.copy()
    factor = np.ones(counted.size)
    factor[known] = counted[known] / estimated[known] * estimated.sum() / total
    return cost * factor[owner]


def hand_over(owner: I32, cost: F64, workers: int, place: I64 | None = None) -> I32:
    """The owners i32[n] after workers above the mean have handed over their surplus.

    Without `place` the costliest that fit are moved, so that few move, each to the worker with the
    least load. With `place` i64[n], positions on a curve, each worker hands over the end of its
    run, and what moves stays together where it can.
    """
    loads = sum_loads(owner, cost, workers)
    mean = float(loads.sum()) / workers
    after = owner.copy()
    gone: list[I64] = []
    for worker in np.flatnonzero(loads > mean).tolist():
        here = np.flatnonzero(owner == worker)
        key = -cost[here] if place is None else -place[here]
        spare = loads[worker] - mean
        order = here[np.argsort(key, kind="stable")]
        order = order[cost[order] <= spare]
        gone.append(order[np.cumsum(cost[order]) <= spare])
        loads[worker] -= float(cost[gone[-1]].sum())
    rows = np.concatenate(gone) if gone else np.empty(0, np.int64)
    if place is None:
        rows = rows[np.argsort(-cost[rows], kind="stable")]
        after[rows], _ = share_costs(cost[rows], loads)
        return after
    rows = rows[np.argsort(place[rows], kind="stable")]
    room = np.cumsum(np.maximum(mean - loads, 0.0))
    middle = np.cumsum(cost[rows]) - 0.5 * cost[rows]
    after[rows] = np.minimum(np.searchsorted(room, middle), workers - 1)
    return after
