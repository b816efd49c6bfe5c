"""The reservoir: a fair sample of all objects seen so far, for the next plan."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placewire.model.subscriptions import concat_offsets, take_slices

CAPACITY = 100_000


class Reservoir:
    """At most `capacity` objects (cell code, distinct terms), each seen one as likely as any.

    The first ones are all kept; then each newcomer replaces a random one with the chance that
    keeps the sample fair. The seed makes it the same in every run of the same blocks.
    """

    def __init__(self, capacity: int = CAPACITY, seed: int = 0) -> None:
        self.capacity = capacity
        self.seen = 0
        self.codes = np.empty(0, np.uint32)
        self.term_offsets = np.zeros(1, np.int64)
        self.terms = np.empty(0, np.uint64)
        self._random = np.random.default_rng(seed)

    def add(
        self,
        codes: NDArray[np.uint32],
        term_offsets: NDArray[np.int64],
        terms: NDArray[np.uint64],
    ) -> None:
        """Take in a block of objects."""
        ordinals = np.arange(self.seen, self.seen + codes.size)
        self.seen += int(codes.size)
        room = self.capacity - int(self.codes.size)
        chosen = np.arange(min(room, codes.size))
        slots = self.codes.size + chosen
        late = np.arange(chosen.size, codes.size)
        late = late[self._random.random(late.size) * (ordinals[late] + 1) < self.capacity]
        chosen = np.concatenate([chosen, late])
        slots = np.concatenate([slots, self._random.integers(0, self.capacity, late.size)])
        if chosen.size == 0:
            return
        # Where each slot's object comes from, the old ones first; the last newcomer wins a slot.
        origin = np.arange(max(self.codes.size, int(slots.max()) + 1))
        origin[slots] = self.codes.size + chosen
        offsets, at = take_slices(concat_offsets([self.term_offsets, term_offsets]), origin)
        self.codes = np.concatenate([self.codes, codes])[origin]
        self.terms = np.concatenate([self.terms, terms])[at]
        self.term_offsets = offsets

    def in_order(self) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint64]]:
        """The objects in code order: codes, term offsets, terms."""
        order = np.argsort(self.codes, kind="stable")
        offsets, at = take_slices(self.term_offsets, order)
        return self.codes[order], offsets, self.terms[at]
