"""Cuts of a box in two, and the loads beside every place where it could be cut."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.planning import spans_along_axis
from placewire.plan.cost import LoadModel
from placewire.plan.portion import Portion
from placewire.plan.sample import Sample


class Cut(NamedTuple):
    """A cut before column (axis 0) or row (axis 1) `at`; `worst` is its heavier side's load.

    Where the sides are to be cut again into several parts, it is the load of one such part.
    """

    axis: int
    at: int
    worst: float


class Running(NamedTuple):
    """What of a portion lies before each of the lines between the cells of an axis: [length + 1].

    `objects` is what they cost; `begun` and `ended` count the subscriptions whose first and whose
    last cell inside the box is before the line.
    """

    objects: NDArray[Any]
    begun: NDArray[np.int64]
    ended: NDArray[np.int64]


class Sides(NamedTuple):
    """The loads below and above every cut of an axis, f64[length - 1] both, and of the whole.

    All are of the same running sums: a side that has everything weighs what the whole does.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    whole: float


def run_along(sample: Sample, portion: Portion, axis: int) -> Running:
    """Run along an axis of a portion's box."""
    first, end = portion.box[axis], portion.box[axis + 2]
    places = (sample.object_column, sample.object_row)[axis][portion.objects] - first
    work = sample.object_work[portion.objects] if sample.object_work.size else None
    begins, ends = spans_along_axis(
        sample.cell, portion.subscriptions, np.array(portion.box, np.int32), axis
    )
    return Running(*map(_running, (np.bincount(places, work, end - first), begins, ends)))


def loads_beside_cuts(sample: Sample, portion: Portion, axis: int, cost: LoadModel) -> Sides:
    """What every cut between two cells of an axis would leave on its sides."""
    objects, begun, ended = run_along(sample, portion, axis)
    return Sides(
        cost.of_counts(objects[1:-1], begun[1:-1]),
        cost.of_counts(objects[-1] - objects[1:-1], ended[-1] - ended[1:-1]),
        cost.of_counts(float(objects[-1]), float(begun[-1])),
    )


def _running(counts: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([[0], np.cumsum(counts)])
