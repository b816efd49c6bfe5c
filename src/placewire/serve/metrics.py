"""Measure throughput and latency, and render Prometheus metrics."""

from __future__ import annotations

import bisect
import time
from collections import Counter, deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from placewire import __version__
from placewire.serve import Unavailable
from placewire.serve.ledger import Ledger, ResultEntry
from placewire.status import Exposition, labelled

if TYPE_CHECKING:
    from placewire.serve.gateway import Gateway


METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
QUANTILES = {"p50": "0.5", "p99": "0.99"}

WINDOW_S = 10.0  # the window of rates and latencies
MAX_SAMPLES = 4_096
MAX_WRITES = 65_536


class LedgerCounts(NamedTuple):
    """Counters read from the ledger."""

    counts: dict[str, int]
    webhooks: dict[str, int]


def read_counts(ledger: Ledger) -> LedgerCounts | None:
    """Read the ledger's counters; None while it is unavailable. Call it in a thread."""
    try:
        return LedgerCounts(ledger.counts(), ledger.deliveries.count())
    except Unavailable:
        return None


def render_metrics(gateway: Gateway, counted: LedgerCounts | None) -> str:
    """Render all metrics of a gateway. Call it in the gateway's event loop."""
    out = Exposition()
    add_gateway(out, gateway)
    out.gauge("ledger_up", "1 if the ledger can be read", counted is not None)
    if counted is not None:
        add_ledger(out, *counted)
    return out.text()


def add_gateway(out: Exposition, gateway: Gateway) -> None:
    """Add the gateway's own metrics, counted since it started."""
    health = gateway.health()
    out.gauge("info", "version of the service", {(("version", __version__),): 1})
    out.gauge("up", "1 if the service is healthy", health["status"] == "ok")
    out.gauge("pipeline_up", "1 if the pipeline is running", health["pipeline"] == "running")
    out.counter(
        "events_accepted", "events accepted and written to the journal", gateway.accepted.total
    )
    out.counter("events_rejected", "invalid events, rejected", gateway.rejections.events)
    refused = {str(status): n for status, n in sorted(gateway.rejections.requests.items())}
    out.counter("requests_refused", "rejected requests by HTTP status", labelled("status", refused))
    out.gauge("journal_seq", "seq of the next event", health["seq"])
    out.gauge("committed_seq", "seq up to which events are committed", gateway.committed_seq)
    out.gauge("lag_events", "events accepted but not committed", health["lag_events"])
    committer = gateway.committer
    out.counter(
        "journal_writes", "writes to the journal, each for a group of requests", committer.writes
    )
    out.counter("journal_lines", "lines written to the journal", committer.lines)
    out.gauge("streams", "open streams and sockets", gateway.broadcaster.listeners)
    out.counter(
        "stream_results", "results sent to streams and sockets", gateway.broadcaster.delivered
    )
    out.gauge("webhooks_under_way", "webhook deliveries in progress", gateway.webhooks.in_progress)
    latency = gateway.latency.quantiles_ms()
    took = {QUANTILES[name]: ms / 1e3 for name, ms in latency.items() if ms is not None}
    out.gauge(
        "latency_seconds", "time from an event's write to its results in the ledger, last 10 s",
        labelled("quantile", took),
    )  # fmt: skip


def add_ledger(out: Exposition, counts: dict[str, int], webhooks: dict[str, int]) -> None:
    """Add the ledger's metrics, counted since it was created."""

    def counted(name: str) -> int:
        return counts.get(name, 0)

    out.counter("results", "results numbered in the ledger", counted("position"))
    dropped = {
        "throttled": counted("throttled"),
        "stray": counted("strays"),
        "forgotten": counted("forgotten"),
        "webhook ended": counted("webhook_left"),
    }
    out.counter(
        "results_dropped",
        "results dropped: by a throttle, of an unknown subscription, past their retention,"
        " or waiting for a webhook that ended",
        labelled("why", dropped),
    )
    out.gauge("webhooks", "active webhooks", webhooks["webhooks"])
    out.counter("webhook_attempts", "webhook requests sent", counted("webhook_attempts"))
    out.counter("webhook_failures", "webhook requests that failed", counted("webhook_failures"))
    out.counter("webhook_results", "results delivered to webhooks", counted("webhook_delivered"))
    out.counter(
        "webhook_given_up", "results given up after all retries", counted("webhook_given_up")
    )
    out.gauge("webhook_pending", "results waiting for webhooks", webhooks["pending"])
    out.gauge("dead_deliveries", "dead deliveries that are kept", webhooks["dead_deliveries"])
    out.gauge("dead_results", "results in dead deliveries", webhooks["dead_results"])


class RateMeter:
    """Events per second over the last seconds."""

    def __init__(self) -> None:
        self.total = 0
        self._begun_s: float | None = None  # when the first event was counted
        self._counts: deque[tuple[int, int]] = deque(maxlen=int(WINDOW_S) + 1)

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
        """The mean rate of the window, or since the first event if that is shorter."""
        if self._begun_s is None:
            return 0.0
        now = time.monotonic()
        first = int(now - WINDOW_S) + 1
        seen = sum(count for second, count in self._counts if second >= first)
        return seen / max(1.0, now - max(first, self._begun_s))


class RejectionCounts:
    """Counts of rejected events, and of rejected requests by HTTP status."""

    def __init__(self) -> None:
        self.events = 0
        self.requests: Counter[int] = Counter()


class LatencyMeter:
    """Time from an event's write to the journal until its results are in the ledger."""

    def __init__(self) -> None:
        self._seqs: list[int] = []
        self._times: list[float] = []
        self._samples: deque[tuple[float, float]] = deque(maxlen=MAX_SAMPLES)

    def on_written(self, first_seq: int) -> None:
        self._seqs.append(first_seq)
        self._times.append(time.monotonic())
        if len(self._seqs) > 2 * MAX_WRITES:
            del self._seqs[:MAX_WRITES], self._times[:MAX_WRITES]

    def on_results(self, entries: Iterable[ResultEntry]) -> None:
        now = time.monotonic()
        for entry in entries:
            at = bisect.bisect_right(self._seqs, entry.seq) - 1
            if at >= 0:
                self._samples.append((now, now - self._times[at]))

    def quantiles_ms(self) -> dict[str, float | None]:
        """Median and 99th percentile of the window; None without samples."""
        before = time.monotonic() - WINDOW_S
        recent = sorted(took for at, took in self._samples if at >= before)
        if not recent:
            return {"p50": None, "p99": None}
        return {
            "p50": round(1e3 * recent[len(recent) // 2], 1),
            "p99": round(1e3 * recent[min(len(recent) - 1, int(0.99 * len(recent)))], 1),
        }
