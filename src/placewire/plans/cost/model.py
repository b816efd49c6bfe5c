"""Costs: what a worker pays for the objects it sees and the subscriptions it holds."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from placewire.plans.sample.sample import Sample

OBJECTS_A_CHANGE = 5


class CostModel(Protocol):
    """A model of load: what the workers of a plan are charged by."""

    @property
    def name(self) -> str: ...

    @property
    def by_part(self) -> bool:
        """Whether each part of a plan is charged, and a worker the sum of its parts."""

    def cost(
        self,
        sample: Sample,
        objects: NDArray[np.int64],
        subscriptions: NDArray[np.int64],
        postings: float = 0.0,
    ) -> float:
        """The load of a worker or part that sees these objects and holds these subscriptions.

        `postings` is how many postings near the objects it has to look at, for a model that
        charges for them and does not count them itself.
        """


class LoadModel(NamedTuple):
    """PS2Stream's load: c1 |O| |Q| + c2 |O| + c3 |Q+| + c4 |Q-|, in nanoseconds.

    `inserts` and `deletes` are how many of each come for one subscription that is held.

    c1 charges an object for every subscription of its worker. An index by place and term does
    not: there an object pays for the postings that it meets, wherever the others are. With
    `per_posting` instead of `per_check` objects are weighed by these (`Sample.object_work`).
    """

    per_check: float = 0.002
    per_object: float = 300.0
    per_insert: float = 1500.0
    per_delete: float = 300.0
    inserts: float = 1.0
    deletes: float = 1.0
    per_posting: float = 0.0
    name: str = "load"

    @property
    def by_part(self) -> bool:
        return False

    @property
    def posting_work(self) -> float:
        """What a posting costs, an object itself costing 1."""
        return self.per_posting / self.per_object if self.per_object > 0.0 else 0.0

    def in_stream(self, objects: int, subscriptions: int) -> LoadModel:
        """The model for so many objects while so many subscriptions stand, by PS2Stream's stream.

        There five objects come to one change, and changes are inserts and deletes in turn.
        """
        if objects == 0:
            return self
        changes = objects / (2 * OBJECTS_A_CHANGE) / max(subscriptions, 1)
        return self._replace(inserts=changes, deletes=changes)

    @overload
    def of_counts(self, objects: float, subscriptions: float) -> float: ...

    @overload
    def of_counts(
        self, objects: NDArray[Any], subscriptions: NDArray[Any]
    ) -> NDArray[np.float64]: ...

    def of_counts(self, objects: Any, subscriptions: Any) -> Any:
        """The load of so many objects and subscriptions, or of each pair of counts."""
        return (
            self.per_check * objects * subscriptions
            + self.per_object * objects
            + (self.per_insert * self.inserts + self.per_delete * self.deletes) * subscriptions
        )

    def cost(
        self,
        sample: Sample,
        objects: NDArray[np.int64],
        subscriptions: NDArray[np.int64],
        postings: float = 0.0,
    ) -> float:
        work = objects.size + self.posting_work * postings
        return self.of_counts(work, float(subscriptions.size))


def read_cost(saved: dict[str, Any]) -> LoadModel:
    """The model of which `_asdict` was saved; raises ValueError or TypeError."""
    model = LoadModel(**saved)
    for name, value in model._asdict().items():
        if name != "name" and not (isinstance(value, int | float) and 0 <= value < math.inf):
            raise ValueError(f"its cost {name} must be a number from 0 on, got {value!r}")
    return model
