"""What goes to a webhook: rows of its tables, what is sent in one body, what became of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from placewire.serve.ledger.rows import Account

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
