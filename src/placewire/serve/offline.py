"""Read and write a state directory without a server.

`OfflineReader` offers what a client reads from a server, whether the state is being served or not.
`OfflineWriter` takes events when no server runs, with the gateway's checks, journal and ledger.
Both act as admin: file permissions are the access control.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from placewire.batch.coordinator import check_same
from placewire.ingest.admission import Admission
from placewire.ingest.sources import identify_journal
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.settings import Settings
from placewire.serve import Refused
from placewire.serve.auth import LOCAL, make_key
from placewire.serve.client.calls import Declined
from placewire.serve.group_commit import (
    NO_KEY,
    GroupCommitter,
    IdempotencyKey,
    WriteRequest,
    digest_request,
    read_change,
)
from placewire.serve.intake import (
    JournalLine,
    complete_event,
    read_bulk,
    read_subscription,
    restore_clock,
)
from placewire.serve.ledger import (
    LEDGER_FILE,
    Ledger,
    ResultEntry,
    SubscriptionChange,
    bind_ledger,
    check_ledger,
    has_ledger,
    lost_ledger,
    mark_ledger,
    open_ledger,
)
from placewire.serve.ledger.rows import RESULT_TYPES
from placewire.status import open_state
from placewire.storage.journal import JournalReader, JournalWriter, journal_folder
from placewire.storage.layout import StateDir, open_lexicon
from placewire.storage.manifest import read_latest
from placewire.storage.runtime_files import read_server

POLL_S = 0.1  # between polls for new results
READ_RESULTS = 500
PAGE = 1_000
EVENT_TYPES = {"objects": "object", "subscriptions": "subscribe"}


class OfflineReader:
    """Read subscriptions, results and keys from the ledger of a state directory."""

    def __init__(self, root: Path, ledger: str = "", make: bool = False) -> None:
        if make:
            StateDir(root).open()
        self.state = open_state(root)
        if not ledger and read_server(self.state).ledger != "file":
            raise Unusable(f"state {root}: its ledger is in PostgreSQL, give --ledger URL")
        if not ledger and not (root / LEDGER_FILE).exists():
            if has_ledger(self.state):
                raise Unusable(lost_ledger(self.state))  # before a new ledger is created
            if not make:
                raise Unusable(f"state {root}: has no ledger; `placewire serve --state` makes one")
        self.ledger: Ledger = open_ledger(ledger or root / LEDGER_FILE)
        try:
            check_ledger(self.ledger, self.state)
            if make:
                mark_ledger(self.ledger, self.state)
        except Unusable:
            self.ledger.close()
            raise
        manifest = read_latest(self.state)
        self.now_us = manifest.now_us if manifest is not None else None

    def close(self) -> None:
        self.ledger.close()

    def subscription(self, id: str) -> dict[str, Any]:
        """One subscription; raises Declined."""
        subscription = self.ledger.find(id)
        if subscription is None:
            raise Declined(f"subscription {id!r}: is not known", 404)
        return subscription.shown(self.now_us)

    def subscriptions(self) -> Iterator[dict[str, Any]]:
        """All subscriptions, by id."""
        after = ""
        while some := self.ledger.list_subscriptions(None, after, PAGE):
            yield from (subscription.shown(self.now_us) for subscription in some)
            after = some[-1].id

    def standing(self, id: str) -> dict[str, Any]:
        """The current result of a ranked subscription; raises Declined."""
        self.subscription(id)
        subscription = self.ledger.find(id)
        found = subscription.standing if subscription is not None else None
        return dict(msgspec.json.decode(found)) if found else {}

    def tail(
        self,
        *ids: str,
        after: int | str = "latest",
        objects: bool = False,
        seconds: float | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Follow results, like `Client.tail`; raises Declined."""
        for name in ids:
            self.subscription(name)
        return self._follow(ids, after, objects, seconds)

    def _follow(
        self, ids: tuple[str, ...], after: int | str, objects: bool, seconds: float | None
    ) -> Iterator[dict[str, Any]]:
        one = self.ledger.find(ids[0]) if len(ids) == 1 else None
        last = self.ledger.position if one is None else one.numbers
        at = last if after == "latest" else int(after)
        if at > last:
            raise Declined(f"after: must be 0..{last} or 'latest', got {at}", 422)
        ends = None if seconds is None else time.monotonic() + seconds
        while True:
            entries = (
                self.ledger.results_after(None, at, READ_RESULTS)
                if one is None
                else self.ledger.results_of(one.account, at, READ_RESULTS)
            )
            for entry in entries:
                at = entry.position if one is None else entry.number
                if len(ids) < 2 or entry.subscription in ids:
                    yield self._describe(entry, objects)
            if not entries:
                if ends is not None and time.monotonic() >= ends:
                    return
                time.sleep(POLL_S)

    def _describe(self, entry: ResultEntry, objects: bool) -> dict[str, Any]:
        facts = {
            "number": entry.number,
            "position": entry.position,
            "subscription": entry.subscription,
            "id": entry.id,
            "result": msgspec.json.decode(entry.body),
        }
        return facts | ({"objects": self._read_object(entry)} if objects else {})

    def _read_object(self, entry: ResultEntry) -> dict[str, Any]:
        line = self._journal.read(entry.seq)
        event = msgspec.json.decode(line) if line is not None else {}
        if not RESULT_TYPES[entry.type].names_objects or event.get("type") != "object":
            return {}
        facts = {name: event[name] for name in ("lon", "lat", "text")}
        return {event["id"]: {"seq": entry.seq, **facts}}

    @cached_property
    def _journal(self) -> JournalReader:
        return JournalReader(journal_folder(self.state))

    def keys(self) -> list[dict[str, Any]]:
        return [{"name": key.name, "roles": list(key.roles)} for key in self.ledger.all_keys()]

    def add_key(self, name: str, roles: Iterable[str]) -> dict[str, Any]:
        """Create a key; raises Declined."""
        try:
            secret, key = make_key(name, tuple(roles))
        except Refused as error:
            raise Declined(error.why, error.status) from None
        if not self.ledger.add_key(key):
            raise Declined(f"key {name!r}: already exists", 409)
        return {"name": name, "roles": list(key.roles), "key": secret}

    def end_key(self, name: str) -> dict[str, Any]:
        """Delete a key; raises Declined."""
        if not self.ledger.end_key(name):
            raise Declined(f"key {name!r}: is not known", 404)
        return {"name": name}


