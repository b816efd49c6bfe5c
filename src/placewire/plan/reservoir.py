"""The reservoir: a sample of the objects seen so far, for the next plan."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placewire.model.subscriptions import concat_offsets, take_slices

CAPACITY = 100_000
WAITING_SHARE = 16  # one in so many of the capacity may wait

Columns = tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint64]]


class Reservoir:
    """At most `capacity` objects (cell code, distinct terms), each seen one as likely as any.

    The first ones are all kept; then each newcomer replaces a random one with the chance that
    keeps the sample fair. The seed makes it the same in every run of the same blocks. While
    `fading` is set every newcomer gets in, so that the sample follows what comes and forgets what
    was long ago.

    To take in one object copies all of them, so newcomers wait until they are worth it.
    """

    def __init__(self, capacity: int = CAPACITY, seed: int = 0) -> None:
        self.capacity = capacity
        self.seen = 0
        self.fading = False
        self._codes = np.empty(0, np.uint32)
        self._term_offsets = np.zeros(1, np.int64)
        self._terms = np.empty(0, np.uint64)
        self._waiting: list[Columns] = []
        self._waiting_objects = 0
        self._random = np.random.default_rng(seed)

    def add(
        self,
        codes: NDArray[np.uint32],
        term_offsets: NDArray[np.int64],
        terms: NDArray[np.uint64],
    ) -> None:
        """Take in a block of objects; its arrays, which may be mapped from a file, are copied."""
        self.seen += int(codes.size)
        self._waiting.append((codes.copy(), term_offsets.copy(), terms.copy()))
        self._waiting_objects += int(codes.size)
        if self._waiting_objects * WAITING_SHARE >= self.capacity:
            self._take_in()

    def in_order(self) -> Columns:
        """The objects in code order: codes, term offsets, terms."""
        self._take_in()
        order = np.argsort(self._codes, kind="stable")
        offsets, at = take_slices(self._term_offsets, order)
        return self._codes[order], offsets, self._terms[at]

    def _take_in(self) -> None:
        """Give those that wait their places."""
        if self._waiting_objects == 0:
            return
        codes, offsets, terms = zip(*self._waiting, strict=True)
        chosen, slots = self._choose(self._waiting_objects)
        self._waiting, self._waiting_objects = [], 0
        if chosen.size == 0:
            return
        # Where each slot's object comes from, the old ones first; the last newcomer wins a slot.
        origin = np.arange(max(self._codes.size, int(slots.max()) + 1))
        origin[slots] = self._codes.size + chosen
        whole_offsets = concat_offsets([self._term_offsets, *offsets])
        self._term_offsets, at = take_slices(whole_offsets, origin)
        self._codes = np.concatenate([self._codes, *codes])[origin]
        self._terms = np.concatenate([self._terms, *terms])[at]

    def _choose(self, newcomers: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which of the latest so many objects are kept, and the slots that they get."""
        room = self.capacity - int(self._codes.size)
        early = np.arange(min(room, newcomers))
        late = np.arange(early.size, newcomers)
        if not self.fading:
            ordinals = self.seen - newcomers + late
            late = late[self._random.random(late.size) * (ordinals + 1) < self.capacity]
        slots = self._random.integers(0, self.capacity, late.size)
        return np.concatenate([early, late]), np.concatenate([self._codes.size + early, slots])


def choose_evenly(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most so many of the rows, at even steps."""
    if rows.size <= most:
        return rows
    return rows[np.arange(most) * rows.size // most]
