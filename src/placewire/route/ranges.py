"""Leaves as key ranges: rectangles of plan cells to stretches of the space-filling curve."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.cells import MAX_LEVEL
from placewire.plan.sample import PLAN_LEVEL


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
