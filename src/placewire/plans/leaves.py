"""A plan as data: leaves that tile the world, their parts by term, a worker for each part.

A leaf is a rectangle of plan cells. Most have one part; a leaf that is split by text has several,
and a term belongs to exactly one of them. So a place and a term always have exactly one worker, on
any data: that makes every plan correct, and its sample only makes it fast.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.model.arrays import I32, I64, U64, Array
from placewire.plans.sample.sample import SIDE

# What a router remembers of live subscriptions to drop objects: the terms posted in each cell of
# a router grid, in each leaf, or at each worker; or nothing, and every object goes to its worker.
NOTHING, BY_CELL, BY_LEAF, BY_WORKER = "nothing", "cell", "leaf", "worker"


class Leaves(NamedTuple):
    """The plan of `workers` workers, made by the method `name`.

    `box` i32[leaves, 4]: first column, first row, end column, end row (ends outside), in plan
    cells. Parts of leaf i are part_offsets[i]:part_offsets[i + 1], a worker each. Its listed terms
    are term_offsets[i]:term_offsets[i + 1], ascending, each with its part counted from the leaf's
    first; a term that is not listed goes by its hash.
    """

    name: str
    workers: int
    summary: str
    box: I32
    part_offsets: I64
    part_worker: I32
    term_offsets: I64
    terms: U64
    term_part: I32

    @property
    def total(self) -> int:
        return int(self.box.shape[0])


class TextSplit(NamedTuple):
    """How a leaf is cut by text: `parts` parts, and the part of each listed term."""

    parts: int
    terms: U64
    part: I32


NO_SPLIT = TextSplit(1, np.empty(0, np.uint64), np.empty(0, np.int32))


def make_leaves(
    name: str,
    workers: int,
    summary: str,
    boxes: list[tuple[int, int, int, int]],
    splits: list[TextSplit],
    part_workers: list[int],
) -> Leaves:
    """Put leaves together; `part_workers` has the workers of all parts in leaf order."""
    orders = [np.argsort(split.terms) for split in splits]
    lengths = [split.terms.size for split in splits]
    return Leaves(
        name=name,
        workers=workers,
        summary=summary,
        box=np.array(boxes, np.int32).reshape(-1, 4),
        part_offsets=np.cumsum([0, *(split.parts for split in splits)], dtype=np.int64),
        part_worker=np.array(part_workers, np.int32),
        term_offsets=np.cumsum([0, *lengths], dtype=np.int64),
        terms=np.concatenate(
            [s.terms[o] for s, o in zip(splits, orders, strict=True)] or [NO_SPLIT.terms]
        ),
        term_part=np.concatenate(
            [s.part[o] for s, o in zip(splits, orders, strict=True)] or [NO_SPLIT.part]
        ).astype(np.int32),
    )


def leaves_to_arrays(leaves: Leaves) -> dict[str, Array]:
    """The arrays of a plan file; its facts have name, workers and summary."""
    return {k: v for k, v in leaves._asdict().items() if isinstance(v, np.ndarray)}


def arrays_to_leaves(name: str, workers: int, summary: str, arrays: dict[str, Array]) -> Leaves:
    """The inverse of `leaves_to_arrays`."""
    return Leaves(name, workers, summary, *(arrays[field] for field in Leaves._fields[3:]))


def check_leaves(leaves: Leaves) -> None:
    """Raise ValueError unless the leaves tile the world and every part has a worker."""
    box = leaves.box
    if (box[:, :2] >= box[:, 2:]).any() or box.min(initial=0) < 0 or box.max(initial=0) > SIDE:
        raise ValueError(f"plan {leaves.name}: a leaf is empty or outside the world")
    if not tile_world(box):
        raise ValueError(f"plan {leaves.name}: the leaves do not cover the world once")
    for offsets in (leaves.part_offsets, leaves.term_offsets):
        if offsets.size != leaves.total + 1 or offsets[0] != 0 or (np.diff(offsets) < 0).any():
            raise ValueError(f"plan {leaves.name}: its offsets do not ascend from 0")
    if (np.diff(leaves.part_offsets) < 1).any():
        raise ValueError(f"plan {leaves.name}: a leaf has no part")
    if leaves.terms.size != leaves.term_offsets[-1] or leaves.term_part.size != leaves.terms.size:
        raise ValueError(f"plan {leaves.name}: its terms are not as many as it says")
    if (
        leaves.part_worker.size != leaves.part_offsets[-1]
        or ((leaves.part_worker < 0) | (leaves.part_worker >= leaves.workers)).any()
    ):
        raise ValueError(f"plan {leaves.name}: a part has no worker")
    parts = np.repeat(np.diff(leaves.part_offsets), np.diff(leaves.term_offsets))
    if ((leaves.term_part < 0) | (leaves.term_part >= parts)).any():
        raise ValueError(f"plan {leaves.name}: a term has no part")


def tile_world(box: I32) -> bool:
    """Whether boxes i32[n, 4] cover every plan cell exactly once.

    Corners with signs, + at two that face each other and - at the others, tell how many boxes
    cover each cell: running sums along both axes lead from the ones to the other. So boxes cover
    what the world covers if their corners come to the world's own four, and to nothing elsewhere.
    """
    whole = np.array([[0, 0, SIDE, SIDE]])
    edges = np.concatenate([box.astype(np.int64), whole])
    corners = edges[:, [0, 2, 0, 2]] * (SIDE + 1) + edges[:, [1, 1, 3, 3]]
    signs = np.tile([1.0, -1.0, -1.0, 1.0], (edges.shape[0], 1))
    signs[-1] *= -1.0
    _, place = np.unique(corners.reshape(-1), return_inverse=True)
    return not np.bincount(place, signs.reshape(-1)).any()
