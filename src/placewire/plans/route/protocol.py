"""Routes: which workers must see an object, and what each of them probes.

The null one spreads objects evenly and lets each worker probe everything, as a system does that
keeps every subscription at every worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.space.cells import MAX_LEVEL
from placewire.model.subscriptions import take_slices
from placewire.plans.sample.sample import PLAN_LEVEL


class RoutedShare(NamedTuple):
    """A worker's share of a block: the objects' numbers, and what of them it probes.

    `probed` u8 marks the terms that this worker looks up, `alone` u8[k] the objects that it
    probes for subscriptions that need no term.
    """

    worker: int
    objects: NDArray[np.int64]
    term_offsets: NDArray[np.int64]
    terms: NDArray[np.uint64]
    probed: NDArray[np.uint8]
    alone: NDArray[np.uint8]


class Route(Protocol):
    """Cuts the objects of a block into shares."""

    def cut(
        self,
        codes: NDArray[np.uint32],
        term_offsets: NDArray[np.int64],
        terms: NDArray[np.uint64],
    ) -> Iterator[RoutedShare]:
        """The shares of all workers that must see any of a block's objects, in code order."""


class SpreadRoute:
    """Every worker knows everything: stretches of the block, one a worker."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def cut(
        self,
        codes: NDArray[np.uint32],
        term_offsets: NDArray[np.int64],
        terms: NDArray[np.uint64],
    ) -> Iterator[RoutedShare]:
        for worker, objects in enumerate(np.array_split(np.arange(codes.size), self.workers)):
            if objects.size:
                offsets, at = take_slices(term_offsets, objects)
                every, alone = np.ones(at.size, np.uint8), np.ones(objects.size, np.uint8)
                yield RoutedShare(worker, objects, offsets, terms[at], every, alone)


def leaves_to_ranges(
    box: NDArray[np.int32],
) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """Where each range of codes begins (ascending from 0) and the leaf that it belongs to.

    Goes down the quadtree level by level with the pairs of a cell and a leaf that touch; a cell
    touched by one leaf lies in it, because leaves tile the world.
    """
    leaf = np.arange(box.shape[0], dtype=np.int64)
    column = np.zeros(leaf.size, np.int64)
    row = np.zeros(leaf.size, np.int64)
    code = np.zeros(leaf.size, np.int64)
    starts, owners = [], []
    for level in range(PLAN_LEVEL + 1):
        # Pairs of one cell stand together: children are made in order, and filtered in order.
        first = np.flatnonzero(np.concatenate([[True], code[1:] != code[:-1]]))
        alone = np.diff(np.append(first, code.size)) == 1
        done = first[alone]
        starts.append(code[done] << (2 * (MAX_LEVEL - level)))
        owners.append(leaf[done])
        left = np.ones(code.size, np.bool_)
        left[done] = False
        if not left.any():
            break
        code, column, row, leaf = code[left], column[left], row[left], leaf[left]
        parts = []
        for child in range(4):
            c, r = 2 * column + (child & 1), 2 * row + (child >> 1)
            size = 1 << (PLAN_LEVEL - level - 1)
            west, south = c * size, r * size
            touches = (
                (box[leaf, 0] < west + size)
                & (box[leaf, 2] > west)
                & (box[leaf, 1] < south + size)
                & (box[leaf, 3] > south)
            )
            parts.append((4 * code + child, c, r, leaf, touches))
        kept = [tuple(column[part[4]] for column in part[:4]) for part in parts]
        code, column, row, leaf = (np.concatenate(columns) for columns in zip(*kept, strict=True))
        order = np.argsort(code, kind="stable")
        code, column, row, leaf = code[order], column[order], row[order], leaf[order]
    start, owner = np.concatenate(starts), np.concatenate(owners)
    order = np.argsort(start)
    start, owner = start[order], owner[order]
    changes = np.concatenate([[True], owner[1:] != owner[:-1]])
    return start[changes].astype(np.uint32), owner[changes].astype(np.int32)
