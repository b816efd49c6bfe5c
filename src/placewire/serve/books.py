"""The ledger of a state as its files have it, whether the state is served or not.

What a client can read of a server is read here without one; whoever can read the files sees all.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from placewire.model.errors import Unusable
from placewire.serve.access import make_key
from placewire.serve.binding import adopt, has_ledger, lost, refuse_other
from placewire.serve.client.calls import Declined
from placewire.serve.errors import Refused
from placewire.serve.ledger import Entry, Ledger, open_ledger
from placewire.status.status import open_state
from placewire.storage.journal import JournalReader, journal_folder
from placewire.storage.layout import StateDir
from placewire.storage.manifest import read_latest
from placewire.storage.notes import last_server

LEDGER = "ledger.sqlite"
LOOKS_S = 0.1  # between two looks for new results
AT_ONCE = 500
PAGE = 1_000


class Books:
    """The ledger of a state, whether it is served or not: subscriptions, results, keys."""

    def __init__(self, root: Path, ledger: str = "", make: bool = False) -> None:
        if make:
            StateDir(root).open()
        self.state = open_state(root)
        if not ledger and last_server(self.state).ledger != "file":
            raise Unusable(f"state {root}: its ledger is in PostgreSQL, give --ledger URL")
        if not ledger and not (root / LEDGER).exists():
            if has_ledger(self.state):
                raise Unusable(lost(self.state))  # before a new one is made
            if not make:
                raise Unusable(f"state {root}: has no ledger; `placewire serve --state` makes one")
        self.ledger: Ledger = open_ledger(ledger or root / LEDGER)
        try:
            refuse_other(self.ledger, self.state)
            if make:
                adopt(self.ledger, self.state)
        except Unusable:
            self.ledger.close()
            raise
        manifest = read_latest(self.state)
        self.now_us = manifest.now_us if manifest is not None else None

    def close(self) -> None:
        self.ledger.close()

    def subscription(self, id: str) -> dict[str, Any]:
        """One subscription; raises Declined."""
        held = self.ledger.find(id)
        if held is None:
            raise Declined(f"subscription {id!r}: is not known", 404)
        return held.shown(self.now_us)

    def subscriptions(self) -> Iterator[dict[str, Any]]:
        """All subscriptions, by id."""
        after = ""
        while some := self.ledger.list_held(None, after, PAGE):
            yield from (held.shown(self.now_us) for held in some)
            after = some[-1].id

    def standing(self, id: str) -> dict[str, Any]:
        """Where a ranked subscription stands; raises Declined."""
        self.subscription(id)
        held = self.ledger.find(id)
        found = held.standing if held is not None else None
        return dict(msgspec.json.decode(found)) if found else {}

    def tail(
        self,
        *ids: str,
        after: int | str = "latest",
        objects: bool = False,
        seconds: float | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Results as they come, as of a client; raises Declined."""
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
                self.ledger.results_after(None, at, AT_ONCE)
                if one is None
                else self.ledger.results_of(one.account, at, AT_ONCE)
            )
            for entry in entries:
                at = entry.position if one is None else entry.number
                if len(ids) < 2 or entry.subscription in ids:
                    yield self._shown(entry, objects)
            if not entries:
                if ends is not None and time.monotonic() >= ends:
                    return
                time.sleep(LOOKS_S)

    def _shown(self, entry: Entry, objects: bool) -> dict[str, Any]:
        facts = {
            "number": entry.number,
            "position": entry.position,
            "subscription": entry.subscription,
            "id": entry.id,
            "result": msgspec.json.decode(entry.body),
        }
        return facts | ({"objects": self._object(entry)} if objects else {})

    def _object(self, entry: Entry) -> dict[str, Any]:
        line = self._journal.read(entry.seq)
        event = msgspec.json.decode(line) if line is not None else {}
        if entry.type == "report" or event.get("type") != "object":
            return {}
        facts = {name: event[name] for name in ("lon", "lat", "text")}
        return {event["id"]: {"seq": entry.seq, **facts}}

    @cached_property
    def _journal(self) -> JournalReader:
        return JournalReader(journal_folder(self.state))

    def keys(self) -> list[dict[str, Any]]:
        return [{"name": key.name, "roles": list(key.roles)} for key in self.ledger.all_keys()]

    def add_key(self, name: str, roles: Iterable[str]) -> dict[str, Any]:
        """Make a key; raises Declined."""
        try:
            secret, key = make_key(name, tuple(roles))
        except Refused as error:
            raise Declined(error.why, error.status) from None
        if not self.ledger.add_key(key):
            raise Declined(f"key {name!r}: is there already", 409)
        return {"name": name, "roles": list(key.roles), "key": secret}

    def end_key(self, name: str) -> dict[str, Any]:
        """End a key; raises Declined."""
        if not self.ledger.end_key(name):
            raise Declined(f"key {name!r}: is not known", 404)
        return {"name": name}
