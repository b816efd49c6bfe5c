"""Routes: which workers must see an object, and what each of them probes.

The null one spreads objects evenly and lets each worker probe everything, as a system does that
keeps every subscription at every worker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from placewire.model.subscriptions import take_slices


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


class RouteRef(Protocol):
    """The route of objects to subscriptions of one kind, by the names of its files."""

    @property
    def workers(self) -> int:
        """How many workers there are."""

    def open(self, root: str) -> Route:
        """The router, its tables mapped."""

    def parts(self, worker: int, parts: int) -> Sequence[int]:
        """Which parts of a segment's index a worker probes."""
