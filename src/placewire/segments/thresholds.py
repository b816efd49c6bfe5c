"""Limits of balls and thresholds as a worker knows them: the file's, changed by its deltas.

A process keeps them from batch to batch and applies only deltas that it has not seen, in order.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.space.circles import radii_to_limits
from placewire.kinds.nearest.results import read_radii
from placewire.kinds.relevant.results import read_delta
from placewire.segments.segment import Segment
from placewire.storage.arrays import open_arrays
from placewire.storage.manifest import SegmentEntry

KEPT_SEGMENTS = 64


class _Known:
    """Limits f32[n] of one segment's balls, or thresholds i32[n] of its rows.

    `applied` are the files of the deltas that are in them.
    """

    def __init__(self, segment: Segment) -> None:
        self.limits = np.empty(0, np.float32)
        self.theta = np.empty(0, np.int32)
        if segment.balls is not None:
            self.limits = radii_to_limits(segment.balls.radius)
        if segment.buffers is not None:
            self.theta = segment.buffers.theta.copy()
        self.applied: set[str] = set()


_known: OrderedDict[Path, _Known] = OrderedDict()


def _known_of(
    entry: SegmentEntry, segment: Segment, live: Iterable[SegmentEntry], path: Callable[[str], Path]
) -> _Known:
    """What is known of a segment; those that are no longer `live` are forgotten."""
    key = path(entry.name)
    known = _known.get(key)
    if known is None:
        standing = {path(other.name) for other in live}
        for old in [k for k in _known if k.parent == key.parent and k not in standing]:
            del _known[old]
        known = _known[key] = _Known(segment)
        while len(_known) > KEPT_SEGMENTS:
            _known.popitem(last=False)
    _known.move_to_end(key)
    return known


def current_limits(
    entry: SegmentEntry, segment: Segment, live: Iterable[SegmentEntry], path: Callable[[str], Path]
) -> NDArray[np.float32]:
    """The limits of a segment's balls after its deltas.

    Limits only filter: with fewer deltas there are more candidates, and no other results.
    """
    known = _known_of(entry, segment, live, path)
    for delta in entry.deltas:
        if delta.file not in known.applied:
            rows, radius = read_radii(open_arrays(path(delta.file)).arrays, delta.label)
            limits = radii_to_limits(np.ascontiguousarray(radius))
            known.limits[rows] = np.minimum(known.limits[rows], limits)
            known.applied.add(delta.file)
    return known.limits


def current_thetas(
    entry: SegmentEntry, segment: Segment, live: Iterable[SegmentEntry], path: Callable[[str], Path]
) -> NDArray[np.int32]:
    """The thresholds of a segment's `relevant` rows after its deltas."""
    known = _known_of(entry, segment, live, path)
    for delta in entry.deltas:
        if delta.file not in known.applied:
            changed = read_delta(open_arrays(path(delta.file)).arrays, delta.label)
            known.theta[changed.theta_row] = changed.theta
            known.applied.add(delta.file)
    return known.theta
