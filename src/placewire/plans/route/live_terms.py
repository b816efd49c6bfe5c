"""Live terms: a map of the terms that live subscriptions post in each scope.

Inserts are added at once. Rows that end stay in the map, so some objects are sent needlessly and
none is missed. The map is rebuilt from live rows once it has twice the keys it was sized for.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import MAX_LEVEL, boxes_to_ranges
from placewire.kinds.boolean.index import counts_among_rows, cover_posts
from placewire.model.arrays import I32, I64, U32, U64
from placewire.model.subscriptions import SubscriptionRows, lengths_to_offsets, take_slices
from placewire.plans.cost.tornado import make_grid
from placewire.plans.kernels.leaves import neighbours_overlapping_ranges
from placewire.plans.kernels.owners import ALL_LIVE, CELLS, LEAVES, WORKERS
from placewire.plans.kernels.term_maps import WIDE, LiveTables, cells_of_ranges, posts_into_maps
from placewire.plans.leaves import BY_CELL, BY_LEAF, BY_WORKER, NOTHING, Leaves
from placewire.plans.sample.sample import cells_of_boxes

MANNERS = {NOTHING: ALL_LIVE, BY_CELL: CELLS, BY_LEAF: LEAVES, BY_WORKER: WORKERS}
CELL_LEVEL = 8  # of the cells of BY_CELL: 1.4 x 0.7 degrees
MOST_SCOPES = 64  # a region that touches more is posted once, as wide
BITS_A_KEY = 12
LEAST_KEYS = 1 << 10
Scopes = tuple[I64, I32]


class Posts(NamedTuple):
    """Posts of some rows, the scopes of each row, and how many keys that makes in all and wide."""

    row: U32
    term: U64
    scope_offsets: I64
    scopes: I32
    keys: int
    wide: int


class LiveTerms:
    """The live terms under one plan."""

    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves
        self.manner = MANNERS[leaves.summary]
        self.leaf_map: LeafMap | None = None
        if self.manner in (LEAVES, WORKERS):
            self.leaf_map = make_leaf_map(leaves)
        self.scopes = {
            ALL_LIVE: 0,
            CELLS: 1 << (2 * CELL_LEVEL),
            LEAVES: leaves.total,
            WORKERS: leaves.workers,
        }[self.manner]
        self.clear(0)

    def move_to(self, leaves: Leaves) -> LiveTerms | None:
        """The same map for an adjusted plan; None if its scopes differ."""
        same = leaves.summary == self.leaves.summary and (
            self.manner in (ALL_LIVE, CELLS)
            or (self.manner == LEAVES and np.array_equal(leaves.box, self.leaves.box))
        )
        if not same:
            return None
        other = copy(self)
        other.leaves = leaves
        if other.leaf_map is not None:
            other.leaf_map = make_leaf_map(leaves)
        return other

    def clear(self, keys: int, wide_keys: int = 0) -> None:
        """Forget everything, and make room for so many keys."""
        self.keys = self.wide_keys = 0
        self.room = max(keys, LEAST_KEYS)
        self.wide_room = max(wide_keys, LEAST_KEYS)
        self.tables = LiveTables(
            empty_map(self.room),
            empty_map(self.wide_room) if wide_keys else np.zeros(1, np.uint64),
            np.zeros(self.scopes + 1, np.uint8),
        )

    @property
    def crowded(self) -> bool:
        """Whether the map has too many keys to be selective."""
        return self.keys > 2 * self.room or self.wide_keys > 2 * self.wide_room

    def add(self, rows: SubscriptionRows) -> None:
        """Add the terms under which an index of these rows posts them."""
        if self.manner == ALL_LIVE or rows.total == 0:
            return
        self._add(*self._posts(rows))

    def _posts(self, rows: SubscriptionRows) -> Posts:
        """Posts and the scopes of their rows, and how many keys they make, wide ones too."""
        post_row, post_term = cover_posts(rows, counts_among_rows(rows))
        offsets, scopes = self.scopes_of(rows)
        wide = int(np.count_nonzero(scopes[offsets[:-1][post_row]] == WIDE))
        keys = int(np.diff(offsets)[post_row].sum())
        return Posts(post_row, post_term, offsets, scopes, keys, wide)

    def _add(
        self, post_row: U32, post_term: U64, offsets: I64, scopes: I32, keys: int, wide: int
    ) -> None:
        if wide and self.tables.wide.size == 1:
            self.tables = self.tables._replace(wide=empty_map(self.wide_room))
        posts_into_maps(
            read_only(post_row),
            read_only(post_term),
            read_only(offsets),
            read_only(scopes),
            *self.tables,
        )
        self.keys += keys
        self.wide_keys += wide

    def rebuild(self, parts: Iterable[SubscriptionRows]) -> None:
        """Rebuild it from all live rows."""
        if self.manner == ALL_LIVE:
            return
        posts = [self._posts(rows) for rows in parts if rows.total]
        self.clear(sum(p.keys for p in posts), sum(p.wide for p in posts))
        for part in posts:
            self._add(*part)

    def scopes_of(self, rows: SubscriptionRows) -> Scopes:
        """The scopes that each row's region touches, WIDE alone where they are too many."""
        if self.manner == CELLS:
            ranges = boxes_to_ranges(read_only(rows.box))
            return cells_of_ranges(ranges, MAX_LEVEL - CELL_LEVEL, MOST_SCOPES)
        assert self.leaf_map is not None
        offsets, leaf = self.leaf_map.leaves_of_ranges(cells_of_boxes(rows.box))
        if self.manner == WORKERS:
            part_offsets, positions = take_slices(self.leaves.part_offsets, leaf.astype(np.int64))
            leaf = self.leaves.part_worker[positions]
            offsets = part_offsets[offsets]
        return narrow(offsets, leaf)


