"""Graham's greedy: every cost, in the order given, to the worker with the least so far."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.greedy import costs_to_workers
from placewire.kernels.jit import read_only


def share_costs(
    costs: NDArray[np.float64], loads: NDArray[np.float64]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The worker i32[n] of each cost and the loads f64[workers] after; `loads` are those before.

    Of workers with equal loads the first gets it.
    """
    worker, after = costs_to_workers(read_only(costs), read_only(loads))
    return worker, after


def share_heaviest_first(costs: NDArray[np.float64], workers: int) -> NDArray[np.int32]:
    """The worker i32[n] of each cost, in descending order of costs; equal ones as they stand."""
    order = np.argsort(-costs, kind="stable")
    worker = np.empty(costs.size, np.int32)
    worker[order], _ = share_costs(costs[order], np.zeros(workers))
    return worker
