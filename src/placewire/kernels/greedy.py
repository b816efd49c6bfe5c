"""Graham's greedy: costs in their order, each to the worker with least."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import inlined, kernel


@inlined
def sink_worker(heap: np.ndarray, carried: np.ndarray, at: int) -> None:
    """Let a worker sink to its place in the heap; of equal loads the first worker is above."""
    worker = heap[at]
    while 2 * at + 1 < heap.size:
        child = 2 * at + 1
        if child + 1 < heap.size:
            one, other = heap[child], heap[child + 1]
            if carried[other] < carried[one] or (carried[other] == carried[one] and other < one):
                child += 1
        below = heap[child]
        if carried[worker] < carried[below] or (
            carried[worker] == carried[below] and worker < below
        ):
            break
        heap[at] = below
        at = child
    heap[at] = worker


@kernel
def costs_to_workers(costs: np.ndarray, loads: np.ndarray) -> tuple:  # type: ignore[type-arg]
    """The worker i32[n] of each of costs f64[n], and the loads f64[workers] after that.

    `loads` f64[workers] is what the workers have before, left as it was.
    """
    carried = loads.copy()
    heap = np.arange(loads.size).astype(np.int32)
    for at in range(loads.size // 2 - 1, -1, -1):
        sink_worker(heap, carried, at)
    worker = np.empty(costs.size, np.int32)
    for i in range(costs.size):
        worker[i] = heap[0]
        carried[heap[0]] += costs[i]
        sink_worker(heap, carried, 0)
    return worker, carried
