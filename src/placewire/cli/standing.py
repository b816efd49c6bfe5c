"""Standing results: the k nearest of a subscription, followed from update to update."""

from __future__ import annotations

from bisect import insort
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.state.arrays import open_arrays
from placewire.state.layout import StateDir
from placewire.state.manifest import Manifest


class Neighbour(NamedTuple):
    """An object in a result; they are ordered as results are."""

    distance_m: float
    seq: int


class Standing:
    """The result of one `nearest` subscription after the updates so far."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.neighbours: list[Neighbour] = []

    def enter(self, neighbour: Neighbour) -> Neighbour | None:
        """Take in what an update adds; gives what it drops."""
        insort(self.neighbours, neighbour)
        return self.neighbours.pop() if len(self.neighbours) > self.k else None


def updates_of(state: StateDir, manifest: Manifest, names: list[str]) -> list[list[Neighbour]]:
    """What entered the results of each of these subscriptions in a committed batch, by seq."""
    if manifest.updates is None:
        return [[] for _ in names]
    arrays = open_arrays(state.file(manifest.updates.file)).arrays
    offsets, ids = arrays["subscription_offsets"], arrays["subscription_bytes"]
    found = []
    for name in names:
        rows = rows_spelling(name.encode(), offsets, ids)
        metres = arrays["measure"][arrays["adds"][rows]]  # each adds one object
        pairs = zip(metres.tolist(), arrays["seq"][rows].tolist(), strict=True)
        found.append([Neighbour(*pair) for pair in pairs])
    return found


def rows_spelling(
    name: bytes, offsets: NDArray[np.int64], ids: NDArray[np.uint8]
) -> NDArray[np.intp]:
    """The rows whose id is `name`: by its length first, which leaves few."""
    rows = np.flatnonzero(np.diff(offsets) == len(name))
    letters = ids[offsets[:-1][rows][:, None] + np.arange(len(name))]
    same: NDArray[np.bool_] = (letters == np.frombuffer(name, np.uint8)).all(axis=1)
    return rows[same]
