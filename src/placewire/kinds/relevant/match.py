"""Match `relevant` on a worker: find the objects that reach the thresholds of rows, each once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import read_only
from placewire.kernels.space.circles import points_to_units
from placewire.kinds.candidates import Matches, Target
from placewire.kinds.relevant.kernels.groups import (
    ALL_PRUNINGS,
    COUNTER_NAMES,
    LOOKED,
    RAISED,
    VERIFIED,
    GroupIndex,
    objects_to_pairs,
)
from placewire.kinds.relevant.kernels.match import objects_reaching_groups
from placewire.kinds.relevant.kernels.score import (
    LiveRows,
    RelevanceBlock,
    candidates_reaching_rows,
    make_candidate_room,
    objects_relevant_to_rows,
)
from placewire.kinds.relevant.rows import scored_rows
from placewire.model.arrays import I32, I64, U32, U64
from placewire.model.subscriptions import NEVER_US, SubscriptionRows
from placewire.segments.segment import NONE_DEAD

ROOM = 1 << 14  # candidates scored at a time, unless a cell has more


class Relevance(NamedTuple):
    """Candidates of a block: object u32[m], row u32[m], score in billionths i32[m].

    `counters` i64 are named by `kernels.groups.COUNTER_NAMES`.
    """

    object: U32
    row: U32
    nano: I32
    counters: I64


def find_relevant(
    block: RelevanceBlock,
    rows: SubscriptionRows,
    index: GroupIndex,
    theta: I32,
    dead: U64 = NONE_DEAD,
    prunings: int = ALL_PRUNINGS,
    room: int = ROOM,
) -> Relevance:
    """Find every (object, row) with a shared posted term and a score of at least `theta`, once.

    No `theta` may be below the one that the index was made with, except those of ended rows.
    """
    block = RelevanceBlock(*map(read_only, block))
    index = GroupIndex(*map(read_only, index))
    term_number, pairs = objects_to_pairs(block, index, prunings)
    scored, live = scored_rows(rows), live_rows(rows, theta, dead)
    units = points_to_units(block.lon, block.lat)
    size = max(room, int(index.longest[0]))
    candidates, excess = make_candidate_room(size), np.empty(size, np.float32)
    cursor, counters = np.zeros(3, np.int64), np.zeros(len(COUNTER_NAMES), np.int64)
    found = []
    while True:
        count = objects_reaching_groups(
            pairs, units, index, prunings, excess, candidates, cursor, counters
        )
        reached, verified = candidates_reaching_rows(
            candidates, count, block, term_number, live, scored, index.posted
        )
        counters[RAISED] += count - verified
        counters[VERIFIED] += verified
        columns = candidates.object, candidates.row, candidates.nano
        found.append([column[:reached].copy() for column in columns])
        if cursor[0] == pairs.list_number.size:
            break
    objects, of_row, nano = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Relevance(objects, of_row, nano, counters)


def scan_relevant(
    block: RelevanceBlock, rows: SubscriptionRows, theta: I32, dead: U64 = NONE_DEAD
) -> Relevance:
    """Find what `find_relevant` finds, by testing every pair."""
    block = RelevanceBlock(*map(read_only, block))
    live, scored = live_rows(rows, theta, dead), scored_rows(rows)
    objects, of_row, nano = objects_relevant_to_rows(block, live, scored)
    return Relevance(objects, of_row, nano, np.zeros(len(COUNTER_NAMES), np.int64))


def live_rows(rows: SubscriptionRows, theta: I32, dead: U64) -> LiveRows:
    """Return the data that decides whether rows accept objects at all."""
    return LiveRows(read_only(rows.expires_us), read_only(theta), read_only(dead))


NO_MATCHES = Matches(
    np.empty(0, np.uint32), np.empty(0, np.uint32), NEVER_US, 0, np.empty(0, np.int32)
)


def match_relevant(block: RelevanceBlock, target: Target, scan: bool = False) -> Matches:
    """Find a block's candidates for a segment's rows, by the index or by testing every pair.

    Each part that has a posting of a pair returns the pair once.
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
