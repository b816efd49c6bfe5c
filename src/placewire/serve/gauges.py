"""Gauges: how fast events come and results go, and how long it takes from one to the other."""

from __future__ import annotations

import bisect
import time
from collections import Counter, deque
from collections.abc import Iterable

from placewire.serve.ledger import Entry

SPAN_S = 10.0  # that rates and latencies are of
MOST_SAMPLES = 4_096
MOST_WRITES = 65_536


class Rate:
    """How many a second, lately: counts by the second."""

    def __init__(self) -> None:
        self.total = 0
        self._begun_s: float | None = None  # when the first was counted
        self._counts: deque[tuple[int, int]] = deque(maxlen=int(SPAN_S) + 1)

    def add(self, count: int) -> None:
        self.total += count
        now = time.monotonic()
        if self._begun_s is None:
            self._begun_s = now
        second = int(now)
        if self._counts and self._counts[-1][0] == second:
            count += self._counts.pop()[1]
        self._counts.append((second, count))

    def per_s(self) -> float:
        """The mean of the last seconds; at the beginning, of those since the first was counted."""
        if self._begun_s is None:
            return 0.0
        now = time.monotonic()
        first = int(now - SPAN_S) + 1
        seen = sum(count for second, count in self._counts if second >= first)
        return seen / max(1.0, now - max(first, self._begun_s))


class Refusals:
    """What was not accepted: events that were wrong, and requests by the status they got."""

    def __init__(self) -> None:
        self.events = 0
        self.requests: Counter[int] = Counter()


class Latency:
    """From the moment an event was on disk to the moment its results were in the ledger."""

    def __init__(self) -> None:
        self._seqs: list[int] = []
        self._times: list[float] = []
        self._samples: deque[tuple[float, float]] = deque(maxlen=MOST_SAMPLES)

    def note_written(self, first_seq: int) -> None:
        self._seqs.append(first_seq)
        self._times.append(time.monotonic())
        if len(self._seqs) > 2 * MOST_WRITES:
            del self._seqs[:MOST_WRITES], self._times[:MOST_WRITES]

    def note_results(self, entries: Iterable[Entry]) -> None:
        now = time.monotonic()
        for entry in entries:
            at = bisect.bisect_right(self._seqs, entry.seq) - 1
            if at >= 0:
                self._samples.append((now, now - self._times[at]))

    def quantiles_ms(self) -> dict[str, float | None]:
        """The median and the 99th percentile of the last seconds, if there is anything."""
        before = time.monotonic() - SPAN_S
        lately = sorted(took for at, took in self._samples if at >= before)
        if not lately:
            return {"p50": None, "p99": None}
        return {
            "p50": round(1e3 * lately[len(lately) // 2], 1),
            "p99": round(1e3 * lately[min(len(lately) - 1, int(0.99 * len(lately)))], 1),
        }
