"""A worker's part for `relevant`: objects that reach the thresholds of the last commit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.engine.nearing import NearColumns
from placewire.engine.worker import NONE_DEAD, Matches
from placewire.kernels.jit import read_only
from placewire.kernels.relevance import objects_relevant_to_rows
from placewire.model.subscriptions import NEVER_US
from placewire.state.segment import Segment


class RelevantTarget(NamedTuple):
    """What objects are held against: a segment, its thresholds, ended rows."""

    segment: Segment
    theta: NDArray[np.int32]
    dead: NDArray[np.uint64] = NONE_DEAD


def match_relevant(
    columns: NearColumns,
    norms: NDArray[np.float64],
    segment: Segment,
    theta: NDArray[np.int32],
    dead: NDArray[np.uint64],
) -> Matches:
    """Candidates of a block for a segment's rows, by looking at every pair."""
    rows = segment.rows
    objects, of, nano = objects_relevant_to_rows(
        read_only(columns.lon),
        read_only(columns.lat),
        read_only(columns.now_us),
        read_only(columns.term_offsets),
        read_only(columns.terms),
        read_only(norms),
        rows.expires_us,
        rows.shape_offsets,
        rows.shape,
        rows.literal_offsets,
        rows.literal_term,
        read_only(theta),
        read_only(dead),
    )
    return Matches(objects, of, NEVER_US, norms.size * rows.total, nano=nano)