def narrow(offsets: I64, scopes: I32) -> Scopes:
    """The same with a row's scopes replaced by WIDE if there are too many."""
    lengths = np.diff(offsets)
    many = lengths > MOST_SCOPES
    if not many.any():
        return offsets, scopes
    kept = scopes[np.repeat(~many, lengths)]
    new_offsets = lengths_to_offsets(np.where(many, 1, lengths))
    out = np.full(int(new_offsets[-1]), WIDE, np.int32)
    out[np.repeat(~many, np.diff(new_offsets))] = kept
    return new_offsets, out


def empty_map(keys: int) -> U64:
    """A map with room for so many keys; never a single word, which stands for no map."""
    return np.zeros(BITS_A_KEY * keys // 64 + 2, np.uint64)


class LeafMap(NamedTuple):
    """The leaf of every fine cell and the fine box of every leaf.

    The fine grid has a line wherever a leaf ends and no other: each of its cells lies in one leaf
    whatever the plan, and the map is as small as it can be. `column_of` and `row_of` i32[SIDE] give
    the fine cell of a plan cell; `leaf_at` is i32[columns, rows]; `box` i32[leaves, 4] is in fine
    cells: first column, first row, end column, end row.
    """

    column_of: I32
    row_of: I32
    leaf_at: I32
    box: I32

    def leaves_of_points(self, columns: I32, rows: I32) -> I32:
        """The leaf of each plan cell."""
        return self.leaf_at[self.column_of[columns], self.row_of[rows]]

    def leaves_of_ranges(self, cells: I32) -> tuple[I64, I32]:
        """The leaves that each range of plan cells overlaps: offsets i64[m + 1] and leaves i32."""
        offsets, leaf, _ = self.search(cells)
        return offsets, leaf

    def search(self, cells: I32) -> tuple[I64, I32, int]:
        """The same, with the number of steps: at most 1 + 2 for each leaf and side of a range."""
        offsets, leaf, steps = neighbours_overlapping_ranges(
            read_only(self.column_of),
            read_only(self.row_of),
            read_only(self.leaf_at),
            read_only(self.box),
            read_only(np.ascontiguousarray(cells, np.int32)),
        )
        return offsets, leaf, int(steps)


def make_leaf_map(leaves: Leaves) -> LeafMap:
    """The map of leaves that tile the world."""
    box = leaves.box
    grid = make_grid(np.unique(box[:, 0::2]), np.unique(box[:, 1::2]))
    fine = np.empty_like(box)
    fine[:, 0::2] = np.searchsorted(grid.column_line, box[:, 0::2])
    fine[:, 1::2] = np.searchsorted(grid.row_line, box[:, 1::2])
    leaf_at = np.empty((grid.columns, grid.rows), np.int32)
    for leaf, (west, south, east, north) in enumerate(fine.tolist()):
        leaf_at[west:east, south:north] = leaf
    return LeafMap(grid.column_of, grid.row_of, leaf_at, fine)
