"""An assignment of `nearest` subscriptions to workers, and the rule by which new ones join it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.model.arrays import F64, I32, I64, U64, Array
from placewire.plans.nearest.sample import ObjectCounts, freeze_counts

# What a subscription costs that no initial object would update. Not 0, so that these spread over
# workers by their number, also from one call to the next; far below 1 / |O_init|, the least else.
LEAST_COST = 2.0**-30


class Parts(NamedTuple):
    """The parts of a plan's leaves, as in `plan.leaves.Leaves`.

    `objects` i64[parts] is how many of the initial objects each part sees.
    """

    box: I32
    part_offsets: I64
    term_offsets: I64
    terms: U64
    term_part: I32
    objects: I64


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
    rectangles: F64 = NO_RECTANGLES
    parts: Parts = NO_PARTS

    def to_arrays(self) -> dict[str, Array]:
        """The arrays of a rule file; the manifest has the name."""
        object_counts = self.object_counts._asdict()
        return {
            "objects": np.array([object_counts.pop("objects")], np.int64),
            **{f"census_{field}": array for field, array in object_counts.items()},
            "rectangles": self.rectangles,
            **{f"parts_{field}": array for field, array in self.parts._asdict().items()},
        }

    @classmethod
    def from_arrays(cls, name: str, arrays: dict[str, Array]) -> Rule:
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
    worker: I32
    cost: F64
    loads: F64
    rule: Rule


def make_assignment(rule: Rule, workers: int, worker: I32, cost: F64) -> Assignment:
    """An assignment with the loads of its workers."""
    loads = release(np.zeros(workers), worker, -cost)
    return Assignment(rule.name, workers, worker, cost, loads, rule)


def price_counts(counts: I64, objects: int) -> F64:
    """Counts of the initial objects as costs: their share, and never nothing."""
    return np.maximum(counts / max(objects, 1), LEAST_COST)


def release(loads: F64, workers_of_ended: I32, costs_of_ended: F64) -> F64:
    """The loads f64[workers] after some subscriptions ended."""
    ended = np.bincount(workers_of_ended, costs_of_ended, loads.size)
    return np.maximum(loads - ended, 0.0)
