"""Standing results: those of `nearest` and `relevant` subscriptions, followed by their updates."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.state.arrays import open_arrays
from placewire.state.layout import StateDir
from placewire.state.manifest import Manifest


class Update(NamedTuple):
    """An update as it is written: the objects by their ids, in the order of results."""

    seq: int
    add: list[tuple[str, float]]  # with how far, or how well they suit
    drop: list[str]


class Member(NamedTuple):
    """An object in a result, and by what it is there: a distance or a score."""

    measure: float
    seq: int
    object: str


class Change(NamedTuple):
    """What an update did to a result."""

    seq: int
    added: list[Member]
    dropped: list[Member]


class Standing:
    """The result of one subscription after the updates so far, the first of it first.

    `scored` ones have the highest score first and of equals the newer, others the least distance
    and of equals the older. Ids must be those of single objects, as in a generated log.
    """

    def __init__(self, scored: bool) -> None:
        self.scored = scored
        self.members: list[Member] = []

    def rank(self, member: Member) -> tuple[float, int]:
        """The place of a member in the order of results."""
        sign = -1 if self.scored else 1
        return sign * member.measure, sign * member.seq

    def apply(self, update: Update, seq_of: Callable[[str, int], int]) -> Change:
        """Take in an update; `seq_of` finds an object by its id, up to an event."""
        dropped = [member for member in self.members if member.object in update.drop]
        added = [Member(measure, seq_of(name, update.seq), name) for name, measure in update.add]
        self.members = [member for member in self.members if member not in dropped]
        for member in added:
            insort(self.members, member, key=self.rank)
        return Change(update.seq, added, dropped)


def updates_of(state: StateDir, manifest: Manifest, names: list[str]) -> list[list[Update]]:
    """The updates of each of these subscriptions in a committed batch, by seq."""
    if manifest.updates is None:
        return [[] for _ in names]
    arrays = open_arrays(state.file(manifest.updates.file)).arrays
    offsets, ids = arrays["subscription_offsets"], arrays["subscription_bytes"]
    return [
        [read_update(arrays, row) for row in rows_spelling(name.encode(), offsets, ids).tolist()]
        for name in names
    ]


def read_update(arrays: dict[str, NDArray[Any]], row: int) -> Update:
    """One update of a batch's file."""
    first, last = arrays["adds"][row : row + 2].tolist()
    metres_or_scores = arrays["measure"][first:last].tolist()
    added = names_of(arrays, "add", first, last)
    dropped = names_of(arrays, "drop", *arrays["drops"][row : row + 2].tolist())
    return Update(int(arrays["seq"][row]), list(zip(added, metres_or_scores, strict=True)), dropped)


def names_of(arrays: dict[str, NDArray[Any]], label: str, first: int, last: int) -> list[str]:
    """The ids of the objects `first` to `last` of those that were added or dropped."""
    ends = arrays[f"{label}.id_offsets"][first : last + 1].tolist()
    letters = arrays[f"{label}.id_bytes"]
    return [letters[a:b].tobytes().decode() for a, b in pairwise(ends)]


def rows_spelling(
    name: bytes, offsets: NDArray[np.int64], ids: NDArray[np.uint8]
) -> NDArray[np.intp]:
    """The rows whose id is `name`: by its length first, which leaves few."""
    rows = np.flatnonzero(np.diff(offsets) == len(name))
    letters = ids[offsets[:-1][rows][:, None] + np.arange(len(name))]
    same: NDArray[np.bool_] = (letters == np.frombuffer(name, np.uint8)).all(axis=1)
    return rows[same]
