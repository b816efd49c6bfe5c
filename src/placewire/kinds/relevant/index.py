"""The index of `relevant` subscriptions: postings by term, cell and group of similar alpha.

The postings of a group are sorted by the text score they need, so a search of it can stop early.
The index is valid while thresholds are not below those it was built with (docs/decisions/0010).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import points_to_codes
from placewire.kernels.text.hash_table import EMPTY, hashes_to_numbers, numbers_to_groups
from placewire.kinds.relevant.kernels.groups import (
    ALPHA_OF,
    NEED,
    GroupIndex,
    cells_to_groups,
    groups_to_bounds,
    lists_to_cells,
    rows_to_facts,
    rows_to_weights,
)
from placewire.kinds.relevant.rows import relevant_columns, scored_rows
from placewire.model.arrays import F64, I32, I64, U32, U64, Bools
from placewire.model.subscriptions import SubscriptionRows, take_slices

GROUPS = 10
LEAF_ROWS = 2_000
ALL_POSTED = np.empty(0, np.bool_)


def build_groups(
    rows: SubscriptionRows,
    theta: I32,
    *,
    picked: I64 | None = None,
    posted: Bools | None = None,
    often: F64 | None = None,
    groups: int = GROUPS,
    leaf_rows: int = LEAF_ROWS,
    dropping: bool = True,
) -> GroupIndex:
    """Index `rows` for thresholds that are at least `theta` i32[n], in billionths.

    `picked` limits the index to some rows, `posted` to some of their literals: a pair is found if
    the object has a posted term of the row. `often` f64[literals] orders terms by frequency, and a
    pair is found only if the first of the row's terms that the object has is posted, so that
    exactly one of several indexes of the same rows finds it. A cell has at most `leaf_rows`
    postings of a term, in at most `groups` groups. With `dropping`, postings are omitted by which
    no object could reach the threshold.
    """
    wanted = np.arange(rows.total, dtype=np.int64) if picked is None else picked
    _, literals = take_slices(rows.literal_offsets, wanted)
    mask = ALL_POSTED if posted is None or posted[literals].all() else posted
    table, numbers, idf = number_terms(rows, literals, often)
    literal_number = np.zeros(rows.literal_term.size, np.uint32)
    literal_number[literals] = numbers
    scored = scored_rows(rows)
    post_literal, post_row, near, later, hints = rows_to_weights(
        read_only(wanted),
        scored,
        literal_number,
        read_only(mask),
        often is not None,
        read_only(theta),
        dropping,
    )
    facts = rows_to_facts(post_row, near, later, scored, read_only(theta))
    own = relevant_columns(rows)
    codes = points_to_codes(read_only(own.lon), read_only(own.lat))[post_row]
    list_offsets, order = numbers_to_groups(literal_number[post_literal], idf.size)
    term_cells, cell_offsets = lists_to_cells(list_offsets, order, codes, leaf_rows)
    cell_groups, group_offsets, group_chunks = cells_to_groups(
        cell_offsets, order, facts[ALPHA_OF], facts[NEED], groups
    )
    cell_bounds, chunk_bounds, by_group = groups_to_bounds(
        cell_offsets, group_offsets, group_chunks, order, facts
    )
    return GroupIndex(
        table,
        idf,
        term_cells,
        cell_offsets,
        cell_groups,
        cell_bounds,
        group_offsets,
        group_chunks,
        chunk_bounds,
        by_group,
        post_row[order],
        hints[order],
        mask if often is None else ALL_POSTED,
        np.diff(cell_offsets).max(initial=0, keepdims=True),
    )


def number_terms(rows: SubscriptionRows, literals: I64, often: F64 | None) -> tuple[U64, U32, F64]:
    """Number the terms of some literals from the rarest to the most frequent.

    Returns the table of hashes, the number of each literal and the idf of each term.
    """
    table, numbers, distinct = hashes_to_numbers(read_only(rows.literal_term[literals]))
    count = np.bincount(numbers, minlength=distinct.size)
    by_count = np.argsort(count, kind="stable")
    if often is not None:
        frequency = np.zeros(distinct.size)
        frequency[numbers] = often[literals]
        by_count = np.lexsort((distinct, frequency))
    rank = np.empty(distinct.size, np.uint32)
    rank[by_count] = np.arange(distinct.size, dtype=np.uint32)
    filled = np.flatnonzero(table[1::2] != EMPTY)
    table[2 * filled + 1] = rank[table[2 * filled + 1].astype(np.int64)]
    numbers = rank[numbers]
    idf = np.zeros(distinct.size, np.float64)
    np.maximum.at(idf, numbers, relevant_columns(rows).literal_idf[literals])
    return table, numbers, idf


class TermPartition(NamedTuple):
    """Postings partitioned into parts: the part of each literal, or -1 if it is not posted.

    If the postings of a row are in several parts, `often` f64[literals] gives their order.
    """

    parts: int
    owner: I32
    often: F64 | None = None


def index_parts(
    rows: SubscriptionRows, theta: I32, partition: TermPartition | None
) -> tuple[GroupIndex, ...]:
    """Build an index for every part of the postings, or one of all postings."""
    if partition is None:
        return (build_groups(rows, theta),)
    row = np.repeat(np.arange(rows.total), np.diff(rows.literal_offsets))
    indexes = []
    for part in range(partition.parts):
        posted = partition.owner == part
        here = np.unique(row[posted])
        indexes.append(build_groups(rows, theta, picked=here, posted=posted, often=partition.often))
    return tuple(indexes)


class RelevantIndex(NamedTuple):
    """An index of groups for every part, and the partition of the postings, if any."""

    groups: tuple[GroupIndex, ...]
    partition: TermPartition | None = None
