"""Merging: the parts of a plan to its workers, by PS2Stream's rule.

Heaviest part first, each to the worker whose load it raises least, unless that would worsen the
balance (the largest load over the smallest): then to the worker with the least load. While a
worker has nothing the balance is infinite and cannot get worse; parts then go to the least loaded
too, or they would all follow the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.planning import WORD_BITS, rows_given_to_worker, rows_held_by_workers
from placewire.plan.cost import LoadModel
from placewire.plan.portion import Portion, portion_load, portion_work
from placewire.plan.sample import Sample

Loads = NDArray[np.float64]


class Merged(NamedTuple):
    """The worker of each part i32[parts], and the load of each worker f64[workers]."""

    worker: NDArray[np.int32]
    loads: Loads

    @property
    def balance(self) -> float:
        """The largest load over the smallest; infinite if a worker has none of the load."""
        return _balance(self.loads)


def merge_loads(loads: Loads, workers: int) -> Merged:
    """Parts whose loads simply add up."""
    return _merge(
        loads, workers, lambda part, carried: carried + loads[part], lambda part, worker: None
    )


def merge_portions(
    sample: Sample, portions: Sequence[Portion], workers: int, cost: LoadModel
) -> Merged:
    """Portions, where a worker counts an object or a subscription of several of its parts once."""
    words = -(-workers // WORD_BITS)
    objects = np.zeros((sample.objects, words), np.uint64)
    subscriptions = np.zeros((sample.subscriptions, words), np.uint64)
    object_counts = np.zeros(workers)  # objects, or what they cost
    subscription_counts = np.zeros(workers, np.int64)
    works = [portion_work(sample, p) for p in portions]

    def weigh(part: int, _: Loads) -> Loads:
        rows = portions[part]
        held = rows_held_by_workers(objects, rows.objects, workers)
        held_too = rows_held_by_workers(subscriptions, rows.subscriptions, workers)
        heavier: Loads = cost.of_counts(
            object_counts + works[part] - held,
            subscription_counts + rows.subscriptions.size - held_too,
        )
        return heavier

    def give(part: int, worker: int) -> None:
        rows = portions[part]
        given = rows_given_to_worker(objects, rows.objects, worker)
        object_counts[worker] += works[part] - (rows.objects.size - given)
        subscription_counts[worker] += rows_given_to_worker(
            subscriptions, rows.subscriptions, worker
        )

    loads = np.array([portion_load(sample, p, cost) for p in portions])
    return _merge(loads, workers, weigh, give)


def _merge(
    loads: Loads,
    workers: int,
    weigh: Callable[[int, Loads], Loads],
    give: Callable[[int, int], None],
) -> Merged:
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
    return Merged(chosen, carried)


def _balance_with(carried: Loads, worker: int, heavier: Loads) -> float:
    after = carried.copy()
    after[worker] = heavier[worker]
    return _balance(after)


def _balance(loads: Loads) -> float:
    if loads.max() <= 0.0:
        return 1.0
    return float(loads.max() / loads.min()) if loads.min() > 0.0 else np.inf
