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
FADING = 0.8  # weight of earlier arrivals and departures, per batch
MOST_GROWTH = 2.0  # and the minimum is its inverse: such a stream does not last


class Moves(NamedTuple):
    """Events that move the horizon, and where to; the first is the horizon before the batch.

    An object has left the window when the horizon has reached it: its seq in a window of the last
    N objects, its time in a window by time.
    """

    seq: NDArray[np.int64]
    horizon: NDArray[np.int64]

    def at(self, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the horizon at events of the batch."""
        return self.horizon[np.searchsorted(self.seq, seqs, "right") - 1]


class SlidingWindow:
    """The window of the settings, after the last commit.

    In a window of the last N objects, their seqs are stored here once a subscription needs them.
    """

    def __init__(self, settings: Settings, state: StateDir) -> None:
        self.state = state
        self.count = min(settings.window_count or 0, MOST_OBJECTS)
        self.length_us = settings.window_us or 0
        self.by_time = settings.window_us is not None
        self.seqs: NDArray[np.int64] | None = None  # of the objects in the window, ascending
        self.arrived = self.left = 0.0  # recently, in a window by time

    @property
    def growth(self) -> float:
        """Return how many objects arrived for each that left, over the last batches.

        In a window of the last N objects as many arrive as leave; before it is full none leaves,
        and nothing is searched again.
        """
        if not self.by_time or self.arrived == self.left:
            return 1.0
        ratio = self.arrived / self.left if self.left else MOST_GROWTH
        return float(np.clip(ratio, 1.0 / MOST_GROWTH, MOST_GROWTH))

    def skip(self) -> None:
        """Skip a batch that no subscription follows; the window is loaded again when needed."""
        self.seqs = None

    def load(self, store: Sequence[StoreEntry], before_seq: int) -> NDArray[np.int64]:
        """The seqs of the window before an event, read from the store if they are not known."""
        if self.seqs is None:
            parts = [np.empty(0, np.int64)]
            for entry in store:
                if entry.first_seq < before_seq:
                    parts.append(open_retained(self.state.file(entry.name)).seq)
            seqs = np.concatenate(parts)
            self.seqs = np.sort(seqs[seqs < before_seq])[-self.count :]
        return self.seqs

    def horizon(self, store: Sequence[StoreEntry], before_seq: int, now_us: int | None) -> int:
        """Return the horizon before an event."""
        if self.by_time:
            return FAR_PAST_US if now_us is None else now_us - self.length_us
        # Objects before the last N have left; their seqs are not kept.
        seqs = self.load(store, before_seq)
        return int(seqs[0]) - 1 if seqs.size == self.count else -1

    def size(self, store: Sequence[StoreEntry], now_us: int | None) -> float:
        """Estimate how many objects the window has; for one of the last N objects, return N."""
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
        """Return how the horizon moves in the batch that begins with `first_seq`."""
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
    """Estimate how many objects of a store have a time in (after_us, to_us]."""
    total = 0.0
    for entry in store:
        within = min(entry.last_us, to_us) - max(entry.first_us - 1, after_us)
        if within > 0:
            total += entry.objects * within / (entry.last_us - entry.first_us + 1)
    return total


def arrivals(facts: Sequence[BlockFacts]) -> NDArray[np.int64]:
    """Return the seqs of the batch's objects, ascending, without those that the clock rejected."""
    parts = [np.empty(0, np.int64)]
    for fact in facts:
        rejected = np.isin(fact.arrays["object.event"], fact.clock.rejected_event)
        parts.append(np.sort(object_seqs(fact)[~rejected]))
    return np.concatenate(parts)
