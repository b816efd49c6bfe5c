"""The boolean worker index: postings of subscriptions by term and hierarchical cell.

Every covering term has a short directory: runs of levels, in each run the cells that have postings,
in code order, and for each cell a postings list. A rare term has one list at the root cell; a
frequent term has many short lists in cells that fit its subscriptions' regions.
"""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import freeze, read_only
from placewire.kernels.space.cells import MAX_LEVEL, boxes_to_ranges, ranges_finest_levels
from placewire.kernels.text.hash_table import EMPTY, hashes_to_numbers, numbers_to_groups
from placewire.kinds.boolean.kernels.postings import (
    ANY_TERM,
    WORDS,
    BooleanIndex,
    groups_to_cells,
    placements_to_postings,
    placements_to_runs,
    predicates_of,
    rows_to_covers,
)
from placewire.model.arrays import I32, I64, U32, U64
from placewire.model.subscriptions import SubscriptionRows

# Levels at which a list may stop. Few levels mean few lookups per object; see docs/decisions.
STOP_LEVELS = (0, 5, 8, 10, 11, 12, 13, 14, 16)
MOST_CELLS = 8
SHORT_LIST = 16


def build_index(
    rows: SubscriptionRows,
    literal_count: I64 | None = None,
    *,
    stop_levels: tuple[int, ...] = STOP_LEVELS,
    most_cells: int = MOST_CELLS,
    short_list: int = SHORT_LIST,
) -> BooleanIndex:
    """Index `rows`; their order does not matter.

    `literal_count` is the frequency of each literal's term, by default among these rows. Where
    several terms would each do, a subscription is posted under the rarest.
    """
    if rows.total == 0:
        return empty_index()
    if literal_count is None:
        literal_count = counts_among_rows(rows)
    predicates = predicates_of(rows)
    post_row, post_literal = rows_to_covers(predicates, literal_count)
    post_term = posted_terms(rows, post_row, post_literal)
    table, post_number, terms = hashes_to_numbers(read_only(post_term))
    term_offsets, term_posts = numbers_to_groups(post_number, terms.size)
    ranges = boxes_to_ranges(predicates.box)
    levels = np.array(stop_levels, np.int64)
    is_stop = np.zeros(MAX_LEVEL + 1, np.bool_)
    is_stop[levels] = True
    placed = groups_to_cells(
        term_offsets,
        term_posts,
        post_row,
        ranges,
        ranges_finest_levels(ranges, levels, most_cells),
        is_stop,
        short_list,
    )
    _, order = numbers_to_groups(placed.term, terms.size)
    directory = placements_to_runs(placed, order, terms.size)
    postings = placements_to_postings(placed, order, post_row, post_literal, predicates)
    return freeze(BooleanIndex, (table, *directory, postings))


def empty_index() -> BooleanIndex:
    """Return an index that matches nothing."""
    table = np.full(16, EMPTY, np.uint64)
    return freeze(BooleanIndex, (table, [0], [], [0], [], [0], np.empty((0, WORDS))))


def cover_posts(rows: SubscriptionRows, literal_count: I64) -> tuple[U32, U64]:
    """Return the (row, term) pairs to post, rows ascending; `literal_count` as in `build_index`."""
    post_row, post_literal = rows_to_covers(predicates_of(rows), literal_count)
    return post_row, posted_terms(rows, post_row, post_literal)


def posted_terms(rows: SubscriptionRows, post_row: U32, post_literal: I32) -> U64:
    """Return the term of each posted literal; ANY_TERM for literal -1."""
    post_term = np.full(post_row.size, ANY_TERM, np.uint64)
    has_term = post_literal >= 0
    positions = rows.literal_offsets[:-1][post_row] + post_literal
    post_term[has_term] = rows.literal_term[positions[has_term]]
    return post_term


def counts_among_rows(rows: SubscriptionRows) -> I64:
    """Count the subscriptions that could be posted under each literal's term."""
    _, numbers, distinct = hashes_to_numbers(read_only(rows.literal_term))
    counts = np.bincount(numbers[rows.literal_cover != 0], minlength=distinct.size)
    return counts[numbers].astype(np.int64)
