"""Routing to workers among whom postings of `relevant` subscriptions are dealt out, by terms.

A worker gets an object if it has a posting under one of its terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kinds.relevant.index import TermPartition
from placewire.model.subscriptions import SubscriptionRows, take_slices
from placewire.plans.kernels.nearest import WIDE_CELL, balls_into_map, objects_to_ball_workers
from placewire.plans.route.live_terms import empty_map
from placewire.plans.route.protocol import RoutedShare

ONE_CELL = 1  # places do not count
NO_PLACE = 0


class TermRoute:
    """The router: a map of the terms that each worker has postings under."""

    def __init__(self, workers: int, words: NDArray[np.uint64]) -> None:
        self.workers = workers
        self.words = read_only(words)

    def cut(
        self,
        codes: NDArray[np.uint32],
        term_offsets: NDArray[np.int64],
        terms: NDArray[np.uint64],
    ) -> Iterator[RoutedShare]:
        """The shares of all workers that have a term of any of a block's objects, in code order."""
        offsets, objects = objects_to_ball_workers(
            read_only(np.zeros(codes.size, np.uint32)),
            read_only(term_offsets),
            read_only(terms),
            self.words,
            self.workers,
            ONE_CELL,
            NO_PLACE,
        )
        for worker in np.flatnonzero(np.diff(offsets)).tolist():
            picked = objects[offsets[worker] : offsets[worker + 1]]
            share_offsets, at = take_slices(term_offsets, picked)
            every, alone = np.ones(at.size, np.uint8), np.zeros(picked.size, np.uint8)
            yield RoutedShare(worker, picked, share_offsets, terms[at], every, alone)


class LiveLiterals:
    """The map for a number of workers; it follows segments as they are made.

    Rows that end leave it as it is until it is made anew: some objects are sent in vain.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.keys = 0
        self.words = empty_map(1)

    def add(self, rows: SubscriptionRows, dealt: TermPartition) -> None:
        """Note the terms of a segment's postings, at the workers of their parts."""
        posted = dealt.owner >= 0
        terms, owner = rows.literal_term[posted], dealt.owner[posted] % self.workers
        balls_into_map(
            read_only(np.arange(terms.size)),
            read_only(terms),
            read_only(owner.astype(np.int32)),
            read_only(np.arange(terms.size + 1)),
            read_only(np.full(terms.size, WIDE_CELL, np.int64)),
            ONE_CELL,
            self.words,
        )
        self.keys += int(terms.size)

    def rebuild(self, parts: Iterable[tuple[SubscriptionRows, TermPartition]]) -> None:
        """Make it anew, with room to grow."""
        all_parts = list(parts)
        keys = sum(int(dealt.owner.size) for _, dealt in all_parts)
        self.keys = 0
        self.words = empty_map(2 * max(keys, 1 << 10))
        for rows, dealt in all_parts:
            self.add(rows, dealt)

    @property
    def crowded(self) -> bool:
        """Whether so many keys are in it that it tells little."""
        return 4 * self.keys > self.words.size * 64 // 3
