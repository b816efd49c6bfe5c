"""Nearness: about how many posts an object would meet, which is what matching it costs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placewire.index.covers import counts_among_rows, cover_posts
from placewire.kernels.cells import MAX_LEVEL, boxes_to_ranges
from placewire.kernels.holding import pairs_near_posts, posts_into_sketch
from placewire.kernels.jit import read_only
from placewire.kernels.routing import cells_of_ranges
from placewire.model.subscriptions import SubscriptionRows, take_rows

NEAR_LEVEL = 10  # cells of 0.35 x 0.18 degrees
MOST_CELLS = 64  # of a region; one that touches more is near everything
SKETCH = 1 << 23
SAMPLED_ROWS = 200_000
# Of the posts in a cell as wide as most regions, those that an object would really meet.
MET = 0.25

Near = tuple[NDArray[np.float64], NDArray[np.float64]]


def make_sketch(rows: SubscriptionRows) -> NDArray[np.float32]:
    """Counts of the posts of each (cell, term) of all rows, or of an even choice scaled up."""
    step = max(1, -(-rows.total // SAMPLED_ROWS))
    sketch = np.zeros(SKETCH, np.float32)
    if rows.total:
        some = take_rows(rows, np.arange(0, rows.total, step)) if step > 1 else rows
        post_row, post_term = cover_posts(some, counts_among_rows(some))
        offsets, cells = cells_of_ranges(
            boxes_to_ranges(read_only(some.box)), MAX_LEVEL - NEAR_LEVEL, MOST_CELLS
        )
        posts_into_sketch(read_only(post_row), read_only(post_term), offsets, cells, sketch)
        sketch *= np.float32(step * MET)
    return sketch


def count_near(
    codes: NDArray[np.uint32],
    term_offsets: NDArray[np.int64],
    terms: NDArray[np.uint64],
    sketch: NDArray[np.float32],
) -> Near:
    """The posts met by each (object, term) pair and by each object alone."""
    near: Near = pairs_near_posts(
        read_only(codes),
        read_only(term_offsets),
        read_only(terms),
        sketch,
        2 * (MAX_LEVEL - NEAR_LEVEL),
    )
    return near
