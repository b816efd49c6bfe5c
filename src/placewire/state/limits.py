"""Limits of balls as a worker knows them: those of the segment's file, shrunk by its deltas.

A process keeps them from batch to batch and applies only deltas that it has not seen. Limits
only filter: a process that has seen fewer deltas finds more candidates, and no other results.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.balls import radii_to_limits
from placewire.state.arrays import open_arrays
from placewire.state.manifest import SegmentEntry
from placewire.state.neighbours import read_radii
from placewire.state.segment import Segment

KEPT_SEGMENTS = 64


class _Known:
    """Limits f32[n] of one segment's balls, and the files of the deltas that are in them."""

    def __init__(self, segment: Segment) -> None:
        assert segment.balls is not None
        self.limits: NDArray[np.float32] = radii_to_limits(segment.balls.radius)
        self.applied: set[str] = set()


_known: OrderedDict[Path, _Known] = OrderedDict()


def current_limits(
    entry: SegmentEntry, segment: Segment, live: Iterable[SegmentEntry], path: Callable[[str], Path]
) -> NDArray[np.float32]:
    """The limits of a segment's balls after its deltas; segments no longer `live` are forgotten."""
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
    for delta in entry.deltas:
        if delta.file not in known.applied:
            rows, radius = read_radii(open_arrays(path(delta.file)).arrays, delta.label)
            limits = radii_to_limits(np.ascontiguousarray(radius))
            known.limits[rows] = np.minimum(known.limits[rows], limits)
            known.applied.add(delta.file)
    return known.limits
