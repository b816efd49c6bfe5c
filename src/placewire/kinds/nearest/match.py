"""Match `nearest` on a worker: find objects that may enter results, by the last commit's circles.

A worker passes on only candidates that could enter if its block were the whole log: an object that
k earlier objects of the block beat cannot enter a result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import freeze, read_only
from placewire.kernels.space.circles import points_to_units, radii_to_limits
from placewire.kinds.boolean.kernels.probes import Cursor, Probe
from placewire.kinds.boolean.match import make_probe
from placewire.kinds.candidates import Matches, ObjectBlock, Target
from placewire.kinds.nearest.index import CircleIndex
from placewire.kinds.nearest.kernels.match import (
    Circles,
    NearPredicates,
    make_buffers,
    objects_near_postings,
    objects_near_rows,
)
from placewire.kinds.nearest.kernels.top_k import candidates_entering_rows
from placewire.kinds.nearest.rows import nearest_columns
from placewire.model.arrays import F64, I64, U16, U32, Array, Bools
from placewire.model.subscriptions import NEVER_US, SubscriptionRows, take_slices

LEAST_ROOM = 4_096
FIRST_CHUNK = 64  # objects
ROOM = 1_000_000  # approximate number of candidates per chunk
NOTHING_FOUND = np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.float64)


def shrink(target: Target, owned: bool, rows: U32, radius: F64) -> Target:
    """Return the target with smaller circles for some rows; the shared limits are unchanged."""
    limits = target.thresholds if owned else target.thresholds.copy()
    limits[rows] = np.minimum(limits[rows], radii_to_limits(read_only(radius)))
    return target._replace(thresholds=limits)


def probe_some(block: ObjectBlock, picked: I64) -> Probe:
    """Prepare some of the objects for matching; none is probed without a term."""
    term_offsets, at = take_slices(block.term_offsets, picked)
    return make_probe(
        block.codes[picked],
        block.lon[picked],
        block.lat[picked],
        block.now_us[picked],
        term_offsets,
        block.terms[at],
        block.probed[at] if block.probed.size else block.probed,
        np.zeros(picked.size, np.uint8),
    )


class LogChunks:
    """The objects of a block in chunks of the log, each in cell order.

    The candidates found in the last chunk set the length of the next.
    """

    def __init__(self, events: U32, first: int = 0) -> None:
        self.order = np.argsort(events, kind="stable")
        self.at = int(np.searchsorted(events[self.order], first))
        self.size = FIRST_CHUNK
        self.last = 0

    @property
    def left(self) -> int:
        return int(self.order.size) - self.at

    def __iter__(self) -> Iterator[I64]:
        while self.left:
            picked = np.sort(self.order[self.at : self.at + self.size])
            self.at += picked.size
            self.last = int(picked.size)
            yield picked

    def found(self, candidates: int) -> None:
        """Record the number of candidates of the last chunk."""
        each = max(candidates / max(self.last, 1), 0.1)
        self.size = max(FIRST_CHUNK, int(ROOM / each))


def predicates_of(rows: SubscriptionRows) -> NearPredicates:
    """Return the predicates of `nearest` rows."""
    columns = rows.expires_us, rows.cover_mode, rows.literal_offsets, rows.literal_term
    return freeze(NearPredicates, (*columns, *nearest_columns(rows)))


def find_near(probe: Probe, target: Target) -> Matches:
    """Find objects of a block that may enter results of a segment's rows; pairs may repeat."""
    index: CircleIndex = target.segment.index
    rows = predicates_of(target.segment.rows)
    units = read_only(points_to_units(probe.lon, probe.lat))
    circles = freeze(Circles, (index.centres, target.thresholds))
    dead = read_only(target.dead)
    found: list[tuple[Array, ...]] = [NOTHING_FOUND]  # the worker may have no part of the segment
    looked = 0
    for part in target.parts:
        buffers = make_buffers(max(LEAST_ROOM, 2 * index.longest[part]))
        cursor = Cursor(0, 0, 0, 0, NEVER_US, 0)
        while True:
            cursor = objects_near_postings(
                probe, units, index.parts[part], rows, circles, dead, buffers, cursor
            )
            found.append(tuple(column[: cursor.found].copy() for column in buffers[:3]))
            if cursor.group == probe.group_term.size:
                break
            cursor = cursor._replace(found=0)
        looked += cursor.candidates
    objects, of, distance = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Matches(objects, of, NEVER_US, looked, distance)


def scan_near(probe: Probe, target: Target) -> Matches:
    """Find what `find_near` finds, by testing every pair."""
    rows = target.segment.rows
    objects, of, distance = objects_near_rows(probe, predicates_of(rows), read_only(target.dead))
    return Matches(objects, of, NEVER_US, probe.codes.size * rows.total, distance)


class Sifted(NamedTuple):
    """Candidates by (row, event), each once, without those that k earlier candidates beat."""

    object: U32
    row: U32
    event: U32
    distance: F64
    full: U32  # rows with k sure candidates
    radius: F64  # distance of the k-th of these


def sift_near(
    matches: Matches, events: U32, sure: Bools, ks: U16, before: Sifted | None = None
) -> Sifted:
    """Keep the candidates that could enter, including those of earlier chunks of the block.

    `events` has the event of each object; the clock may still reject one that is not `sure`.
    """
    assert matches.measure is not None
    objects, rows, distance = matches.object, matches.row, matches.measure
    if before is not None:
        objects = np.concatenate([before.object, objects])
        rows = np.concatenate([before.row, rows])
        distance = np.concatenate([before.distance, distance])
    key = (rows.astype(np.uint64) << np.uint64(32)) | events[objects]
    _, first = np.unique(key, return_index=True)
    objects, rows, distance = objects[first], rows[first], distance[first]
    enters, full, radius = candidates_entering_rows(
        read_only(rows), read_only(distance), read_only(sure[objects]), read_only(ks)
    )
    objects = objects[enters]
    return Sifted(objects, rows[enters], events[objects], distance[enters], full, radius)


def match_near(block: ObjectBlock, target: Target, scan: bool = False) -> Matches:
    """Find a block's candidates for a segment's rows, by the index or by scanning.

    The block is processed in chunks of the log, sized so that their candidates fit. A subscription
    with fewer than k objects accepts every object that has its terms; only after a chunk does it
    have a radius.
    """
    find = scan_near if scan else find_near
    chunks = LogChunks(block.event)
    sifted: Sifted | None = None
    looked = passed = 0
    owned = False
    for picked in chunks:
        found = find(probe_some(block, picked), target)
        looked += found.candidates
        passed += int(found.object.size)
        chunks.found(int(found.object.size))
        found = found._replace(object=picked[found.object].astype(np.uint32))
        sifted = sift_near(found, block.event, block.sure, target.segment.rows.k, sifted)
        if chunks.left and sifted.full.size:
            target = shrink(target, owned, sifted.full, sifted.radius)
            owned = True
    if sifted is None:
        return Matches(*NOTHING_FOUND[:2], NEVER_US, 0, NOTHING_FOUND[2])
    return Matches(sifted.object, sifted.row, NEVER_US, looked, sifted.distance, passed)
