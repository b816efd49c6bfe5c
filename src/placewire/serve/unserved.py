"""A state that nobody serves: events go to its journal without a server.

The same checks, the same journal and the same ledger as in the gateway; whoever can write the
files may do everything.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from placewire.batch.coordinator import check_same
from placewire.ingest.admission import Admission
from placewire.ingest.sources import name_journal
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.settings import Settings
from placewire.serve.access import LOCAL
from placewire.serve.binding import bind
from placewire.serve.books import Books
from placewire.serve.client.calls import Declined
from placewire.serve.committing import (
    NO_REPEAT,
    Committer,
    Repeat,
    Request,
    digest_of,
    read_change,
)
from placewire.serve.errors import Refused
from placewire.serve.incoming import (
    Incoming,
    complete,
    read_bulk,
    read_subscription,
    wind_clock,
)
from placewire.serve.ledger import Change
from placewire.status.status import open_state
from placewire.storage.journal import JournalWriter, journal_folder
from placewire.storage.layout import open_lexicon
from placewire.storage.manifest import read_latest

KINDS = {"objects": "object", "subscriptions": "subscribe"}


class Unserved:
    """Takes objects and subscriptions for a state, as its one writer."""

    def __init__(self, root: Path, ledger: str = "") -> None:
        self.state = open_state(root)
        folder = journal_folder(self.state)
        manifest = read_latest(self.state)
        if manifest is not None and not folder.exists():
            raise Unusable(f"state {root}: is of a replay or a run, which take no events like this")
        settings = Settings(**manifest.settings) if manifest is not None else Settings()
        writer = JournalWriter(folder)
        try:
            if manifest is not None:
                check_same(self.state, manifest, settings, name_journal(folder))
            self.books = Books(root, ledger, make=True)
            bind(self.books.ledger, self.state, writer.next_seq)
        except Unusable:
            writer.close()
            raise
        self.admission = Admission(settings, open_lexicon(self.state, settings))
        now_us = wind_clock(self.admission, manifest, folder)
        self.committer = Committer(writer, self.books.ledger, now_us)

    def close(self) -> None:
        self.committer.close()
        self.books.close()

    def send(self, what: str, lines: bytes, key: str) -> dict[str, Any]:
        """Take lines of objects or subscriptions, once under a key; raises Declined."""
        bulk = read_bulk(self.admission, lines, KINDS[what])
        told = {"accepted": len(bulk.lines), "rejected": bulk.rejected, "errors": bulk.errors}
        if not bulk.lines:
            raise Declined("no line was accepted", 422, told)
        digest = digest_of("POST", f"/v1/{what}", lines)
        repeat = Repeat(key, digest, lines.count(b"\n"))
        return {"first_seq": self._accept(bulk.lines, bulk.changes, repeat)["seq"], **told}

    def subscribe(self, id: str | None = None, **subscription: Any) -> dict[str, Any]:
        """Make or replace a subscription; raises Declined."""
        fixed = {} if id is None else {"id": id}
        try:
            admitted = read_subscription(self.admission, subscription, **fixed)
        except InvalidEvent as error:
            raise Declined(str(error), 422) from None
        change = read_change(admitted.line)
        assert change is not None
        written = self._accept([Incoming(admitted.line, admitted.ts_us)], [change])
        return {"id": change.id, "seq": written["seq"], "replaced": bool(written["replaced"])}

    def unsubscribe(self, id: str) -> dict[str, Any]:
        """End a subscription, whosever it is; raises Declined."""
        admitted = self.admission.admit(complete({}, "unsubscribe", id=id))
        line = Incoming(admitted.line, admitted.ts_us)
        written = self._accept([line], [Change(0, id, "", ends=True)])
        return {"id": id, "seq": written["seq"]}

    def _accept(
        self,
        lines: list[Incoming],
        changes: list[Change],
        repeat: Repeat = NO_REPEAT,
    ) -> dict[str, Any]:
        before = self.admission.now_us

        async def commit() -> dict[str, Any]:
            request = Request(
                [line.line for line in lines],
                LOCAL,
                changes,
                repeat,
                latest_us=max(line.ts_us for line in lines),
                every=True,
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
