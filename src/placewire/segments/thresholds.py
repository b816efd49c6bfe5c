"""Cache the thresholds of ranked rows in each worker process.

Thresholds are read from a segment's file once; each batch applies only the deltas that are new.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from placewire.model.kinds import kind_numbered
from placewire.segments.segment import Segment
from placewire.storage.arrays import open_arrays
from placewire.storage.manifest import SegmentEntry

KEPT_SEGMENTS = 64


class _Known:
    """The thresholds of one segment, and the files of the deltas applied to them."""

    def __init__(self, segment: Segment) -> None:
        self.thresholds = kind_numbered(segment.kind).open_thresholds(segment)
        self.applied: set[str] = set()


_known: OrderedDict[Path, _Known] = OrderedDict()


def _known_of(
    entry: SegmentEntry, segment: Segment, live: Iterable[SegmentEntry], path: Callable[[str], Path]
) -> _Known:
    """Return a segment's cached thresholds; evict segments that are no longer `live`."""
    key = path(entry.name)
    known = _known.get(key)
    if known is None:
        named = {path(other.name) for other in live}
        for old in [k for k in _known if k.parent == key.parent and k not in named]:
            del _known[old]
        known = _known[key] = _Known(segment)
        while len(_known) > KEPT_SEGMENTS:
            _known.popitem(last=False)
    _known.move_to_end(key)
    return known


def current_thresholds(
    entry: SegmentEntry, segment: Segment, live: Iterable[SegmentEntry], path: Callable[[str], Path]
) -> Any:
    """Return the thresholds of a segment's rows after all its deltas."""
    known = _known_of(entry, segment, live, path)
    kind = kind_numbered(segment.kind)
    for delta in entry.deltas:
        if delta.file not in known.applied:
            kind.apply_delta(known.thresholds, open_arrays(path(delta.file)).arrays, delta.label)
            known.applied.add(delta.file)
    return known.thresholds
