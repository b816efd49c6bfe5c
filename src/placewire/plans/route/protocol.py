"""What a route does: find the workers that must see an object, and what each of them probes.

The null implementation spreads objects evenly and lets each worker probe everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from placewire.model.arrays import I64, U8, U64
from placewire.model.subscriptions import take_slices
from placewire.plans.kernels.term_maps import Objects


class RoutedShare(NamedTuple):
    """A worker's share of a block: the objects' numbers, and what of them it probes.

    `probed` u8 marks the terms that this worker looks up, `alone` u8[k] the objects that it
    probes for subscriptions that need no term.
    """

    worker: int
    objects: I64
    term_offsets: I64
    terms: U64
    probed: U8
    alone: U8


class Route(Protocol):
    """Cuts the objects of a block into shares."""

    def cut(self, objects: Objects) -> Iterator[RoutedShare]:
        """The shares of all workers that must see any of a block's objects, in code order."""


class SpreadRoute:
    """Gives each worker an equal run of the block's objects, to probe for everything."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def cut(self, objects: Objects) -> Iterator[RoutedShare]:
        for worker, picked in enumerate(np.array_split(np.arange(objects.total), self.workers)):
            if picked.size:
                offsets, at = take_slices(objects.term_offsets, picked)
                every, alone = np.ones(at.size, np.uint8), np.ones(picked.size, np.uint8)
                yield RoutedShare(worker, picked, offsets, objects.terms[at], every, alone)


class RouteRef(Protocol):
    """The route of objects to subscriptions of one kind, by the names of its files."""

    @property
    def workers(self) -> int:
        """How many workers there are."""

    def open(self, root: str) -> Route:
        """The router, its tables mapped."""

    def parts(self, worker: int, parts: int) -> Sequence[int]:
        """Which parts of a segment's index a worker probes."""
