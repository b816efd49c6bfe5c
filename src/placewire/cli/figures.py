"""Figures of a run, batch by batch: how much, how fast, how late."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from placewire.kernels.directory import bits_to_mask
from placewire.state.arrays import open_arrays
from placewire.state.layout import StateDir
from placewire.state.manifest import Counters, Manifest
from placewire.state.segment import open_segment

RECENT_S = 3.0


class Moment(NamedTuple):
    """The totals at a commit."""

    at_s: float
    counters: Counters


class Figures:
    """What a dashboard shows of the run; matching begins with the first object."""

    def __init__(self, state: StateDir, total_events: int, at_s: float) -> None:
        self.state = state
        self.total_events = total_events
        self.manifest: Manifest | None = None
        self.live = 0
        self.updates = 0  # of the results; those of no other kind are matches
        self.reports = 0
        self.answers = 0
        self.started_s = at_s
        self.matching_from: Moment | None = None
        self.moments = deque([Moment(at_s, Counters())])
        self.latencies_s: list[float] = []
        self._batch_from_s = at_s

    @property
    def counters(self) -> Counters:
        return self.moments[-1].counters

    @property
    def matches(self) -> int:
        return self.counters.results - self.updates - self.reports - self.answers

    def commit(self, manifest: Manifest, at_s: float) -> None:
        """Take in a committed batch."""
        before = self.moments[-1]
        if self.matching_from is None and manifest.counters.objects:
            self.matching_from = before
            self.moments = deque([before])
            self.latencies_s = []
        self.manifest = manifest
        self.live = count_live(self.state, manifest)
        self.updates += manifest.updates.updates if manifest.updates else 0
        self.reports += manifest.reports.lines if manifest.reports else 0
        self.answers += manifest.answers.lines if manifest.answers else 0
        self.moments.append(Moment(at_s, manifest.counters))
        while len(self.moments) > 2 and self.moments[1].at_s < at_s - RECENT_S:
            self.moments.popleft()
        self.latencies_s.append(at_s - self._batch_from_s)

    def begin_batch(self, at_s: float) -> None:
        """The next batch begins: what was done since the commit is not part of its latency."""
        self._batch_from_s = at_s

    def recent(self, name: str) -> float:
        """A counter's rate a second, lately."""
        return rate(name, self.moments[0], self.moments[-1])

    def mean(self, name: str) -> float:
        """A counter's rate a second since matching began."""
        return rate(name, self.matching_from or self.moments[0], self.moments[-1])

    def matching_s(self) -> float:
        """How long matching has taken."""
        return self.moments[-1].at_s - self.matching_from.at_s if self.matching_from else 0.0

    def latency_s(self, percent: float) -> float:
        """A percentile of the batches' latencies in this phase."""
        return float(np.percentile(self.latencies_s, percent)) if self.latencies_s else 0.0


def rate(name: str, first: Moment, last: Moment) -> float:
    """How much a counter grew a second between two moments."""
    grown = getattr(last.counters, name) - getattr(first.counters, name)
    return float(grown) / max(last.at_s - first.at_s, 1e-3)


def count_live(state: StateDir, manifest: Manifest) -> int:
    """The subscriptions that have neither ended nor expired after a batch."""
    live = 0
    for entry in manifest.segments:
        standing = open_segment(state.file(entry.name)).rows.expires_us > (manifest.now_us or 0)
        if entry.dead is not None:
            bits = open_arrays(state.file(entry.dead)).arrays["bits"]
            standing &= ~bits_to_mask(bits, entry.rows)
        live += int(np.count_nonzero(standing))
    return live
