"""Covers: the terms under which a subscription is posted, in an index as in a router."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.interning import hashes_to_numbers
from placewire.kernels.postings import ANY_TERM, rows_to_covers
from placewire.model.subscriptions import SubscriptionRows


def cover_posts(
    rows: SubscriptionRows, literal_count: NDArray[np.int64]
) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """The (row, term) pairs to post, rows ascending; `literal_count` says how frequent each is."""
    post_row, post_literal = rows_to_covers(
        rows.cover_mode, rows.literal_offsets, rows.literal_cover, literal_count
    )
    return post_row, posted_terms(rows, post_row, post_literal)


def posted_terms(
    rows: SubscriptionRows, post_row: NDArray[np.uint32], post_literal: NDArray[np.int32]
) -> NDArray[np.uint64]:
    """The term of each posted literal; ANY_TERM for literal -1."""
    post_term = np.full(post_row.size, ANY_TERM, np.uint64)
    has_term = post_literal >= 0
    positions = rows.literal_offsets[:-1][post_row] + post_literal
    post_term[has_term] = rows.literal_term[positions[has_term]]
    return post_term


def counts_among_rows(rows: SubscriptionRows) -> NDArray[np.int64]:
    """How many subscriptions could be posted under each literal's term."""
    _, numbers, distinct = hashes_to_numbers(rows.literal_term)
    counts = np.bincount(numbers[rows.literal_cover != 0], minlength=distinct.size)
    frequent: NDArray[np.int64] = counts[numbers].astype(np.int64)
    return frequent
