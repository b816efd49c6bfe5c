"""Allocation: loads spread over workers by the largest differencing of Karmarkar and Karp."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray


def allocate(loads: NDArray[np.float64], workers: int) -> NDArray[np.int32]:
    """The worker i32[n] of each of n loads (none negative), such that the sums differ little.

    The heaviest and the lightest worker never differ by more than the largest load. Loads of zero
    decide nothing: they go where the fewest are.
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


def difference_loads(loads: NDArray[np.float64], workers: int) -> NDArray[np.int32]:
    """Workers of positive loads in descending order.

    A row is a partial answer: the sums of all workers, largest first, less the smallest. The two
    rows of the largest spread are joined, the largest sum of one with the smallest of the other,
    until one row is left; going back over the joins then tells where each load ended.
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
    first: NDArray[np.int32] = worker[:, 0].copy()
    return first
