"""Resolve the subscription changes of a batch: which rows they end, and at which seq."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placewire.ingest.clock import BlockFacts
from placewire.kernels.ids import changes_to_chains, ids_to_rows
from placewire.kernels.jit import read_only
from placewire.model.arrays import I64, U8, U64
from placewire.model.subscriptions import (
    NEVER_US,
    SubscriptionRows,
    concat_columns,
    concat_rows,
    rows_of_arrays,
    take_rows,
    take_slices,
)
from placewire.segments.segment import Segment

NEVER_SEQ = np.iinfo(np.int64).max


class BatchChanges(NamedTuple):
    """All changes of a batch in log order; `row` points into the batch's rows, -1 unsubscribes."""

    seq: I64
    now_us: I64
    row: I64
    id_hash: U64
    id_offsets: I64
    id_bytes: U8


class Resolved(NamedTuple):
    """End seqs of the batch's own rows (i64[n], NEVER_SEQ if live), and of committed rows."""

    row_end: I64
    ended: list[tuple[I64, I64]]  # per segment: rows, end seqs
    idle_unsubscribes: int


NO_CHANGES = BatchChanges(
    np.empty(0, np.int64),
    np.empty(0, np.int64),
    np.empty(0, np.int64),
    np.empty(0, np.uint64),
    np.zeros(1, np.int64),
    np.empty(0, np.uint8),
)


def gather_changes(facts: list[BlockFacts]) -> tuple[BatchChanges, SubscriptionRows]:
    """Gather the changes and new rows of all blocks, without those that the clock rejected."""
    changes: list[BatchChanges] = []
    rows: list[SubscriptionRows] = []
    base = 0
    for fact in facts:
        a = fact.arrays
        if "change.event" not in a:
            continue
        events = a["change.event"].astype(np.int64)
        row = a["change.row"].astype(np.int64)
        part = rows_of_arrays(a)
        valid = ~np.isin(events, fact.clock.rejected_event)
        picked = np.flatnonzero(valid)
        if picked.size < events.size:
            kept = row[picked]
            part = take_rows(part, kept[kept >= 0])
            row = np.where(valid & (row >= 0), np.cumsum(valid & (row >= 0)) - 1, -1)
        id_offsets, at = take_slices(a["change.id_offsets"], picked)
        nows = fact.clock.nows(a["change.event"], a["change.now_us"])
        changes.append(
            BatchChanges(
                seq=fact.first_seq + events[picked],
                now_us=nows[picked],
                row=np.where(row >= 0, row + base, -1)[picked],
                id_hash=a["change.id_hash"][picked],
                id_offsets=id_offsets,
                id_bytes=a["change.id_bytes"][at],
            )
        )
        rows.append(part)
        base += part.total
    return concat_columns(changes or [NO_CHANGES]), concat_rows(rows)


def resolve_changes(
    changes: BatchChanges, rows: SubscriptionRows, segments: Sequence[tuple[Segment, U64]]
) -> Resolved:
    """Find what each change ends: an earlier row of this batch, or a committed one."""
    changes = BatchChanges(*map(read_only, changes))
    count = changes.seq.size
    previous = changes_to_chains(changes.id_hash, changes.id_offsets, changes.id_bytes)
    row_end = np.full(rows.total, NEVER_SEQ, np.int64)
    expires = np.full(count, -NEVER_US, np.int64)  # of what each change ends; lowest: nothing
    follows = previous >= 0
    ended_row = np.where(follows, changes.row[previous], -1)
    in_batch = np.flatnonzero(ended_row >= 0)
    row_end[ended_row[in_batch]] = changes.seq[in_batch]
    expires[in_batch] = rows.expires_us[ended_row[in_batch]]
    wanted = ~follows
    ended = []
    for segment, dead in segments:
        found = np.full(count, -1, np.int64)
        ids_to_rows(
            changes.id_hash,
            changes.id_offsets,
            changes.id_bytes,
            wanted,
            segment.directory_hash,
            segment.directory_row,
            segment.rows.id_offsets,
            segment.rows.id_bytes,
            read_only(dead),
            found,
        )
        hits = np.flatnonzero(found >= 0)
        expires[hits] = segment.rows.expires_us[found[hits]]
        order = np.argsort(found[hits], kind="stable")
        ended.append((found[hits][order], changes.seq[hits][order]))
    idle = (changes.row < 0) & (expires <= changes.now_us)
    return Resolved(row_end, ended, int(np.count_nonzero(idle)))
