"""The sliding window: its objects in order, and how its horizon moves through a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.ingest.clock import Advances, BlockFacts, object_seqs
from placewire.model.settings import Settings
from placewire.model.times import FAR_PAST_US
from placewire.objects.store import open_retained
from placewire.storage.layout import StateDir
from placewire.storage.manifest import StoreEntry

MOST_OBJECTS = 1 << 62  # no window has more
FADING = 0.8  # of what arrived and left before, with each batch
MOST_GROWTH = 2.0  # and least its inverse: a stream that swells or dries up does not go on so


class Moves(NamedTuple):
    """Events that move the horizon, and to where; the first is what was before the batch.

    An object has left the window when the horizon has reached it: its seq in a window of the last
    objects, its time in a window of time.
    """

    seq: NDArray[np.int64]
    horizon: NDArray[np.int64]

    def at(self, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """The horizon at events of the batch."""
        return self.horizon[np.searchsorted(self.seq, seqs, "right") - 1]


class SlidingWindow:
    """The window of the settings, after the last commit.

    In a window of the last objects their seqs are kept here, from the first time that a
    subscription needs them.
    """

    def __init__(self, settings: Settings, state: StateDir) -> None:
        self.state = state
        self.count = min(settings.window_count or 0, MOST_OBJECTS)
        self.length_us = settings.window_us or 0
        self.by_time = settings.window_us is not None
        self.seqs: NDArray[np.int64] | None = None  # of the objects in the window, ascending
        self.arrived = self.left = 0.0  # recently, in a window of time

    @property
    def growth(self) -> float:
        """How many objects arrive for each that leaves, by the last batches.

        In a window of the last objects as many arrive as leave; before it is full none leaves,
        and nothing is searched for again.
        """
        if not self.by_time or self.arrived == self.left:
            return 1.0
        ratio = self.arrived / self.left if self.left else MOST_GROWTH
        return float(np.clip(ratio, 1.0 / MOST_GROWTH, MOST_GROWTH))

    def skip(self) -> None:
        """A batch passes that no subscription follows: read the window again when one does."""
        self.seqs = None

    def load(self, store: Sequence[StoreEntry], before_seq: int) -> NDArray[np.int64]:
        """The seqs of the window before an event, from the store if they are not known."""
        if self.seqs is None:
            parts = [np.empty(0, np.int64)]
            for entry in store:
                if entry.first_seq < before_seq:
                    parts.append(open_retained(self.state.file(entry.name)).seq)
            seqs = np.concatenate(parts)
            self.seqs = np.sort(seqs[seqs < before_seq])[-self.count :]
        return self.seqs

    def horizon(self, store: Sequence[StoreEntry], before_seq: int, now_us: int | None) -> int:
        """The horizon before an event."""
        if self.by_time:
            return FAR_PAST_US if now_us is None else now_us - self.length_us
        # What is not among the last objects has left; those before them are not known by number.
        seqs = self.load(store, before_seq)
        return int(seqs[0]) - 1 if seqs.size == self.count else -1

    def size(self, store: Sequence[StoreEntry], now_us: int | None) -> float:
        """About how many objects the window has or, if it goes by their number, may have."""
        if not self.by_time:
            return float(self.count)
        return 0.0 if now_us is None else count_between(store, now_us - self.length_us, now_us)

    def moves(
        self,
        store: Sequence[StoreEntry],
        first_seq: int,
        facts: Sequence[BlockFacts],
        advances: Advances,
    ) -> Moves:
        """How the horizon moves in the batch that begins with `first_seq`."""
        now_us = None if advances.before_us == FAR_PAST_US else advances.before_us
        start = self.horizon(store, first_seq, now_us)
        if self.by_time:
            seq, horizon = advances.seq, advances.to_us - self.length_us
            end = int(horizon[-1]) if horizon.size else start
            self.arrived = FADING * self.arrived + arrivals(facts).size
            self.left = FADING * self.left + count_between(store, start, end)
        else:
            before = self.load(store, first_seq)
            seq = arrivals(facts)
            both = np.concatenate([before, seq])
            leaving = np.arange(before.size, both.size) - self.count
            horizon = np.where(leaving >= 0, both[np.maximum(leaving, 0)], -1)
            self.seqs = both[-self.count :]
        return Moves(np.append(first_seq - 1, seq), np.append(start, horizon))


def count_between(store: Sequence[StoreEntry], after_us: int, to_us: int) -> float:
    """About how many objects of a store have a time in (after_us, to_us]."""
    total = 0.0
    for entry in store:
        within = min(entry.last_us, to_us) - max(entry.first_us - 1, after_us)
        if within > 0:
            total += entry.objects * within / (entry.last_us - entry.first_us + 1)
    return total


def arrivals(facts: Sequence[BlockFacts]) -> NDArray[np.int64]:
    """The seqs of the batch's objects, ascending, without those that the clock rejected."""
    parts = [np.empty(0, np.int64)]
    for fact in facts:
        rejected = np.isin(fact.arrays["object.event"], fact.clock.rejected_event)
        parts.append(np.sort(object_seqs(fact)[~rejected]))
    return np.concatenate(parts)
