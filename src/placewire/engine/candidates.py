"""A worker's candidates for `relevant` segments, part by part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.engine.relating import RelevanceBlock, find_relevant, scan_relevant
from placewire.engine.worker import NONE_DEAD, Matches
from placewire.kernels.prunings import LOOKED
from placewire.model.subscriptions import NEVER_US
from placewire.state.segment import Segment

NO_MATCHES = Matches(
    np.empty(0, np.uint32), np.empty(0, np.uint32), NEVER_US, 0, nano=np.empty(0, np.int32)
)


class RelevantTarget(NamedTuple):
    """What objects are held against: a segment, its parts here, its thresholds, ended rows."""

    segment: Segment
    parts: Sequence[int]
    theta: NDArray[np.int32]
    dead: NDArray[np.uint64] = NONE_DEAD


def match_relevant(block: RelevanceBlock, target: RelevantTarget, scan: bool = False) -> Matches:
    """Candidates of a block for a segment's rows, by the index or by looking at every pair.

    A pair comes once from each part that has a posting of it.
    """
    rows, theta, dead = target.segment.rows, target.theta, target.dead
    if scan:
        found = [scan_relevant(block, rows, theta, dead)]
        looked = block.lon.size * rows.total
    else:
        found = [
            find_relevant(block, rows, target.segment.groups[part], theta, dead)
            for part in target.parts
        ]
        looked = sum(int(part.counters[LOOKED]) for part in found)
    if not found:
        return NO_MATCHES
    return Matches(
        np.concatenate([part.object for part in found]),
        np.concatenate([part.row for part in found]),
        NEVER_US,
        looked,
        nano=np.concatenate([part.nano for part in found]),
    )
