"""A worker's part for `relevant`: objects that reach the thresholds of rows, each pair once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kernels.space.circles import points_to_units
from placewire.kinds.candidates import Matches, Target
from placewire.kinds.relevant.index import GroupIndex
from placewire.kinds.relevant.kernels.groups import (
    ALL_PRUNINGS,
    COUNTER_NAMES,
    LOOKED,
    RAISED,
    VERIFIED,
    objects_to_pairs,
)
from placewire.kinds.relevant.kernels.match import objects_reaching_groups
from placewire.kinds.relevant.kernels.score import (
    candidates_reaching_rows,
    objects_relevant_to_rows,
)
from placewire.kinds.relevant.rows import scored_rows
from placewire.model.subscriptions import NEVER_US, SubscriptionRows
from placewire.segments.segment import NONE_DEAD

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

    `counters` i64 are named by `kernels.prunings.COUNTER_NAMES`.
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
    block = RelevanceBlock(*map(read_only, block))
    index = GroupIndex(*map(read_only, index))
    term_number, numbers, ends, of, x, y, hints = objects_to_pairs(
        block.term_offsets,
        block.terms,
        block.norms,
        index.term_table,
        index.term_idf,
        index.posted.size == 0,
        prunings,
    )
    scored = scored_rows(rows)
    units = points_to_units(block.lon, block.lat)
    room = max(room, int(index.longest[0]))
    objects, of_row = np.empty(room, np.uint32), np.empty(room, np.uint32)
    by_number, nano = np.empty(room, np.int32), np.empty(room, np.int32)
    bound, excess = np.empty(room, np.float32), np.empty(room, np.float32)
    cursor, counters = np.zeros(3, np.int64), np.zeros(len(COUNTER_NAMES), np.int64)
    found = []
    while True:
        count = objects_reaching_groups(
            numbers,
            ends,
            of,
            x,
            y,
            hints,
            units,
            *index[2:-2],
            prunings,
            excess,
            objects,
            of_row,
            by_number,
            bound,
            cursor,
            counters,
        )
        reached, verified = candidates_reaching_rows(
            objects[:count],
            of_row[:count],
            by_number[:count],
            bound[:count],
            *block[1:],
            term_number,
            read_only(rows.expires_us),
            scored,
            index.posted,
            read_only(theta),
            read_only(dead),
            nano,
        )
        counters[RAISED] += count - verified
        counters[VERIFIED] += verified
        found.append([column[:reached].copy() for column in (objects, of_row, nano)])
        if cursor[0] == numbers.size:
            break
    objects, of_row, nano = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Relevance(objects, of_row, nano, counters)


def scan_relevant(
    block: RelevanceBlock,
    rows: SubscriptionRows,
    theta: NDArray[np.int32],
    dead: NDArray[np.uint64] = NONE_DEAD,
) -> Relevance:
    """The same by looking at every pair."""
    block = RelevanceBlock(*map(read_only, block))
    scored = scored_rows(rows)
    objects, of_row, nano = objects_relevant_to_rows(
        *block[1:],
        read_only(rows.expires_us),
        scored,
        read_only(theta),
        read_only(dead),
    )
    return Relevance(objects, of_row, nano, np.zeros(len(COUNTER_NAMES), np.int64))


NO_MATCHES = Matches(
    np.empty(0, np.uint32), np.empty(0, np.uint32), NEVER_US, 0, np.empty(0, np.int32)
)


def match_relevant(block: RelevanceBlock, target: Target, scan: bool = False) -> Matches:
    """Candidates of a block for a segment's rows, by the index or by looking at every pair.

    A pair comes once from each part that has a posting of it.
    """
    rows, theta, dead = target.segment.rows, target.thresholds, target.dead
    if scan:
        found = [scan_relevant(block, rows, theta, dead)]
        looked = block.lon.size * rows.total
    else:
        found = [
            find_relevant(block, rows, target.segment.index.groups[part], theta, dead)
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
        np.concatenate([part.nano for part in found]),
    )
