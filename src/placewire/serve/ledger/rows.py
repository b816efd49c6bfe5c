"""What the ledger's rows say."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from placewire.model.times import format_timestamp


class Change(NamedTuple):
    """A subscribe or an unsubscribe as the journal has it, and whose it is."""

    seq: int
    id: str
    owner: str
    ends: bool = False
    kind: str = ""
    body: str = ""  # the event as JSON
    since_us: int = 0
    expires_us: int | None = None


class Account(NamedTuple):
    """What results are numbered by: an id, and one of those who have or had it."""

    subscription: str
    owner: str


class Held(NamedTuple):
    """A subscription as the ledger holds it; `numbers` results were numbered so far.

    An id that has changed hands has one for each owner, the last that this one made of it.
    """

    id: str
    owner: str
    kind: str
    seq: int
    since_us: int
    expires_us: int | None
    ended_seq: int | None
    owned_seq: int  # since which event its owner has had the id without a break
    numbers: int
    body: str
    standing: str | None
    folio: int  # the account in short: the first event by which this owner had the id

    @property
    def account(self) -> Account:
        return Account(self.id, self.owner)

    def status(self, now_us: int | None) -> str:
        """Whether it is live when the clock says `now_us`: live, ended or expired."""
        if self.ended_seq is not None:
            return "ended"
        if self.expires_us is not None and now_us is not None and self.expires_us <= now_us:
            return "expired"
        return "live"

    def shown(self, now_us: int | None) -> dict[str, Any]:
        """A subscription as it is shown."""
        event = msgspec.json.decode(self.body)
        return {
            "id": self.id,
            "kind": self.kind,
            "owner": self.owner,
            "seq": self.seq,
            "since": format_timestamp(self.since_us),
            "status": self.status(now_us),
            "results": self.numbers,
            "subscription": {name: event[name] for name in event if name != "type"},
        }


class Entry(msgspec.Struct, frozen=True):
    """One result: its place among all, its number among its subscription's, its stable id."""

    position: int
    subscription: str
    owner: str
    number: int
    seq: int
    type: str
    id: str
    body: bytes
    at_us: int = 0  # when the ledger got it
    told: bytes = b""  # as streams tell it, once somebody listens

    @property
    def account(self) -> Account:
        return Account(self.subscription, self.owner)


class Key(NamedTuple):
    """An API key as the ledger knows it: never the key itself."""

    name: str
    digest: str
    roles: tuple[str, ...]
    made_us: int


class Head(msgspec.Struct, frozen=True):
    """What a result's line says of itself."""

    seq: int
    type: str
    subscription: str = ""
    object: str = ""
    at: str = ""
    add: list[dict[str, Any]] = []
    drop: list[dict[str, Any]] = []
    terms: list[Any] = []

    @property
    def result_id(self) -> str:
        """The stable id: the same whenever the result is made again."""
        end = f":{self.at}" if self.at else ""
        return f"{self.seq}:{self.type}:{self.subscription}{end}"
