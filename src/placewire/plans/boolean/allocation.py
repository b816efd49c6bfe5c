"""Graham's greedy: every cost, in the order given, to the worker with the least so far."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.plans.boolean.subset import SampleSubset, measure_subset, weigh_subset
from placewire.plans.cost.model import LoadModel
from placewire.plans.kernels.nearest import costs_to_workers
from placewire.plans.kernels.parts import WORD_BITS, rows_given_to_worker, rows_held_by_workers
from placewire.plans.sample.sample import Sample


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


Loads = NDArray[np.float64]


class MergedParts(NamedTuple):
    """The worker of each part i32[parts], and the load of each worker f64[workers]."""

    worker: NDArray[np.int32]
    loads: Loads

    @property
    def balance(self) -> float:
        """The largest load over the smallest; infinite if a worker has none of the load."""
        return _balance(self.loads)


def merge_subsets(
    sample: Sample, subsets: Sequence[SampleSubset], workers: int, cost: LoadModel
) -> MergedParts:
    """Portions, where a worker counts an object or a subscription of several of its parts once."""
    words = -(-workers // WORD_BITS)
    objects = np.zeros((sample.objects, words), np.uint64)
    subscriptions = np.zeros((sample.subscriptions, words), np.uint64)
    object_counts = np.zeros(workers)  # objects, or what they cost
    subscription_counts = np.zeros(workers, np.int64)
    works = [measure_subset(sample, p) for p in subsets]

    def weigh(part: int, _: Loads) -> Loads:
        rows = subsets[part]
        held = rows_held_by_workers(objects, rows.objects, workers)
        held_too = rows_held_by_workers(subscriptions, rows.subscriptions, workers)
        heavier: Loads = cost.of_counts(
            object_counts + works[part] - held,
            subscription_counts + rows.subscriptions.size - held_too,
        )
        return heavier

    def give(part: int, worker: int) -> None:
        rows = subsets[part]
        given = rows_given_to_worker(objects, rows.objects, worker)
        object_counts[worker] += works[part] - (rows.objects.size - given)
        subscription_counts[worker] += rows_given_to_worker(
            subscriptions, rows.subscriptions, worker
        )

    loads = np.array([weigh_subset(sample, p, cost) for p in subsets])
    return _merge(loads, workers, weigh, give)


def _merge(
    loads: Loads,
    workers: int,
    weigh: Callable[[int, Loads], Loads],
    give: Callable[[int, int], None],
) -> MergedParts:
    """`weigh` says what each worker would carry with a part, `give` that one takes it."""
    carried = np.zeros(workers)
    chosen = np.zeros(loads.size, np.int32)
    for part in np.argsort(-loads, kind="stable").tolist():
        worker = int(np.argmin(carried))
        if carried[worker] <= 0.0:
            carried[worker] = loads[part]
        else:
            heavier = weigh(part, carried)
            least = int(np.lexsort((carried, heavier - carried))[0])
            if _balance_with(carried, least, heavier) <= _balance(carried):
                worker = least
            carried[worker] = heavier[worker]
        give(part, worker)
        chosen[part] = worker
    return MergedParts(chosen, carried)


def _balance_with(carried: Loads, worker: int, heavier: Loads) -> float:
    after = carried.copy()
    after[worker] = heavier[worker]
    return _balance(after)


def _balance(loads: Loads) -> float:
    if loads.max() <= 0.0:
        return 1.0
    return float(loads.max() / loads.min()) if loads.min() > 0.0 else np.inf
