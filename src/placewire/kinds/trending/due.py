"""Find the `trending` subscriptions that report in a batch, and group them by region and window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placewire.ingest.clock import Advances
from placewire.kernels.jit import read_only
from placewire.kinds.trending.rows import trending_columns
from placewire.model.arrays import F64, I64, U8, Array, Bools
from placewire.model.subscriptions import SubscriptionRows, concat_rows, take_rows, take_slices
from placewire.segments.changes import NEVER_SEQ
from placewire.storage.manifest import StoreEntry

TASK_GROUPS = 2_048


class DueRows(NamedTuple):
    """Rows of one segment that report in a batch, from first_us to before until_us.

    `region_key` is equal for rows with the same region and window.
    """

    rows: SubscriptionRows
    picked: I64
    region_key: I64
    first_us: I64
    until_us: I64


def find_due(
    rows: SubscriptionRows,
    region_keys: I64,
    live: Bools,
    end_seq: I64,
    advances: Advances,
    first_seq: int,
) -> DueRows:
    """Find the rows with a due time in the batch; `end_seq` is NEVER_SEQ for rows that stay."""
    times = trending_columns(rows)
    last_us = int(advances.to_us[-1]) if advances.to_us.size else advances.before_us
    lo = np.full(rows.total, advances.before_us)
    new = rows.begin_seq >= first_seq
    lo[new] = advances.at(rows.begin_seq[new])
    hi = np.full(rows.total, last_us)
    ends = end_seq != NEVER_SEQ
    hi[ends] = advances.at(end_seq[ends])
    hi = np.minimum(hi, rows.expires_us)
    picked = np.flatnonzero(live & (hi > lo))
    steps = -((times.begun_us[picked] - lo[picked]) // times.every_us[picked])
    first = times.begun_us[picked] + np.maximum(steps, 1) * times.every_us[picked]
    is_due = first < hi[picked]
    picked, first = picked[is_due], first[is_due]
    return DueRows(rows, picked, region_keys[picked], first, hi[picked])


def hash_regions(rows: SubscriptionRows) -> I64:
    """Hash the region and window of each row."""
    window = trending_columns(rows).window_us
    edges = rows.shape_offsets.tolist()
    return np.fromiter(
        (
            hash(
                (
                    int(rows.region_kind[row]),
                    rows.box[row].tobytes(),
                    rows.shape[edges[row] : edges[row + 1]].tobytes(),
                    int(window[row]),
                )
            )
            for row in range(rows.total)
        ),
        np.int64,
        rows.total,
    )


class DueGroups(NamedTuple):
    """Due subscriptions, grouped by region, window and the seq after which objects count.

    Columns up to `until_us` have a row per group, the others one per subscription, CSR by group.
    """

    kind: U8
    box: F64
    shape_offsets: I64
    shape: F64
    window_us: I64
    after_seq: I64
    first_us: I64
    until_us: I64
    due_offsets: I64
    due_k: I64
    due_every_us: I64
    due_first_us: I64
    due_until_us: I64
    due_id_offsets: I64
    due_id_bytes: U8

    @property
    def total(self) -> int:
        return int(self.kind.size)


def due_groups(*columns: Array) -> DueGroups:
    """Make groups of columns as kernels take them: contiguous and read-only."""
    return DueGroups(*(read_only(np.ascontiguousarray(column)) for column in columns))


def make_groups(found: Sequence[DueRows], store: Sequence[StoreEntry]) -> DueGroups | None:
    """Group due rows by region, window and, where it matters, the event at which they began."""
    found = [due for due in found if due.picked.size]
    if not found:
        return None
    # Groups need no hashes of ids, which a mapped segment keeps elsewhere.
    rows = concat_rows(
        [
            take_rows(due.rows._replace(id_hash=np.zeros(due.rows.total, np.uint64)), due.picked)
            for due in found
        ]
    )
    region_key, first, until = (
        np.concatenate([getattr(due, name) for due in found])
        for name in ("region_key", "first_us", "until_us")
    )
    times = trending_columns(rows)
    after = find_after_seqs(rows.begin_seq, first - times.window_us, store)
    order = np.lexsort((after, region_key))
    region_key, after = region_key[order], after[order]
    begins = np.ones(order.size, np.bool_)
    begins[1:] = (region_key[1:] != region_key[:-1]) | (after[1:] != after[:-1])
    heads = np.flatnonzero(begins)
    rows = take_rows(rows, order)
    times = trending_columns(rows)
    shape_offsets, at = take_slices(rows.shape_offsets, heads)
    return due_groups(
        rows.region_kind[heads],
        rows.box[heads],
        shape_offsets,
        rows.shape[at],
        times.window_us[heads],
        after[heads],
        np.minimum.reduceat(first[order], heads),
        np.maximum.reduceat(until[order], heads),
        np.append(heads, order.size),
        rows.k.astype(np.int64),
        times.every_us,
        first[order],
        until[order],
        rows.id_offsets,
        rows.id_bytes,
    )


def find_after_seqs(begin_seq: I64, after_us: I64, store: Sequence[StoreEntry]) -> I64:
    """Find for each row the seq after which objects count; -1 if its window has none before it."""
    if not store:
        return np.full(begin_seq.size, -1)
    by_time = sorted(store, key=lambda entry: entry.last_us)
    last = np.array([entry.last_us for entry in by_time])
    first = np.array([entry.first_seq for entry in by_time] + [NEVER_SEQ])
    oldest = np.minimum.accumulate(first[::-1])[::-1]  # of all files that end at this time or later
    return np.where(oldest[np.searchsorted(last, after_us, "right")] > begin_seq, -1, begin_seq)


def split_groups(groups: DueGroups, size: int = TASK_GROUPS) -> list[DueGroups]:
    """Split groups into portions for tasks."""
    return [take_groups(groups, first, first + size) for first in range(0, groups.total, size)]


def take_groups(groups: DueGroups, first: int, last: int) -> DueGroups:
    """Take a range of groups."""
    last = min(last, groups.total)
    begin, end = int(groups.due_offsets[first]), int(groups.due_offsets[last])
    shapes = groups.shape_offsets[first : last + 1]
    ids = groups.due_id_offsets[begin : end + 1]
    return due_groups(
        groups.kind[first:last],
        groups.box[first:last],
        shapes - shapes[0],
        groups.shape[shapes[0] : shapes[-1]],
        groups.window_us[first:last],
        groups.after_seq[first:last],
        groups.first_us[first:last],
        groups.until_us[first:last],
        groups.due_offsets[first : last + 1] - begin,
        groups.due_k[begin:end],
        groups.due_every_us[begin:end],
        groups.due_first_us[begin:end],
        groups.due_until_us[begin:end],
        ids - ids[0],
        groups.due_id_bytes[ids[0] : ids[-1]],
    )
