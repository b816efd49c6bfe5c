"""Row types of the ledger's tables, result lines, and the values that its methods exchange.

Fields of row types are named after their columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from placewire.model.kinds import kind_named
from placewire.model.times import format_timestamp


class SubscriptionChange(NamedTuple):
    """A subscribe or unsubscribe event of the journal, with its owner."""

    seq: int
    id: str
    owner: str
    ends: bool = False
    kind: str = ""
    body: str = ""  # the event as JSON
    since_us: int = 0
    expires_us: int | None = None


class Account(NamedTuple):
    """The unit in which results are numbered: an id and one of its owners."""

    subscription: str
    owner: str


class SubscriptionRow(NamedTuple):
    """A subscription in the ledger; `numbers` counts its results.

    An id with several owners has one row for each, with that owner's latest subscription.
    """

    id: str
    owner: str
    kind: str
    seq: int
    since_us: int
    expires_us: int | None
    ended_seq: int | None
    owned_seq: int  # the event since which its owner has had the id
    numbers: int
    body: str
    standing: str | None
    account_number: int  # the first event at which this owner had the id

    @property
    def account(self) -> Account:
        return Account(self.id, self.owner)

    def status(self, now_us: int | None) -> str:
        """Whether the subscription is live, ended or expired at `now_us`."""
        if self.ended_seq is not None:
            return "ended"
        if self.expires_us is not None and now_us is not None and self.expires_us <= now_us:
            return "expired"
        return "live"

    def shown(self, now_us: int | None) -> dict[str, Any]:
        """The subscription as the API returns it."""
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


class ResultEntry(msgspec.Struct, frozen=True):
    """One result, with its position among all results and its number in its account."""

    position: int
    subscription: str
    owner: str
    number: int
    seq: int
    type: str
    id: str
    body: bytes
    at_us: int = 0  # when it was recorded
    encoded: bytes = b""  # as streams send it, once needed

    @property
    def account(self) -> Account:
        return Account(self.subscription, self.owner)


class ApiKey(NamedTuple):
    """A stored API key: its digest, never the key itself."""

    name: str
    digest: str
    roles: tuple[str, ...]
    made_us: int


DELIVERED, FAILED, GONE = "delivered", "failed", "gone"


class WebhookRow(NamedTuple):
    """A webhook: its settings, its cursor and its counters.

    Results up to `number` are settled; those up to `taken` are being delivered.
    """

    subscription: str
    owner: str
    token: str  # prefix of its delivery ids
    url: str
    secret: str
    throttle_us: int  # 0: none
    digest_us: int  # 0: none
    number: int
    taken: int
    delivered: int
    dropped: int
    failed: int
    attempts: int  # of the delivery in progress
    next_us: int  # when the next attempt is due
    sent_us: int  # when the last delivery succeeded
    error: str  # of the last failed attempt
    ended: str  # why it ended; empty: active

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
    again: int  # 1: queued for another attempt


class WebhookDelivery(NamedTuple):
    """Results sent as one body, under the same id until they are settled."""

    subscription: str
    owner: str
    token: str
    url: str
    secret: str
    first: int
    last: int
    attempts: int
    dead: bool = False  # a retried dead delivery

    @property
    def account(self) -> Account:
        return Account(self.subscription, self.owner)

    @property
    def id(self) -> str:
        return f"{self.token}-{self.first}-{self.last}"

    @property
    def size(self) -> int:
        return self.last - self.first + 1


class DeliveryReport(NamedTuple):
    """The outcome of a delivery."""

    delivery: WebhookDelivery
    outcome: str
    error: str = ""
    again_us: int | None = None  # when to retry; None: give up


class NextStep(NamedTuple):
    """What a webhook does next: send, wait, or nothing until a result arrives."""

    delivery: WebhookDelivery | None = None
    wait_us: int | None = None
    known: bool = True  # false: the webhook does not exist or has ended


class WebhookSettings(NamedTuple):
    """The settings of a webhook as its owner gives them."""

    url: str
    secret: str | None = None  # None: unchanged, or generated
    throttle_us: int = 0
    digest_us: int = 0
    after: int | None = None  # None: unchanged, or from the first result


def describe_dead(dead: DeadDelivery) -> dict[str, Any]:
    return {
        "id": f"{dead.token}-{dead.first_number}-{dead.last_number}",
        "first_number": dead.first_number,
        "last_number": dead.last_number,
        "attempts": dead.attempts,
        "error": dead.error,
    }


class ResultType(NamedTuple):
    """How the ledger treats one type of result line."""

    cumulative: bool  # changes the current result of its subscription
    initial: bool  # can belong to the subscription that starts at the same event
    names_objects: bool


RESULT_TYPES = {
    "match": ResultType(cumulative=False, initial=False, names_objects=True),
    "update": ResultType(cumulative=True, initial=True, names_objects=True),
    "report": ResultType(cumulative=True, initial=False, names_objects=False),
}


class ResultHead(msgspec.Struct, frozen=True):
    """The fields of a result line that the service reads."""

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
        """The stable id: the same each time the pipeline produces this result."""
        end = f":{self.at}" if self.at else ""
        return f"{self.seq}:{self.type}:{self.subscription}{end}"

    @property
    def new_objects(self) -> list[str]:
        """The ids of the objects that the result adds."""
        return [self.object] if self.object else [named["object"] for named in self.add]

    def belongs_to(self, seq: int) -> bool:
        """Whether the result is of the subscription that started at event `seq`, or a later one.

        The first results of a subscription have the seq of its subscribe event; reports with that
        seq belong to the subscription that it replaced.
        """
        return self.seq > seq or (self.seq == seq and RESULT_TYPES[self.type].initial)


read_head = msgspec.json.Decoder(ResultHead).decode


def fold(kind: str, current: str | None, head: ResultHead) -> str:
    """Apply one result to the current result of a subscription; both are JSON.

    Equal distances keep the order of arrival and equal scores the reverse order, because updates
    arrive in that order. Objects that one update adds with equal values keep its order.
    """
    if not RESULT_TYPES[head.type].names_objects:
        return msgspec.json.encode({"at": head.at, "terms": head.terms}).decode()
    objects = msgspec.json.decode(current)["objects"] if current else []
    for dropped in head.drop:
        # Ids can repeat: the object that leaves is the last one of that id in result order.
        at = max(
            (i for i, one in enumerate(objects) if one["object"] == dropped["object"]), default=-1
        )
        if at >= 0:
            del objects[at]
    added = [{name: one[name] for name in one if name != "data"} for one in head.add]
    form = kind_named(kind).form
    if form.descending:
        objects = sorted(added + objects, key=lambda one: -one[form.order_by])
    else:
        objects = sorted(objects + added, key=lambda one: one[form.order_by])
    return msgspec.json.encode({"objects": objects}).decode()


def empty_result(kind: str) -> dict[str, Any]:
    """The current result of a subscription that has had none yet."""
    return {kind_named(kind).form.lists: []}
