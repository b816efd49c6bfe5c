"""The gateway: the parts that serve requests, on one state directory; snapshot queries."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from placewire.batch.coordinator import check_same
from placewire.explainer.subscription import SubscriptionHistory, SubscriptionPeriod
from placewire.ingest.admission import Admission
from placewire.ingest.sources import identify_journal
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.settings import Settings, complete_settings
from placewire.model.times import DAY_US, format_timestamp
from placewire.objects.sections import find_latest
from placewire.queries.snapshot import Snapshot
from placewire.segments.segment import SubscriptionCounts
from placewire.serve import Refused, Unavailable
from placewire.serve.auth import KEY_CACHE_S, LOCAL, Authenticator, Caller, RateLimiter
from placewire.serve.group_commit import NO_KEY, GroupCommitter, IdempotencyKey, WriteRequest
from placewire.serve.http.connection import DEFAULT_LIMITS, ConnectionLimits
from placewire.serve.http.live_feed import LiveFeed
from placewire.serve.http.streams import Broadcaster
from placewire.serve.intake import BulkLines, JournalLine, drop_time_jumps, restore_clock
from placewire.serve.ledger import (
    LEDGER_FILE,
    Ledger,
    ResultEntry,
    SubscriptionChange,
    SubscriptionRow,
    bind_ledger,
    is_postgres,
    open_ledger,
)
from placewire.serve.ledger.recorder import ResultRecorder
from placewire.serve.ledger.rows import read_head
from placewire.serve.metrics import LatencyMeter, RateMeter, RejectionCounts
from placewire.serve.pipeline import heartbeat_path
from placewire.serve.webhooks.dispatcher import RetryPolicy, WebhookDispatcher
from placewire.serve.webhooks.sender import Sender
from placewire.storage.journal import JournalReader, JournalWriter, journal_folder
from placewire.storage.layout import StateDir, keep_lexicon, open_lexicon
from placewire.storage.manifest import Manifest, read_latest
from placewire.storage.runtime_files import Server, make_url, write_server

MAX_DETAILS = 100  # ids per lookup


class SnapshotQueries:
    """Reads the latest manifest that the gateway knows. Call it in threads; it locks."""

    def __init__(self, state: StateDir, latest: Callable[[], Manifest | None]) -> None:
        self.state = state
        self.latest = latest
        self._journal = JournalReader(journal_folder(state))
        self._snapshot: Snapshot | None = None
        self._lock = threading.Lock()

    def answer(self, query: dict[str, Any], with_data: bool) -> dict[str, Any]:
        """Answer a query; raises InvalidEvent."""
        with self._lock:
            return self._open().answer(query, with_data)

    def details(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Position and text of objects by id, for the first ids that are kept.

        If several objects share an id, the latest counts.
        """
        with self._lock:
            found = find_latest(self._open().sections, islice(names, MAX_DETAILS))
        details: dict[str, dict[str, Any]] = {}
        for name, (seq, lon, lat) in found.items():
            details[name] = {"seq": seq, "lon": lon, "lat": lat}
            event = self.object_at(seq)
            if event is not None:
                details[name]["text"] = event["text"]
        return details

    def object_at(self, seq: int) -> dict[str, Any] | None:
        """The object at an event, if the journal still has it."""
        line = self._journal.read(seq)
        try:
            event = msgspec.json.decode(line) if line is not None else None
        except msgspec.DecodeError:
            return None
        return event if isinstance(event, dict) and event.get("type") == "object" else None

    def objects_of(self, entry: ResultEntry) -> dict[str, Any]:
        """Position and text of the objects that a result adds, as far as they are kept."""
        names = read_head(entry.body).new_objects
        found: dict[str, Any] = {}
        event = self.object_at(entry.seq) if names else None
        if event is not None and event["id"] in names:
            facts = {name: event[name] for name in ("lon", "lat", "text")}
            found[event["id"]] = {"seq": entry.seq, **facts}
        # Objects from before: a subscription has just started, or another one left the window.
        earlier = [name for name in names if name not in found]
        return found | (self.details(earlier) if earlier else {})

    def _open(self) -> Snapshot:
        latest = self.latest()
        if self._snapshot is None:
            self._snapshot = Snapshot(self.state.root)
        seen = self._snapshot.manifest
        if latest is not None and (seen is None or seen.batch < latest.batch):
            self._snapshot.refresh()
        return self._snapshot


START_TIMEOUT_S = 120.0  # a pipeline without a heartbeat is starting until then
HEARTBEAT_TIMEOUT_S = 10.0  # a pipeline without a heartbeat is away after that


class GatewayOptions(NamedTuple):
    """Options of the gateway process."""

    state: Path
    settings: Settings
    host: str = "127.0.0.1"
    port: int = 7878
    ledger: str = ""  # a PostgreSQL URL; empty: a file in the state directory
    require_keys: bool = False
    rate: float = 0.0  # events per second and key; 0: unlimited
    keep_us: int = 7 * DAY_US  # retention of results
    hosts: tuple[str, ...] = ()
    allow_private: bool = False  # allow webhooks to private addresses
    renew_ledger: bool = False  # continue with a ledger that lacks collected results
    connection_limits: ConnectionLimits = DEFAULT_LIMITS
    retries: RetryPolicy = RetryPolicy()