class OfflineWriter:
    """Write objects and subscriptions to the journal, as its only writer."""

    def __init__(self, root: Path, ledger: str = "") -> None:
        self.state = open_state(root)
        folder = journal_folder(self.state)
        manifest = read_latest(self.state)
        if manifest is not None and not folder.exists():
            raise Unusable(f"state {root}: belongs to a replay or a run, which accepts no events")
        settings = manifest.settings if manifest is not None else Settings()
        writer = JournalWriter(folder)
        try:
            if manifest is not None:
                check_same(self.state, manifest, settings, identify_journal(folder))
            self.reader = OfflineReader(root, ledger, make=True)
            bind_ledger(self.reader.ledger, self.state, writer.next_seq)
        except Unusable:
            writer.close()
            raise
        self.admission = Admission(settings, open_lexicon(self.state, settings))
        now_us = restore_clock(self.admission, manifest, folder)
        self.committer = GroupCommitter(writer, self.reader.ledger, now_us)

    def close(self) -> None:
        self.committer.close()
        self.reader.close()

    def send(self, what: str, lines: bytes, key: str) -> dict[str, Any]:
        """Accept lines of objects or subscriptions once per idempotency key; raises Declined."""
        bulk = read_bulk(self.admission, lines, EVENT_TYPES[what])
        counts = bulk.counts()
        if not bulk.lines:
            raise Declined("no line was accepted", 422, counts)
        digest = digest_request("POST", f"/v1/{what}", lines)
        idempotency_key = IdempotencyKey(key, digest, lines.count(b"\n"))
        return {
            "first_seq": self._accept(bulk.lines, bulk.changes, idempotency_key)["seq"],
            **counts,
        }

    def subscribe(self, id: str | None = None, **subscription: Any) -> dict[str, Any]:
        """Create or replace a subscription; raises Declined."""
        fixed = {} if id is None else {"id": id}
        try:
            admitted = read_subscription(self.admission, subscription, **fixed)
        except InvalidEvent as error:
            raise Declined(str(error), 422) from None
        change = read_change(admitted.line)
        assert change is not None
        written = self._accept([JournalLine(admitted.line, admitted.ts_us)], [change])
        return {"id": change.id, "seq": written["seq"], "replaced": bool(written["replaced"])}

    def unsubscribe(self, id: str) -> dict[str, Any]:
        """End a subscription of any owner; raises Declined."""
        admitted = self.admission.admit(complete_event({}, "unsubscribe", id=id))
        line = JournalLine(admitted.line, admitted.ts_us)
        written = self._accept([line], [SubscriptionChange(0, id, "", ends=True)])
        return {"id": id, "seq": written["seq"]}

    def _accept(
        self,
        lines: list[JournalLine],
        changes: list[SubscriptionChange],
        idempotency_key: IdempotencyKey = NO_KEY,
    ) -> dict[str, Any]:
        before = self.admission.now_us

        async def commit() -> dict[str, Any]:
            request = WriteRequest(
                [line.line for line in lines],
                LOCAL,
                changes,
                idempotency_key,
                latest_us=max(line.ts_us for line in lines),
                any_owner=True,
            )
            return await self.committer.commit(request)

        try:
            for line in lines:
                self.admission.advance(line.ts_us)
            return asyncio.run(commit())
        except InvalidEvent as error:
            self.admission.now_us = before
            raise Declined(str(error), 422) from None
        except Refused as error:
            raise Declined(error.why, error.status, error.facts) from None
