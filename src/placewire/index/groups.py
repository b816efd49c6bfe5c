"""The index of `relevant` subscriptions: postings of rows by term."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.interning import hashes_to_numbers, numbers_to_groups
from placewire.kernels.jit import read_only
from placewire.model.subscriptions import SubscriptionRows

GROUPS = 10
LEAF_ROWS = 1_000


class GroupIndex(NamedTuple):
    """Postings by term; every array can be mapped from disk."""

    term_table: NDArray[np.uint64]
    list_offsets: NDArray[np.int64]
    posting_row: NDArray[np.uint32]


def build_groups(
    rows: SubscriptionRows,
    theta: NDArray[np.int32],
    *,
    picked: NDArray[np.int64] | None = None,
    posted: NDArray[np.bool_] | None = None,
    groups: int = GROUPS,
    leaf_rows: int = LEAF_ROWS,
) -> GroupIndex:
    """Index `rows` for thresholds that are at least `theta` i32[n], in billionths.

    With `picked` only some rows are indexed, with `posted` only some of their literals: a pair is
    found if the object has a posted term of the row.
    """
    wanted = np.ones(rows.literal_term.size, np.bool_) if posted is None else posted
    literal_row = np.repeat(np.arange(rows.total), np.diff(rows.literal_offsets))
    if picked is not None:
        is_picked = np.zeros(rows.total, np.bool_)
        is_picked[picked] = True
        wanted = wanted & is_picked[literal_row]
    at = np.flatnonzero(wanted)
    table, numbers, distinct = hashes_to_numbers(read_only(rows.literal_term[at]))
    offsets, order = numbers_to_groups(numbers, distinct.size)
    return GroupIndex(table, offsets, literal_row[at][order].astype(np.uint32))
