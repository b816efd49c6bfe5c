"""Nearness: about how many posts an object would meet, which is what matching it costs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import MAX_LEVEL, boxes_to_ranges
from placewire.kinds.boolean.index import counts_among_rows, cover_posts
from placewire.model.subscriptions import SubscriptionRows, take_rows
from placewire.plans.kernels.holders import pairs_near_posts, posts_to_counts
from placewire.plans.kernels.owners import cells_of_ranges

NEAR_LEVEL = 10  # cells of 0.35 x 0.18 degrees
MOST_CELLS = 64  # of a region; one that touches more is near everything
SAMPLED_ROWS = 300_000
# Of the posts in a cell as wide as most regions, those that an object would really meet.
MET = 0.25

Near = tuple[NDArray[np.float64], NDArray[np.float64]]


class NearPosts(NamedTuple):
    """Counts of the posts of each (cell, term): a table, and what one count of it stands for."""

    table: NDArray[np.uint64]
    scale: float


def note_posts(rows: SubscriptionRows) -> NearPosts:
    """Count the posts of all rows, or of an even choice of them."""
    step = max(1, -(-rows.total // SAMPLED_ROWS))
    some = take_rows(rows, np.arange(0, rows.total, step)) if step > 1 else rows
    post_row, post_term = cover_posts(some, counts_among_rows(some))
    offsets, cells = cells_of_ranges(
        boxes_to_ranges(read_only(some.box)), MAX_LEVEL - NEAR_LEVEL, MOST_CELLS
    )
    keys = int(np.diff(offsets)[post_row].sum()) if rows.total else 0
    table = posts_to_counts(read_only(post_row), read_only(post_term), offsets, cells, keys)
    return NearPosts(table, step * MET)


def count_near(
    codes: NDArray[np.uint32],
    term_offsets: NDArray[np.int64],
    terms: NDArray[np.uint64],
    near: NearPosts,
) -> Near:
    """About how many posts each (object, term) pair and each object alone would meet."""
    of_pair, alone = pairs_near_posts(
        read_only(codes),
        read_only(term_offsets),
        read_only(terms),
        read_only(near.table),
        2 * (MAX_LEVEL - NEAR_LEVEL),
    )
    return of_pair * near.scale, alone * near.scale
