"""The census: how many subscriptions are live as of a commit, the expired left out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placewire.model.subscriptions import NEVER_US
from placewire.segments.segment import open_segments
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest, SegmentEntry


class SubscriptionCounts:
    """Counts again and again: what a segment says of expiry is looked up once, it never changes."""

    def __init__(self, state: StateDir) -> None:
        self.state = state
        self._expiring: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    def count(self, manifest: Manifest) -> dict[int, int]:
        """Live subscriptions by kind; raises Unusable if a file is gone."""
        live: dict[int, int] = {}
        for entry in manifest.segments:
            expired = 0 if manifest.now_us is None else self._expired(entry, manifest.now_us)
            live[entry.kind] = live.get(entry.kind, 0) + entry.rows - entry.ended - expired
        named = {entry.name for entry in manifest.segments}
        for name in self._expiring.keys() - named:
            del self._expiring[name]
        return live

    def _expired(self, entry: SegmentEntry, now_us: int) -> int:
        """Rows that have expired and were not ended before."""
        if entry.name not in self._expiring:
            self._expiring[entry.name] = self._look_up(entry)
        times, rows = self._expiring[entry.name]
        over = rows[: int(np.searchsorted(times, now_us, side="right"))]
        if over.size == 0 or entry.dead is None:
            return int(over.size)
        [(_, dead)] = open_segments(self.state, [entry])
        bits = dead[over >> 6] >> (over & 63).astype(np.uint64)
        return int(over.size - np.count_nonzero(bits & np.uint64(1)))

    def _look_up(self, entry: SegmentEntry) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """When rows expire, in order, and which they are; of those that ever do."""
        [(segment, _)] = open_segments(self.state, [entry])
        expires_us = segment.rows.expires_us
        rows = np.flatnonzero(expires_us != NEVER_US)
        rows = rows[np.argsort(expires_us[rows], kind="stable")]
        return expires_us[rows], rows