class Gateway:
    """What request handlers call. Create it in its event loop, and `close` it when that ends."""

    def __init__(self, options: GatewayOptions) -> None:
        self.options = options
        self._started_at = time.time()
        self._heartbeat_s = time.monotonic()  # when the last heartbeat was seen
        self.loop = asyncio.get_running_loop()
        self.state = StateDir(options.state.absolute())
        self.state.open()
        self.settings = complete_settings(options.settings)
        keep_lexicon(self.state, self.settings)
        self.manifest = read_latest(self.state)
        folder = journal_folder(self.state)
        writer = JournalWriter(folder)
        try:
            if self.manifest is not None:
                check_same(self.state, self.manifest, self.settings, identify_journal(folder))
            self.ledger: Ledger = open_ledger(options.ledger or self.state.root / LEDGER_FILE)
            self.renewed = bind_ledger(
                self.ledger, self.state, writer.next_seq, options.renew_ledger
            )
        except Unusable:
            writer.close()
            raise
        self.admission = Admission(self.settings, open_lexicon(self.state, self.settings))
        self.admission.now_us = self._written_us = restore_clock(
            self.admission, self.manifest, folder
        )
        self._pending_us: dict[int, int] = {}  # latest event time of each request being written
        self.committer = GroupCommitter(writer, self.ledger, self._written_us)
        self.authenticator = Authenticator(self.ledger, options.require_keys, options.hosts)
        self.rate_limiter = RateLimiter(options.rate)
        self.broadcaster = Broadcaster()
        self.live_feed = LiveFeed(self)
        self.accepted, self.objects, self.results = RateMeter(), RateMeter(), RateMeter()
        self.rejections = RejectionCounts()
        self.latency = LatencyMeter()
        self.queries = SnapshotQueries(self.state, lambda: self.manifest)
        self._census = SubscriptionCounts(self.state)
        self._live_subscriptions = 0
        self._counted_batch = -1
        self.recorder = ResultRecorder(self.state, self.ledger, self._on_recorded, options.keep_us)
        self.recorder.start()
        self.webhooks = WebhookDispatcher(
            self.ledger, Sender(options.allow_private), options.retries
        )
        self.webhooks.start()
        self._watching = self.loop.create_task(self._watch_keys())
        ledger = "postgresql" if is_postgres(options.ledger) else "file"
        write_server(self.state, Server(make_url(options.host, options.port), ledger))

    def close_streams(self, name: str) -> None:
        """Close the open streams of a key that was removed."""
        self.broadcaster.end(name)
        self.live_feed.end(name)

    async def _watch_keys(self) -> None:
        """Close streams whose key was removed, by polling the ledger."""
        while True:
            await asyncio.sleep(KEY_CACHE_S)
            open_now = (self.broadcaster.callers() | self.live_feed.callers()) - {LOCAL}
            if not open_now:
                continue
            with contextlib.suppress(Unavailable):
                keys = await asyncio.to_thread(self.ledger.all_keys)
                for name in open_now - {key.name for key in keys}:
                    self.close_streams(name)

    async def stop(self) -> None:
        """Shut down in order: finish webhook deliveries in progress first."""
        self._watching.cancel()
        await self.webhooks.stop()
        self.close()

    def close(self) -> None:
        self.authenticator.close()
        self.committer.close()
        self.recorder.close()
        self.ledger.close()

    # Events in.

    def second_admission(self) -> Admission:
        """Another validator for use in a thread; its clock is ignored."""
        return Admission(self.settings, self.admission.lexicon)

    def screen_bulk(self, caller: Caller, bulk: BulkLines) -> BulkLines:
        """Drop lines whose times jump too far ahead; rejected lines count for the rate limit."""
        bulk = drop_time_jumps(bulk, self.admission)
        self.rejections.events += bulk.rejected
        self.rate_limiter.take(caller.name, bulk.rejected)
        return bulk

    async def accept(
        self,
        caller: Caller,
        lines: list[JournalLine],
        changes: list[SubscriptionChange] | None = None,
        idempotency_key: IdempotencyKey = NO_KEY,
    ) -> dict[str, Any]:
        """Write lines to the journal; returns the reply with their first `seq`.

        Raises InvalidEvent if a time jumps too far ahead, and Refused. There is no await before the
        request is queued, so the clock sees lines in the order in which they are written.
        """
        self.rate_limiter.take(caller.name, len(lines))
        before = self.admission.now_us
        try:
            for line in lines:
                self.admission.advance(line.ts_us)
        except InvalidEvent:
            self.admission.now_us = before
            raise
        latest = max(line.ts_us for line in lines)
        request = WriteRequest(
            [line.line for line in lines],
            caller.name,
            changes or (),
            idempotency_key,
            latest_us=latest,
            any_owner=caller.scope is None,
        )
        self._pending_us[id(request)] = latest
        written = False
        try:
            reply = await self.committer.commit(request)
            written = not request.repeated
        finally:
            del self._pending_us[id(request)]
            if written:
                self._written_us = max(latest, self._written_us or latest)
            else:
                self._rewind_clock()
        if not written:
            return reply
        self.latency.on_written(int(reply["seq"]))
        self.accepted.add(len(lines))
        if not changes:
            self.objects.add(len(lines))
        return reply

    def _rewind_clock(self) -> None:
        """Undo the clock advance of a request that failed."""
        times = [*self._pending_us.values()]
        if self._written_us is not None:
            times.append(self._written_us)
        self.admission.now_us = max(times, default=None)

    # Results out.

    def _on_recorded(self, manifest: Manifest, entries: list[ResultEntry] | None) -> None:
        """Called by the recorder, in its thread."""
        self.loop.call_soon_threadsafe(self._publish, manifest, entries)

    def _publish(self, manifest: Manifest, entries: list[ResultEntry] | None) -> None:
        self.manifest = manifest
        if entries is None:
            # An attempt that seemed to fail has recorded them: readers find them in the ledger.
            self.broadcaster.mark_all_missed()
            self.webhooks.wake_idle()
        else:
            self.results.add(len(entries))
            self.latency.on_results(entries)
            self.broadcaster.publish(entries)
            self.webhooks.on_results(entries)
        self.live_feed.on_commit(manifest)

    def find_subscription(self, caller: Caller, name: str) -> SubscriptionRow:
        """A subscription that the caller may see; raises Refused. Call it in a thread."""
        subscription = self.ledger.find(name, caller.scope)
        if subscription is None:
            raise Refused(404, f"subscription {name[:256]!r}: is not known")
        return subscription

    def history_of(self, caller: Caller, name: str) -> SubscriptionHistory:
        """The lifetimes of one of the caller's ids; raises Refused. Call it in a thread."""
        self.find_subscription(caller, name)
        past, since = self.ledger.history_of(name, caller.scope)
        decode = msgspec.json.decode
        lifetimes = [
            SubscriptionPeriod(one.seq, one.end_seq, one.how, decode(one.body)) for one in past
        ]
        return SubscriptionHistory(lifetimes, since)

    @property
    def committed_seq(self) -> int:
        return self.manifest.next_seq if self.manifest is not None else 0

    def pipeline_status(self) -> str:
        """The pipeline's state by its heartbeat file: running, starting or away."""
        try:
            beat = heartbeat_path(self.state).stat().st_mtime
        except OSError:
            beat = -math.inf
        if time.time() - beat < HEARTBEAT_TIMEOUT_S:
            self._heartbeat_s = time.monotonic()
            return "running"
        silent_s = time.monotonic() - self._heartbeat_s
        # A killed pipeline leaves its heartbeat file behind; a new one removes it.
        away = beat > self._started_at or silent_s > START_TIMEOUT_S
        return "away" if away else "starting"

    def health(self) -> dict[str, Any]:
        """Health of the service, as `/health` returns it."""
        from placewire import __version__

        pipeline = self.pipeline_status()
        trouble = self.committer.failed or self.committer.writer.broken or self.recorder.failed
        if not trouble and pipeline == "away":
            trouble = "the pipeline is down; accepted events wait for it"
        seq = self.committer.writer.next_seq
        return {
            "status": trouble or "ok",
            "seq": seq,
            "committed_seq": self.committed_seq,
            "lag_events": seq - self.committed_seq,
            "pipeline": pipeline,
            "version": __version__,
        }

    def figures(self) -> dict[str, Any]:
        """Current counters and rates."""
        health = self.health()
        manifest = self.manifest
        return {
            "now": self.now_text(),
            **{name: health[name] for name in ("seq", "committed_seq", "lag_events", "pipeline")},
            "results": self.results.total,
            "objects_per_s": round(self.objects.per_s(), 1),
            "results_per_s": round(self.results.per_s(), 1),
            "latency_ms": self.latency.quantiles_ms(),
            "streams": self.broadcaster.listeners,
            "subscriptions": self.count_live(),
            "workers": (manifest.leaf_plan.workers or 1) if manifest is not None else 1,
        }

    def count_live(self) -> int:
        """Live subscriptions of all owners at the last commit whose files still exist."""
        manifest = self.manifest
        if manifest is not None and manifest.batch != self._counted_batch:
            with contextlib.suppress(Unusable):
                self._live_subscriptions = sum(self._census.count(manifest).values())
                self._counted_batch = manifest.batch
        return self._live_subscriptions

    def now_text(self) -> str | None:
        now_us = self.admission.now_us
        return None if now_us is None else format_timestamp(now_us)


def open_gateway(options: GatewayOptions) -> Gateway:
    """Open the gateway on a state directory; raises Unusable."""
    try:
        return Gateway(options)
    except OSError as error:
        raise Unusable(f"state {options.state}: cannot be used: {error}") from None
