"""A worker's part for `nearest`: objects that may enter results, by the balls of the last commit.

Of one block only those are handed on that could enter if the block were all there is: an object
that k others of the block precede and beat would not enter anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.engine.worker import NONE_DEAD, Matches, Probe
from placewire.kernels.balls import points_to_units
from placewire.kernels.jit import read_only
from placewire.kernels.nearing import objects_near_postings, objects_near_rows
from placewire.kernels.ranking import candidates_entering_rows
from placewire.model.subscriptions import NEVER_US
from placewire.state.segment import Segment

LEAST_ROOM = 4_096
NOTHING_FOUND = np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.float64)


class NearTarget(NamedTuple):
    """What objects are held against: a segment, its parts here, its balls' limits, ended rows."""

    segment: Segment
    parts: Sequence[int]
    limits: NDArray[np.float32]
    dead: NDArray[np.uint64] = NONE_DEAD


def find_near(probe: Probe, target: NearTarget) -> Matches:
    """The objects of a block that may enter results of a segment's rows; some pairs come twice."""
    segment = target.segment
    assert segment.balls is not None
    rows = segment.rows
    units = read_only(points_to_units(probe.lon, probe.lat))
    found: list[tuple[NDArray[Any], ...]] = [NOTHING_FOUND]  # a worker may have no part of it
    looked = 0
    for part in target.parts:
        room = max(LEAST_ROOM, 2 * segment.balls.longest[part])
        aside = np.empty(room, np.uint32), np.empty(room, np.uint32)
        out = np.empty(room, np.uint32), np.empty(room, np.uint32), np.empty(room, np.float64)
        cursor = np.zeros(5, np.int64)
        while True:
            objects_near_postings(
                *probe,
                units,
                *segment.balls.parts[part],
                rows.expires_us,
                rows.cover_mode,
                rows.literal_offsets,
                rows.literal_term,
                rows.shape,
                segment.balls.centres,
                read_only(target.limits),
                read_only(target.dead),
                *aside,
                *out,
                cursor,
            )
            written = int(cursor[3])
            found.append(tuple(column[:written].copy() for column in out))
            cursor[3] = 0
            if cursor[0] == probe.group_term.size:
                break
        looked += int(cursor[4])
    objects, of, distance = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Matches(objects, of, NEVER_US, looked, distance)


def scan_near(probe: Probe, target: NearTarget) -> Matches:
    """The same by looking at every pair."""
    rows = target.segment.rows
    objects, of, distance = objects_near_rows(
        probe.lon,
        probe.lat,
        probe.now_us,
        probe.term_offsets,
        probe.terms,
        rows.expires_us,
        rows.cover_mode,
        rows.literal_offsets,
        rows.literal_term,
        rows.shape,
        read_only(target.dead),
    )
    return Matches(objects, of, NEVER_US, probe.codes.size * rows.total, distance)


def sift_near(
    matches: Matches,
    events: NDArray[np.uint32],
    sure: NDArray[np.bool_],
    ks: NDArray[np.uint16],
) -> Matches:
    """Those candidates that could enter, by (row, event), each once.

    `events` has the event of each object; one that is not `sure` may yet be refused.
    """
    assert matches.distance is not None
    event = events[matches.object]
    key = (matches.row.astype(np.uint64) << np.uint64(32)) | event
    key, first = np.unique(key, return_index=True)
    objects, rows, distance = (
        matches.object[first],
        matches.row[first],
        matches.distance[first],
    )
    enters = candidates_entering_rows(
        read_only(rows), read_only(distance), read_only(sure[objects]), read_only(ks)
    )
    return matches._replace(object=objects[enters], row=rows[enters], distance=distance[enters])


def match_near(
    probe: Probe,
    target: NearTarget,
    events: NDArray[np.uint32],
    sure: NDArray[np.bool_],
    scan: bool = False,
) -> Matches:
    """Candidates of a block for a segment's rows, by the index or by scanning."""
    found = (scan_near if scan else find_near)(probe, target)
    return sift_near(found, events, sure, target.segment.rows.k)
