"""Handing over: subscriptions change their workers by what the workers were seen to have to do.

A method prices subscriptions by a sample. When counts say otherwise, the prices of all that a
worker has are scaled to what was counted there, and workers that have too much hand some over.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placewire.plans.boolean.allocation import share_costs
from placewire.plans.rebalance.adjustment import sum_loads


def scale_costs(
    owner: NDArray[np.int32], cost: NDArray[np.float64], counted: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Costs f64[n] in proportion at each worker, and between workers as what was counted there.

    Their sum stays as it is.
    """
    estimated = sum_loads(owner, cost, counted.size)
    known = estimated > 0.0
    total = counted[known].sum()
    if total <= 0.0:
        return cost.copy()
    factor = np.ones(counted.size)
    factor[known] = counted[known] / estimated[known] * estimated.sum() / total
    scaled: NDArray[np.float64] = cost * factor[owner]
    return scaled


def hand_over(
    owner: NDArray[np.int32],
    cost: NDArray[np.float64],
    workers: int,
    place: NDArray[np.int64] | None = None,
) -> NDArray[np.int32]:
    """The owners i32[n] after workers above the mean have handed over what they have too much.

    Without `place` the costliest go that fit, so that few go, each to the worker with the least.
    With `place` i64[n], places on a curve, each worker hands over the end of its stretch, and what
    goes stays together where it can.
    """
    loads = sum_loads(owner, cost, workers)
    mean = float(loads.sum()) / workers
    after = owner.copy()
    gone: list[NDArray[np.int64]] = []
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
