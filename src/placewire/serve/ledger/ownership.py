"""Who owned an id when, and what its subscriptions were.

An id whose subscription has ended or expired can be taken by another owner. A result belongs to the
owner at its event, however late it arrives, and is numbered in that owner's account.

Past subscriptions are kept as long as the journal, so that `explain` can answer for old objects.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from placewire.serve.ledger.database import (
    ACCOUNT,
    HISTORY,
    HISTORY_START,
    OWNERS,
    SET_META,
    DatabaseCursor,
    get_meta,
)
from placewire.serve.ledger.rows import ResultHead, SubscriptionChange, SubscriptionRow

MAX_NAMES = 400  # ids per query
COLUMNS = ", ".join((*SubscriptionRow._fields[:-1], ACCOUNT))
SUBSCRIPTIONS_OF = f"SELECT {COLUMNS} FROM subscription WHERE id IN ({{marks}})"
OWNERS_OF = f"SELECT id, first_seq, owner FROM {OWNERS} WHERE id IN ({{marks}}) ORDER BY first_seq"
ADD_OWNER = (
    f"INSERT INTO {OWNERS} (id, first_seq, owner) VALUES (?, ?, ?)"
    " ON CONFLICT (id, first_seq) DO NOTHING"
)
SUPERSEDED = (
    f"first_seq < ? AND EXISTS (SELECT 1 FROM {OWNERS} o WHERE o.id = {OWNERS}.id"
    f" AND o.first_seq > {OWNERS}.first_seq AND o.first_seq <= ?)"
)
ADD_PAST = (
    f"INSERT INTO {HISTORY} (id, seq, owner, end_seq, how, body) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (id, seq) DO NOTHING"
)


def latest_of(rows: Sequence[SubscriptionRow]) -> SubscriptionRow | None:
    """The latest subscription of an id, among all owners."""
    return max(rows, key=lambda subscription: subscription.seq, default=None)


def apply_change(cursor: DatabaseCursor, change: SubscriptionChange, least: int = 0) -> None:
    """Apply one subscribe or unsubscribe; idempotent.

    Results of a new account are numbered from `least` + 1.
    """
    cursor.execute(f"SELECT {COLUMNS} FROM subscription WHERE id = ?", (change.id,))
    subscription = latest_of([SubscriptionRow(*row) for row in cursor.fetchall()])
    if subscription is not None and subscription.seq >= change.seq:
        return
    if change.ends:
        if subscription is not None and subscription.ended_seq is None:
            cursor.execute(
                "UPDATE subscription SET ended_seq = ? WHERE id = ? AND owner = ?",
                (change.seq, *subscription.account),
            )
        return
    owned = change.seq
    if subscription is not None:
        past = to_past(subscription, change.seq, change.owner)
        cursor.execute(ADD_PAST, (subscription.id, *past))
    if subscription is not None and subscription.owner == change.owner:
        owned = subscription.owned_seq
    elif subscription is not None:
        changed = [(subscription.owned_seq, subscription.owner), (change.seq, change.owner)]
        cursor.executemany(ADD_OWNER, [(change.id, *owner_since) for owner_since in changed])
    cursor.execute(
        f"INSERT INTO subscription ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (id, owner) DO UPDATE SET kind = excluded.kind, seq = excluded.seq,"
        " since_us = excluded.since_us, expires_us = excluded.expires_us, ended_seq = NULL,"
        " owned_seq = excluded.owned_seq, body = excluded.body, standing = NULL",
        (change.id, change.owner, change.kind, change.seq, change.since_us, change.expires_us,
         None, owned, least, change.body, None, change.seq),
    )  # fmt: skip


class AccountTally:
    """An account while its results are being numbered."""

    __slots__ = ("account_number", "numbers", "owner", "seq", "standing", "subscription")

    def __init__(self, subscription: SubscriptionRow) -> None:
        self.subscription = subscription
        self.owner = subscription.owner
        self.account_number = subscription.account_number
        self.seq = subscription.seq
        self.numbers = subscription.numbers
        self.standing = subscription.standing


class OwnerLookup:
    """Present and past owners of some ids, to decide whose a result is."""

    def __init__(self, cursor: DatabaseCursor, names: Sequence[str]) -> None:
        # Most ids have had one owner, which needs no further lookup.
        self.sole: dict[str, AccountTally] = {}
        self._shared: dict[str, list[AccountTally]] = {}
        for row in read_rows(cursor, SUBSCRIPTIONS_OF, names):
            subscription = SubscriptionRow(*row)
            tally = AccountTally(subscription)
            if subscription.id in self._shared:
                self._shared[subscription.id].append(tally)
            elif subscription.id in self.sole:
                self._shared[subscription.id] = [self.sole.pop(subscription.id), tally]
            else:
                self.sole[subscription.id] = tally
        self._owners: dict[str, list[tuple[int, str]]] = {name: [] for name in self._shared}
        for name, seq, owner in read_rows(cursor, OWNERS_OF, list(self._shared)):
            self._owners[name].append((seq, owner))

    def find(self, head: ResultHead) -> AccountTally | None:
        """The account of a result whose id has had several owners; None if unknown."""
        owners = self._owners.get(head.subscription)
        if owners is None:
            return None
        at = bisect_right(owners, head.seq, key=lambda owner_since: owner_since[0]) - 1
        if at >= 0 and not head.belongs_to(owners[at][0]):
            at -= 1
        owner = owners[at][1] if at >= 0 else None
        return next((one for one in self._shared[head.subscription] if one.owner == owner), None)

    def changed(self) -> list[AccountTally]:
        """The accounts with new results."""
        shared = [tally for some in self._shared.values() for tally in some]
        every = [*self.sole.values(), *shared]
        return [one for one in every if one.numbers != one.subscription.numbers]


def read_rows(cursor: DatabaseCursor, sql: str, names: Sequence[str]) -> Iterator[Any]:
    """The rows that a query with `{marks}` finds for ids, some hundred at a time."""
    for some in chunks(names, MAX_NAMES):
        cursor.execute(sql.format(marks=", ".join("?" * len(some))), some)
        yield from cursor.fetchall()


def purge_owners(cursor: DatabaseCursor, seq: int) -> None:
    """Delete ownership that ended before an event, whose results are all recorded."""
    cursor.execute(f"DELETE FROM {OWNERS} WHERE {SUPERSEDED}", (seq, seq))
    cursor.execute(
        f"DELETE FROM {OWNERS} WHERE NOT EXISTS"
        f" (SELECT 1 FROM subscription s WHERE s.id = {OWNERS}.id)"
    )


def chunks(items: Sequence[Any], size: int) -> Iterator[list[Any]]:
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some


class PastSubscription(NamedTuple):
    """One lifetime of an id, from `seq` to `end_seq`, and how it ended.

    An expired one ends when another owner takes the id.
    """

    seq: int
    owner: str
    end_seq: int | None
    how: str
    body: str


def to_past(subscription: SubscriptionRow, next_seq: int, next_owner: str) -> PastSubscription:
    """A subscription as the past of a later one."""
    if subscription.ended_seq is not None:
        return PastSubscription(
            subscription.seq, subscription.owner, subscription.ended_seq, "ended", subscription.body
        )
    how = "replaced" if subscription.owner == next_owner else "expired"
    return PastSubscription(subscription.seq, subscription.owner, next_seq, how, subscription.body)


def order_history(
    kept: Iterable[PastSubscription], rows: Sequence[SubscriptionRow]
) -> list[PastSubscription]:
    """All lifetimes of an id in order, from stored ones and current rows."""
    found = {past.seq: past for past in kept}
    latest = max(rows, key=lambda subscription: subscription.seq)
    for subscription in rows:
        if subscription.seq not in found and subscription is not latest:
            found[subscription.seq] = to_past(subscription, latest.owned_seq, latest.owner)
    how = "" if latest.ended_seq is None else "ended"
    found[latest.seq] = PastSubscription(
        latest.seq, latest.owner, latest.ended_seq, how, latest.body
    )
    return [found[seq] for seq in sorted(found)]


def purge_history(cursor: DatabaseCursor, seq: int) -> None:
    """Delete lifetimes that ended before an event."""
    cursor.execute(f"DELETE FROM {HISTORY} WHERE end_seq < ?", (seq,))
    cursor.execute(SET_META, (HISTORY_START, max(seq, get_meta(cursor, HISTORY_START, 0))))
