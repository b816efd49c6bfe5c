"""An assignment of `nearest` subscriptions to workers, and the rule by which new ones join it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.plans.nearest.sample import ObjectCounts, freeze_counts

# What a subscription costs that no initial object would update. Not 0, so that these spread over
# workers by their number, also from one call to the next; far below 1 / |O_init|, the least else.
LEAST_COST = 2.0**-30


class Parts(NamedTuple):
    """The parts of a plan's leaves, as in `plan.leaves.Leaves`.

    `objects` i64[parts] is how many of the initial objects each part sees.
    """

    box: NDArray[np.int32]
    part_offsets: NDArray[np.int64]
    term_offsets: NDArray[np.int64]
    terms: NDArray[np.uint64]
    term_part: NDArray[np.int32]
    objects: NDArray[np.int64]


NO_PARTS = Parts(
    np.empty((0, 4), np.int32),
    np.zeros(1, np.int64),
    np.zeros(1, np.int64),
    np.empty(0, np.uint64),
    np.empty(0, np.int32),
    np.empty(0, np.int64),
)
NO_RECTANGLES = np.empty((0, 4), np.float64)


class Rule(NamedTuple):
    """How method `name` prices a new subscription; arrays and numbers only.

    `kop` needs counts by term, `sop` counts by place too. `dkm` also has the `rectangles` f64[r, 4]
    of its subsets, `ps2` counts by term and its parts.
    """

    name: str
    object_counts: ObjectCounts
    rectangles: NDArray[np.float64] = NO_RECTANGLES
    parts: Parts = NO_PARTS

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of a rule file; the manifest has the name."""
        object_counts = self.object_counts._asdict()
        return {
            "objects": np.array([object_counts.pop("objects")], np.int64),
            **{f"census_{field}": array for field, array in object_counts.items()},
            "rectangles": self.rectangles,
            **{f"parts_{field}": array for field, array in self.parts._asdict().items()},
        }

    @classmethod
    def from_arrays(cls, name: str, arrays: dict[str, NDArray[Any]]) -> Rule:
        """The rule of method `name` from the arrays of its file."""
        object_counts = [arrays[f"census_{field}"] for field in ObjectCounts._fields[1:]]
        return cls(
            name,
            freeze_counts(ObjectCounts(int(arrays["objects"][0]), *object_counts)),
            arrays["rectangles"],
            Parts(*(arrays[f"parts_{field}"] for field in Parts._fields)),
        )


class Assignment(NamedTuple):
    """The worker i32[n] and the estimated cost f64[n] of every subscription of a sample.

    A cost is how many subscriptions' results, or how much of one, an object is expected to touch;
    `loads` f64[workers] are the sums of the costs of each worker.
    """

    name: str
    workers: int
    worker: NDArray[np.int32]
    cost: NDArray[np.float64]
    loads: NDArray[np.float64]
    rule: Rule


def make_assignment(
    rule: Rule, workers: int, worker: NDArray[np.int32], cost: NDArray[np.float64]
) -> Assignment:
    """An assignment with the loads of its workers."""
    loads = release(np.zeros(workers), worker, -cost)
    return Assignment(rule.name, workers, worker, cost, loads, rule)


def price_counts(counts: NDArray[np.int64], objects: int) -> NDArray[np.float64]:
    """Counts of the initial objects as costs: their share, and never nothing."""
    costs: NDArray[np.float64] = np.maximum(counts / max(objects, 1), LEAST_COST)
    return costs


def release(
    loads: NDArray[np.float64],
    workers_of_ended: NDArray[np.int32],
    costs_of_ended: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The loads f64[workers] after some subscriptions ended."""
    ended = np.bincount(workers_of_ended, costs_of_ended, loads.size)
    after: NDArray[np.float64] = np.maximum(loads - ended, 0.0)
    return after
