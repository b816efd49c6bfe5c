"""Reach: the parts of a plan that a query has to be sent to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.cells import MAX_LEVEL, boxes_to_ranges, ranges_coarsened
from placewire.model.subscriptions import take_slices
from placewire.plan.leaves import Leaves
from placewire.plan.sample import PLAN_LEVEL


def parts_overlapping(leaves: Leaves, box: tuple[float, float, float, float]) -> NDArray[np.int32]:
    """All parts, ascending, of the leaves that a box touches, counted as in `Leaves.part_offsets`.

    The box is west, south, east, north in degrees, closed on all sides; west > east crosses the
    antimeridian. Keywords are not looked at, as in SSTD: an object is kept in one part, which need
    not be that of any single keyword.
    """
    ranges = boxes_to_ranges(np.array([box], np.float64))
    first, low, last, high = ranges_coarsened(ranges, MAX_LEVEL - PLAN_LEVEL)[0].tolist()
    west, south, east, north = leaves.box.T
    begins, ends = west <= last, east > first
    across = begins & ends if first <= last else begins | ends
    touched = np.flatnonzero(across & (south <= high) & (north > low))
    _, parts = take_slices(leaves.part_offsets, touched)
    return parts.astype(np.int32)
