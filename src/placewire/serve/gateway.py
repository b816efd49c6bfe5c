"""The gateway: everything that answers requests, put together over one state directory."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from placewire.engine.admitting import Admission
from placewire.engine.census import Census
from placewire.engine.origin import check_same
from placewire.engine.reading import name_journal
from placewire.engine.spells import History, Spell
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.settings import Settings, with_identity
from placewire.model.times import format_timestamp
from placewire.serve.auth import KNOWN_S, LOCAL, Access, Caller, Rates
from placewire.serve.errors import Refused, Unavailable
from placewire.serve.group_commit import NO_REPEAT, Committer, Repeat, Request
from placewire.serve.http.connection import PATIENT, Patience
from placewire.serve.http.live_feed import Live
from placewire.serve.http.streams import Hub
from placewire.serve.intake import Bulk, Incoming, wind_clock, without_leaps
from placewire.serve.ledger import Change, Entry, Held, Ledger, is_postgres, open_ledger
from placewire.serve.ledger.identity import bind
from placewire.serve.ledger.recorder import Keeper
from placewire.serve.metrics import Latency, Rate, Refusals
from placewire.serve.pipeline import beat_path
from placewire.serve.queries import Asking
from placewire.serve.webhooks.dispatcher import Retries, Webhooks
from placewire.serve.webhooks.sender import Sender
from placewire.state.journal import JournalReader, journal_folder
from placewire.state.journalwriter import JournalWriter
from placewire.state.layout import StateDir
from placewire.state.lexicons import keep_lexicon, open_lexicon
from placewire.state.manifest import Manifest, read_latest
from placewire.state.serving import Server, address_of, note_server

DAY_US = 86_400_000_000
STARTS_S = 120.0  # that a pipeline may take to begin
STALE_S = 10.0  # without a word from the pipeline it is said to be away


class GatewayOptions(NamedTuple):
    """How the gateway is run."""

    state: Path
    settings: Settings
    host: str = "127.0.0.1"
    port: int = 7878
    ledger: str = ""  # a URL of PostgreSQL; otherwise a file in the state
    require_keys: bool = False
    rate: float = 0.0  # events a second for each key; 0: no limit
    keep_us: int = 7 * DAY_US  # results
    hosts: tuple[str, ...] = ()
    allow_private: bool = False  # webhooks to private addresses
    renew_ledger: bool = False  # if it lacks results that are swept
    patience: Patience = PATIENT
    retries: Retries = Retries()


class Gateway:
    """What handlers of requests use. Made in its event loop; `close` when that ends."""

    def __init__(self, options: GatewayOptions) -> None:
        self.options = options
        self._begun_at = time.time()
        self._beaten_s = time.monotonic()  # when the pipeline was last seen to live
        self.loop = asyncio.get_running_loop()
        self.state = StateDir(options.state.absolute())
        self.state.open()
        self.settings = with_identity(options.settings)
        keep_lexicon(self.state, self.settings)
        self.manifest = read_latest(self.state)
        folder = journal_folder(self.state)
        writer = JournalWriter(folder)
        try:
            if self.manifest is not None:
                check_same(self.state, self.manifest, self.settings, name_journal(folder))
            self.ledger: Ledger = open_ledger(options.ledger or self.state.root / "ledger.sqlite")
            self.renewed = bind(self.ledger, self.state, writer.next_seq, options.renew_ledger)
        except Unusable:
            writer.close()
            raise
        self.admission = Admission(self.settings, open_lexicon(self.state, self.settings))
        self.admission.now_us = self._written_us = self._clock(folder)
        self._asked: dict[int, int] = {}  # latest times of requests that are being written
        self.committer = Committer(writer, self.ledger, self._written_us)
        self.journal = JournalReader(folder)
        self.access = Access(self.ledger, options.require_keys, options.hosts)
        self.rates = Rates(options.rate)
        self.hub = Hub()
        self.live = Live(self)
        self.accepted, self.objects, self.results = Rate(), Rate(), Rate()
        self.refusals = Refusals()
        self.latency = Latency()
        self.queries = Asking(self.state, self.journal)
        self._census = Census(self.state)
        self._live_subscriptions = 0
        self._counted_batch = -1
        self.keeper = Keeper(self.state, self.ledger, self._told, options.keep_us)
        self.keeper.start()
        self.webhooks = Webhooks(self.ledger, Sender(options.allow_private), options.retries)
        self.webhooks.start()
        self._watching = self.loop.create_task(self._watch_keys())
        ledger = "postgresql" if is_postgres(options.ledger) else "file"
        note_server(self.state, Server(address_of(options.host, options.port), ledger))

    def end_caller(self, name: str) -> None:
        """End what a key has open, now that it is not one any more."""
        self.hub.end(name)
        self.live.end(name)

    async def _watch_keys(self) -> None:
        """Look now and then whether keys that have something open are still keys."""
        while True:
            await asyncio.sleep(KNOWN_S)
            open_now = (self.hub.callers() | self.live.callers()) - {LOCAL}
            if not open_now:
                continue
            with contextlib.suppress(Unavailable):
                keys = await asyncio.to_thread(self.ledger.all_keys)
                for name in open_now - {key.name for key in keys}:
                    self.end_caller(name)

    async def stop(self) -> None:
        """Close in good order: what webhooks have under way first."""
        self._watching.cancel()
        await self.webhooks.stop()
        self.close()

    def close(self) -> None:
        self.access.close()
        self.committer.close()
        self.keeper.close()
        self.ledger.close()

    def _clock(self, folder: Path) -> int | None:
        """The clock after all that the journal has: what is committed, and the rest."""
        return wind_clock(self.admission, self.manifest, folder)

    # In.

    def spare_admission(self) -> Admission:
        """A second one, for a thread of its own; its clock is not looked at."""
        return Admission(self.settings, self.admission.lexicon)

    def sift(self, caller: Caller, bulk: Bulk) -> Bulk:
        """A bulk as it can be accepted at this moment; what is refused counts for the rate."""
        bulk = without_leaps(bulk, self.admission)
        self.refusals.events += bulk.rejected
        self.rates.take(caller.name, bulk.rejected)
        return bulk

    async def accept(
        self,
        caller: Caller,
        lines: list[Incoming],
        changes: list[Change] | None = None,
        repeat: Repeat = NO_REPEAT,
    ) -> dict[str, Any]:
        """Write lines to the journal; gives the reply with their first `seq`.

        Raises InvalidEvent if a time leaps, and Refused. From here to the queue of the journal
        nothing waits, so that the clock sees lines in the order in which they are written.
        """
        self.rates.take(caller.name, len(lines))
        before = self.admission.now_us
        try:
            for line in lines:
                self.admission.advance(line.ts_us)
        except InvalidEvent:
            self.admission.now_us = before
            raise
        latest = max(line.ts_us for line in lines)
        request = Request(
            [line.line for line in lines],
            caller.name,
            changes or (),
            repeat,
            latest_us=latest,
            every=caller.scope is None,
        )
        self._asked[id(request)] = latest
        written = False
        try:
            reply = await self.committer.commit(request)
            written = not request.repeated
        finally:
            del self._asked[id(request)]
            if written:
                self._written_us = max(latest, self._written_us or latest)
            else:
                self._set_clock_back()
        if not written:
            return reply
        self.latency.note_written(int(reply["seq"]))
        self.accepted.add(len(lines))
        if not changes:
            self.objects.add(len(lines))
        return reply

    def _set_clock_back(self) -> None:
        """The clock without a request that came to nothing: by what is written or may yet be."""
        times = [*self._asked.values()]
        if self._written_us is not None:
            times.append(self._written_us)
        self.admission.now_us = max(times, default=None)

    # Out.

    def _told(self, manifest: Manifest, entries: list[Entry] | None) -> None:
        """Called by the keeper, in its thread."""
        self.loop.call_soon_threadsafe(self._hear, manifest, entries)

    def _hear(self, manifest: Manifest, entries: list[Entry] | None) -> None:
        self.manifest = manifest
        if entries is None:
            self.hub.miss_all()  # the ledger has them, from a try that seemed to fail
            self.webhooks.look_again()
        else:
            self.results.add(len(entries))
            self.latency.note_results(entries)
            self.hub.publish(entries)
            self.webhooks.hear(entries)
        self.live.hear(manifest)

    def answer(self, query: dict[str, Any], with_data: bool) -> dict[str, Any]:
        """The answer to a query as of the last commit; for threads. Raises InvalidEvent."""
        return self.queries.answer(self.manifest, query, with_data)

    def details(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """What is known of objects that a list names; for threads."""
        return self.queries.details(self.manifest, names)

    def object_at(self, seq: int) -> dict[str, Any] | None:
        """The object of an event, if that is one and the journal still has it; for threads."""
        return self.queries.object_at(seq)

    def find_own(self, caller: Caller, name: str) -> Held:
        """A subscription that a caller may see; raises Refused. For threads."""
        held = self.ledger.find(name, caller.scope)
        if held is None:
            raise Refused(404, f"subscription {name[:256]!r}: is not known")
        return held

    def history_of(self, caller: Caller, name: str) -> History:
        """What an id of the caller's was, and when; raises Refused. For threads."""
        self.find_own(caller, name)
        past, since = self.ledger.spells_of(name, caller.scope)
        decode = msgspec.json.decode
        spells = [Spell(one.seq, one.end_seq, one.how, decode(one.body)) for one in past]
        return History(spells, since)

    @property
    def committed_seq(self) -> int:
        return self.manifest.next_seq if self.manifest is not None else 0

    def pipeline_status(self) -> str:
        """Whether the pipeline has said lately that it lives, or may yet say so."""
        try:
            beat = beat_path(self.state).stat().st_mtime
        except OSError:
            beat = -math.inf
        if time.time() - beat < STALE_S:
            self._beaten_s = time.monotonic()
            return "running"
        silent_s = time.monotonic() - self._beaten_s
        # One that was killed leaves its last beat behind; one that starts takes it away.
        away = beat > self._begun_at or silent_s > STARTS_S
        return "away" if away else "starting"

    def health(self) -> dict[str, Any]:
        """How the service is."""
        from placewire import __version__

        pipeline = self.pipeline_status()
        trouble = self.committer.failed or self.committer.writer.broken or self.keeper.failed
        if not trouble and pipeline == "away":
            trouble = "the pipeline is away; what is accepted waits for it"
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
        """The figures of the moment."""
        health = self.health()
        manifest = self.manifest
        return {
            "now": self.now_text(),
            **{name: health[name] for name in ("seq", "committed_seq", "lag_events", "pipeline")},
            "results": self.results.total,
            "objects_per_s": round(self.objects.per_s(), 1),
            "results_per_s": round(self.results.per_s(), 1),
            "latency_ms": self.latency.quantiles_ms(),
            "streams": self.hub.listeners,
            "subscriptions": self.count_live(),
            "workers": manifest.plan.get("workers", 1) if manifest is not None else 1,
        }

    def count_live(self) -> int:
        """Everybody's live subscriptions, as of the last commit whose files are still there."""
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
    """The gateway over a state; raises Unusable."""
    try:
        return Gateway(options)
    except OSError as error:
        raise Unusable(f"state {options.state}: cannot be used: {error}") from None
