"""Index relevant subscriptions as the engine does, and match blocks of objects against it.

Rows whose threshold sinks below what the index was made with get an index of their own.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from bench.papers.skype.store import clock
from placewire.kernels.ids import mark_bits
from placewire.kinds.relevant.index import GROUPS, LEAF_ROWS, build_groups
from placewire.kinds.relevant.kernels.groups import ALL_PRUNINGS, GroupIndex
from placewire.kinds.relevant.kernels.score import RelevanceBlock
from placewire.kinds.relevant.match import Relevance, find_relevant
from placewire.model.subscriptions import SubscriptionRows, take_slices

MOST_LIFTED = 0.1  # of all rows, before the whole index is rebuilt
NOBODY = np.empty(0, np.int64)
NO_BITS = np.empty(0, np.uint64)


class Indexing(NamedTuple):
    """How the index is made and searched."""

    groups: int = GROUPS
    leaf_rows: int = LEAF_ROWS
    prunings: int = ALL_PRUNINGS
    dropping: bool = True


USUAL = Indexing()


class Index:
    """An index of all rows, and one of those whose threshold has sunk since it was made."""

    def __init__(
        self, rows: SubscriptionRows, theta: np.ndarray, indexing: Indexing = USUAL
    ) -> None:
        self.rows = rows
        self.indexing = indexing
        self.seconds = 0.0
        started = clock()
        self._make(theta)
        self.made_s = clock() - started

    def _build(self, theta: np.ndarray, picked: np.ndarray | None) -> GroupIndex:
        how = self.indexing
        return build_groups(
            self.rows,
            theta,
            picked=picked,
            groups=how.groups,
            leaf_rows=how.leaf_rows,
            dropping=how.dropping,
        )

    def _make(self, theta: np.ndarray) -> None:
        self.theta = theta.copy()
        self.main = self._build(self.theta, None)
        self.lifted = NOBODY
        self.dead = NO_BITS
        self.young: GroupIndex | None = None

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.main)

    def follow(self, theta: np.ndarray) -> None:
        """Reindex rows that the index would not find any more."""
        started = clock()
        sunk = np.flatnonzero(theta < self.theta)
        if sunk.size:
            lifted = np.union1d(self.lifted, sunk)
            if lifted.size > MOST_LIFTED * self.rows.total:
                self._make(theta)
            else:
                self.lifted = lifted
                self.dead = np.zeros(self.rows.total // 64 + 1, np.uint64)
                mark_bits(self.dead, lifted)
                self.theta[lifted] = theta[lifted]
                self.young = self._build(self.theta, lifted)
        self.seconds += clock() - started

    def find(self, block: RelevanceBlock, theta: np.ndarray) -> Relevance:
        """Every pair that reaches its threshold."""
        prunings = self.indexing.prunings
        found = [find_relevant(block, self.rows, self.main, theta, self.dead, prunings)]
        if self.young is not None:
            found.append(find_relevant(block, self.rows, self.young, theta, prunings=prunings))
        return join_found(found)


def cut_block(block: RelevanceBlock, picked: np.ndarray) -> RelevanceBlock:
    """Some objects of a block."""
    offsets, at = take_slices(block.term_offsets, picked)
    return RelevanceBlock(
        block.codes[picked],
        block.lon[picked],
        block.lat[picked],
        block.now_us[picked],
        offsets,
        block.terms[at],
        block.norms[picked],
    )


def find_on_threads(
    index: Index, block: RelevanceBlock, theta: np.ndarray, threads: ThreadPoolExecutor | None
) -> Relevance:
    """Match a block, half of its objects on each of two threads."""
    if threads is None:
        return index.find(block, theta)
    halves = [np.arange(half, block.lon.size, 2) for half in range(2)]
    shares = [cut_block(block, half) for half in halves]
    found = threads.map(lambda share: index.find(share, theta), shares)
    return join_found(
        [
            part._replace(object=half[part.object].astype(np.uint32))
            for half, part in zip(halves, found, strict=True)
        ]
    )


def join_found(parts: list[Relevance]) -> Relevance:
    if len(parts) == 1:
        return parts[0]
    columns = [np.concatenate(column) for column in list(zip(*parts, strict=True))[:3]]
    return Relevance._make([*columns, np.sum([part.counters for part in parts], axis=0)])
