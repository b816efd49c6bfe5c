"""What a router knows of live subscriptions: a bitmap of the terms posted in each scope.

It follows inserts at once. Ends only make it too full, which sends some objects in vain, never too
few; it is made anew from the live rows once it holds twice the keys it was made for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.index.covers import counts_among_rows, cover_posts
from placewire.kernels.cells import MAX_LEVEL, boxes_to_ranges, ranges_coarsened
from placewire.kernels.jit import read_only
from placewire.kernels.routing import (
    ALL_LIVE,
    CELLS,
    LEAVES,
    WIDE,
    WORKERS,
    cells_of_ranges,
    posts_into_bits,
)
from placewire.model.subscriptions import SubscriptionRows, lengths_to_offsets, take_slices
from placewire.plan.leaves import BY_CELL, BY_LEAF, BY_WORKER, NOTHING, Leaves
from placewire.plan.sample import PLAN_LEVEL
from placewire.route.dominant import DominantRoute, make_dominant_route

MANNERS = {NOTHING: ALL_LIVE, BY_CELL: CELLS, BY_LEAF: LEAVES, BY_WORKER: WORKERS}
CELL_LEVEL = 8  # of the cells of BY_CELL: 1.4 x 0.7 degrees
MOST_SCOPES = 64  # a region that touches more is noted once, as wide
BITS_A_KEY = 16
LEAST_KEYS = 1 << 10

Scopes = tuple[NDArray[np.int64], NDArray[np.int32]]


class LiveTables(NamedTuple):
    """What routing reads: bitmaps u64 of a power of two bits, and `needless` u8[scopes + 1]."""

    bits: NDArray[np.uint64]
    wide_bits: NDArray[np.uint64]
    needless: NDArray[np.uint8]


class LiveTerms:
    """The live terms under one plan."""

    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves
        self.manner = MANNERS[leaves.summary]
        self.map: DominantRoute | None = None
        if self.manner in (LEAVES, WORKERS):
            self.map = make_dominant_route(leaves)
        self.scopes = {
            ALL_LIVE: 0,
            CELLS: 1 << (2 * CELL_LEVEL),
            LEAVES: leaves.total,
            WORKERS: leaves.workers,
        }[self.manner]
        self.clear(0)

    def clear(self, keys: int) -> None:
        """Forget everything, and make room for so many keys."""
        self.keys = 0
        self.room = max(keys, LEAST_KEYS)
        # Few regions are wide, most often none: their map is made when it is needed.
        self.tables = LiveTables(
            empty_bits(self.room), np.zeros(1, np.uint64), np.zeros(self.scopes + 1, np.uint8)
        )
        self.wide_keys = 0

    @property
    def crowded(self) -> bool:
        """Whether it is time to make it anew."""
        return self.keys > 2 * self.room

    def add(self, rows: SubscriptionRows) -> None:
        """Note the terms under which an index of these rows posts them."""
        if self.manner == ALL_LIVE or rows.total == 0:
            return
        post_row, post_term = cover_posts(rows, counts_among_rows(rows))
        offsets, scopes = self.scopes_of(rows)
        wide = int(np.count_nonzero(scopes[offsets[:-1][post_row]] == WIDE)) if scopes.size else 0
        if (self.wide_keys + wide) * BITS_A_KEY > self._wide_room():
            self._widen(2 * (self.wide_keys + wide))
        self.wide_keys += wide
        self.keys += posts_into_bits(
            read_only(post_row),
            read_only(post_term),
            read_only(offsets),
            read_only(scopes),
            self.tables.bits,
            shift_of(self.tables.bits),
            self.tables.wide_bits,
            shift_of(self.tables.wide_bits),
            self.tables.needless,
        )

    def _wide_room(self) -> int:
        """How many bits of wide keys there is room for; a single word stands for none."""
        return 64 * self.tables.wide_bits.size if self.tables.wide_bits.size > 1 else 0

    def _widen(self, keys: int) -> None:
        """A larger map of wide keys; the bits of the old one are repeated into it.

        A key's bit number is the top of its hash: each old bit stands for a run of new ones.
        """
        old = self.tables.wide_bits
        new = empty_bits(max(keys, LEAST_KEYS))
        if self.wide_keys:
            marks = np.unpackbits(old.view(np.uint8), bitorder="little")
            marks = np.repeat(marks, 64 * new.size // marks.size)
            new = np.packbits(marks, bitorder="little").view(np.uint64)
        self.tables = self.tables._replace(wide_bits=new)

    def rebuild(self, parts: Iterable[SubscriptionRows]) -> None:
        """Make it anew from all live rows."""
        parts = list(parts)
        self.clear(2 * sum(int(rows.literal_term.size) + rows.total for rows in parts))
        for rows in parts:
            self.add(rows)

    def scopes_of(self, rows: SubscriptionRows) -> Scopes:
        """The scopes that each row's region touches, WIDE alone where they are too many."""
        ranges = boxes_to_ranges(read_only(rows.box))
        if self.manner == CELLS:
            found: Scopes = cells_of_ranges(ranges, MAX_LEVEL - CELL_LEVEL, MOST_SCOPES)
            return found
        assert self.map is not None
        offsets, leaf = self.map.workers_of_ranges(ranges_coarsened(ranges, MAX_LEVEL - PLAN_LEVEL))
        if self.manner == WORKERS:
            part_offsets, positions = take_slices(self.leaves.part_offsets, leaf.astype(np.int64))
            leaf = self.leaves.part_worker[positions]
            offsets = part_offsets[offsets]
        return narrow(offsets, leaf)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self.tables._asdict()


def narrow(offsets: NDArray[np.int64], scopes: NDArray[np.int32]) -> Scopes:
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


def empty_bits(keys: int) -> NDArray[np.uint64]:
    """A bitmap of a power of two bits, enough for so many keys."""
    bits = 64
    while bits < BITS_A_KEY * keys:
        bits *= 2
    return np.zeros(bits // 64, np.uint64)


def shift_of(bits: NDArray[np.uint64]) -> np.uint64:
    """How far to shift a mixed key to number a bit of the map."""
    return np.uint64(64 - (int(bits.size) * 64).bit_length() + 1)
