"""A worker's part for `relevant`: objects that reach the thresholds of rows, each pair once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.engine.worker import NONE_DEAD, Matches
from placewire.index.groups import GroupIndex
from placewire.kernels.balls import points_to_units
from placewire.kernels.jit import read_only
from placewire.kernels.relating import (
    ALL_PRUNINGS,
    COUNTERS,
    LOOKED,
    VERIFIED,
    objects_reaching_groups,
    objects_to_pairs,
)
from placewire.kernels.relevance import candidates_reaching_rows, objects_relevant_to_rows
from placewire.model.subscriptions import NEVER_US, SubscriptionRows
from placewire.state.segment import Segment

ROOM = 1 << 14  # candidates scored at a time, unless a cell has more


class RelevanceBlock(NamedTuple):
    """Objects in cell order, with the norms f64[m] of their terms."""

    codes: NDArray[np.uint32]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    now_us: NDArray[np.int64]
    term_offsets: NDArray[np.int64]
    terms: NDArray[np.uint64]
    norms: NDArray[np.float64]


class Relevance(NamedTuple):
    """Candidates of a block: object u32[m], row u32[m], score in billionths i32[m].

    `counters` i64 are numbered as in `kernels.relating`.
    """

    object: NDArray[np.uint32]
    row: NDArray[np.uint32]
    nano: NDArray[np.int32]
    counters: NDArray[np.int64]


def find_relevant(
    block: RelevanceBlock,
    rows: SubscriptionRows,
    index: GroupIndex,
    theta: NDArray[np.int32],
    dead: NDArray[np.uint64] = NONE_DEAD,
    prunings: int = ALL_PRUNINGS,
    room: int = ROOM,
) -> Relevance:
    """Every (object, row) with a shared posted term and a score of at least `theta`, once.

    No `theta` may be below the one that the index was made with, except of dead rows.
    """
    columns = tuple(map(read_only, block))
    _, lon, lat, _, term_offsets, terms, norms = columns
    index = GroupIndex(*map(read_only, index))
    term_number, number, *pairs = objects_to_pairs(
        term_offsets,
        terms,
        norms,
        index.term_table,
        index.term_idf,
        index.posted.size == 0,
        prunings,
    )
    order = np.argsort(number, kind="stable")
    number = number[order]
    first = np.flatnonzero(np.diff(number, prepend=-1))
    of_rows = tuple(
        map(
            read_only,
            (rows.expires_us, rows.shape_offsets, rows.shape, rows.literal_offsets),
        )
    )
    room = max(room, int(np.diff(index.cell_offsets).max(initial=0)))
    out: tuple[NDArray[Any], ...] = tuple(
        np.empty(room, kind) for kind in (np.uint32, np.uint32, np.int32, np.float32, np.int32)
    )
    excess = np.empty(room, np.float32)
    cursor, counters = np.zeros(3, np.int64), np.zeros(COUNTERS, np.int64)
    found = []
    while True:
        count = objects_reaching_groups(
            number[first],
            np.append(first, number.size),
            *(column[order] for column in pairs),
            points_to_units(lon, lat),
            *index[2:-1],
            prunings,
            excess,
            *out[:4],
            cursor,
            counters,
        )
        reached, scored = candidates_reaching_rows(
            *(column[:count] for column in out[:4]),
            *columns[1:],
            term_number,
            *of_rows,
            read_only(rows.literal_term),
            index.posted,
            read_only(theta),
            read_only(dead),
            out[4],
        )
        counters[VERIFIED] += scored
        found.append([out[at][:reached].copy() for at in (0, 1, 4)])
        if cursor[0] == first.size:
            break
    objects, of, nano = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Relevance(objects, of, nano, counters)


def scan_relevant(
    block: RelevanceBlock,
    rows: SubscriptionRows,
    theta: NDArray[np.int32],
    dead: NDArray[np.uint64] = NONE_DEAD,
) -> Relevance:
    """The same by looking at every pair."""
    found = objects_relevant_to_rows(
        *map(read_only, block[1:]),
        read_only(rows.expires_us),
        read_only(rows.shape_offsets),
        read_only(rows.shape),
        read_only(rows.literal_offsets),
        read_only(rows.literal_term),
        read_only(theta),
        read_only(dead),
    )
    return Relevance(*found, np.zeros(COUNTERS, np.int64))


class RelevantTarget(NamedTuple):
    """What objects are held against: a segment, its parts here, its thresholds, ended rows."""

    segment: Segment
    parts: Sequence[int]
    theta: NDArray[np.int32]
    dead: NDArray[np.uint64] = NONE_DEAD


def match_relevant(block: RelevanceBlock, target: RelevantTarget, scan: bool = False) -> Matches:
    """Candidates of a block for a segment's rows, by the index or by looking at every pair."""
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


NO_MATCHES = Matches(
    np.empty(0, np.uint32), np.empty(0, np.uint32), NEVER_US, 0, nano=np.empty(0, np.int32)
)
