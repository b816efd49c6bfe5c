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


DELIVERED, FAILED, GONE = "delivered", "failed", "gone"


class Webhook(NamedTuple):
    """Where a subscription's results are sent, how far that is, and what was counted.

    Results up to `number` are settled; those after it up to `taken` are on their way.
    """

    subscription: str
    owner: str
    token: str  # of the ids of its deliveries
    url: str
    secret: str
    throttle_us: int  # 0: none
    digest_us: int  # 0: none
    number: int
    taken: int
    delivered: int
    dropped: int
    failed: int
    attempts: int  # at the delivery under way
    next_us: int  # when it is tried again
    sent_us: int  # when one was last delivered
    error: str  # of the last attempt that failed
    ended: str  # why nothing is sent any more

    @property
    def account(self) -> Account:
        return Account(self.subscription, self.owner)


class DeadDelivery(NamedTuple):
    """A delivery that was given up."""

    subscription: str
    owner: str
    token: str
    first_number: int
    last_number: int
    attempts: int
    error: str
    at_us: int
    again: int  # 1: is to be tried once more


class Parcel(NamedTuple):
    """Results that go out as one body; the same ones under the same id until they are settled."""

    subscription: str
    owner: str
    token: str
    url: str
    secret: str
    first: int
    last: int
    attempts: int
    dead: bool = False  # one that was given up before

    @property
    def account(self) -> Account:
        return Account(self.subscription, self.owner)

    @property
    def id(self) -> str:
        return f"{self.token}-{self.first}-{self.last}"

    @property
    def size(self) -> int:
        return self.last - self.first + 1


class Report(NamedTuple):
    """What became of a parcel."""

    parcel: Parcel
    outcome: str
    error: str = ""
    again_us: int | None = None  # when to try again; None: never


class Step(NamedTuple):
    """What is to be done for a webhook next: send, wait, or nothing until a result comes."""

    parcel: Parcel | None = None
    wait_us: int | None = None
    known: bool = True  # false: there is no such webhook, or it has ended


class Wish(NamedTuple):
    """A webhook as its owner wants it."""

    url: str
    secret: str | None = None  # None: as it was, or a new one
    throttle_us: int = 0
    digest_us: int = 0
    after: int | None = None  # None: as it was, or from the first result on


def dead_facts(dead: DeadDelivery) -> dict[str, Any]:
    return {
        "id": f"{dead.token}-{dead.first_number}-{dead.last_number}",
        "first_number": dead.first_number,
        "last_number": dead.last_number,
        "attempts": dead.attempts,
        "error": dead.error,
    }
