"""Routing to workers among whom `nearest` subscriptions are dealt out: a pruned broadcast.

The papers send every object to every worker. Here a worker gets an object only if one of its
circles may reach the object's cell and asks for one of its terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import MAX_LEVEL, boxes_to_ranges
from placewire.kernels.space.circles import circles_to_boxes
from placewire.kinds.boolean.index import counts_among_rows, cover_posts
from placewire.kinds.nearest.index import CircleIndex
from placewire.kinds.nearest.rows import read_points
from placewire.model.subscriptions import SubscriptionRows, take_slices
from placewire.plans.kernels.nearest import balls_into_map, objects_to_ball_workers
from placewire.plans.kernels.owners import cells_of_ranges
from placewire.plans.route.live_terms import CELL_LEVEL, MOST_SCOPES, empty_map
from placewire.plans.route.protocol import RoutedShare

CELLS = 1 << (2 * CELL_LEVEL)


class RadiusRoute:
    """The router: a map of what the workers' circles ask for, and where."""

    def __init__(self, workers: int, words: NDArray[np.uint64]) -> None:
        self.workers = workers
        self.words = read_only(words)

    def cut(
        self,
        codes: NDArray[np.uint32],
        term_offsets: NDArray[np.int64],
        terms: NDArray[np.uint64],
    ) -> Iterator[RoutedShare]:
        """The shares of all workers that may need any of a block's objects, in code order.

        A worker looks all terms up: one that asks for several terms is posted under one of them,
        and which one that is may differ from what was noted here.
        """
        offsets, objects = objects_to_ball_workers(
            read_only(codes),
            read_only(term_offsets),
            read_only(terms),
            self.words,
            self.workers,
            CELLS,
            2 * (MAX_LEVEL - CELL_LEVEL),
        )
        for worker in np.flatnonzero(np.diff(offsets)).tolist():
            picked = objects[offsets[worker] : offsets[worker + 1]]
            share_offsets, at = take_slices(term_offsets, picked)
            every, alone = np.ones(at.size, np.uint8), np.zeros(picked.size, np.uint8)
            yield RoutedShare(worker, picked, share_offsets, terms[at], every, alone)


class LiveCircles:
    """The map for a number of workers; it follows segments as they are made.

    Balls that shrink and subscriptions that end leave it as it is until it is made anew: some
    objects are sent in vain, none is missing.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.keys = 0
        self.words = empty_map(1)

    def add(self, rows: SubscriptionRows, circles: CircleIndex) -> None:
        """Note the circles of a segment's rows, at the workers of their parts."""
        self._put([self._posts(rows, circles)])

    def rebuild(self, parts: Iterable[tuple[SubscriptionRows, CircleIndex]]) -> None:
        """Make it anew, with room to grow."""
        posts = [self._posts(rows, circles) for rows, circles in parts]
        self.keys = 0
        self.words = empty_map(2 * max(sum(keys for *_, keys in posts), 1 << 10))
        self._put(posts)

    @property
    def crowded(self) -> bool:
        """Whether so many keys are in it that it tells little."""
        return 4 * self.keys > self.words.size * 64 // 3

    def _posts(self, rows: SubscriptionRows, circles: CircleIndex) -> tuple:  # type: ignore[type-arg]
        post_row, post_term = cover_posts(rows, counts_among_rows(rows))
        lon, lat, _ = read_points(rows)
        boxes = circles_to_boxes(lon, lat, circles.radius)
        offsets, cells = cells_of_ranges(
            boxes_to_ranges(boxes), MAX_LEVEL - CELL_LEVEL, MOST_SCOPES
        )
        keys = int(np.diff(offsets)[post_row].sum())
        return post_row, post_term, circles.partition.owner % self.workers, offsets, cells, keys

    def _put(self, parts: Iterable[tuple]) -> None:  # type: ignore[type-arg]
        for post_row, post_term, owner, offsets, cells, keys in parts:
            balls_into_map(
                read_only(post_row),
                read_only(post_term),
                read_only(owner),
                read_only(offsets),
                read_only(cells),
                CELLS,
                self.words,
            )
            self.keys += keys
