"""Tenures: who has had an id from which event on.

An id that has ended or expired may be another owner's next. A result belongs to whoever had the
id at its event, however late the result comes, and is numbered in that owner's account.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from placewire.serve.ledger.database import Cursor
from placewire.serve.ledger.rows import Change, Head, Held
from placewire.serve.ledger.spells import keep_spell

AT_ONCE = 400  # names in one query
HELD = ", ".join(Held._fields)
ADD_TENURE = (
    "INSERT INTO tenure (id, first_seq, owner) VALUES (?, ?, ?)"
    " ON CONFLICT (id, first_seq) DO NOTHING"
)
PAST = (
    "first_seq < ? AND EXISTS (SELECT 1 FROM tenure t WHERE t.id = tenure.id"
    " AND t.first_seq > tenure.first_seq AND t.first_seq <= ?)"
)


def follows(head: Head, seq: int) -> bool:
    """Whether a result is of the subscription that began at an event, and not of one before.

    What a new one has already is told at its own event; reports made there are the old one's.
    """
    return head.seq > seq or (head.seq == seq and head.type == "update")


def latest_of(rows: Sequence[Held]) -> Held | None:
    """Who has the id now, of all who have or had it."""
    return max(rows, key=lambda held: held.seq, default=None)


def apply_change(cursor: Cursor, change: Change, least: int = 0) -> None:
    """One subscribe or unsubscribe; applied twice it is the same as once.

    Results of a new account are numbered from the one after `least` on.
    """
    cursor.execute(f"SELECT {HELD} FROM subscription WHERE id = ?", (change.id,))
    held = latest_of([Held(*row) for row in cursor.fetchall()])
    if held is not None and held.seq >= change.seq:
        return
    if change.ends:
        if held is not None and held.ended_seq is None:
            cursor.execute(
                "UPDATE subscription SET ended_seq = ? WHERE id = ? AND owner = ?",
                (change.seq, *held.account),
            )
        return
    owned = change.seq
    if held is not None:
        keep_spell(cursor, held, change)
    if held is not None and held.owner == change.owner:
        owned = held.owned_seq
    elif held is not None:
        changed = [(held.owned_seq, held.owner), (change.seq, change.owner)]
        cursor.executemany(ADD_TENURE, [(change.id, *tenure) for tenure in changed])
    cursor.execute(
        f"INSERT INTO subscription ({HELD}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (id, owner) DO UPDATE SET kind = excluded.kind, seq = excluded.seq,"
        " since_us = excluded.since_us, expires_us = excluded.expires_us, ended_seq = NULL,"
        " owned_seq = excluded.owned_seq, body = excluded.body, standing = NULL",
        (change.id, change.owner, change.kind, change.seq, change.since_us, change.expires_us,
         None, owned, least, change.body, None, change.seq),
    )  # fmt: skip


class Posting:
    """An account while results are numbered in it."""

    __slots__ = ("folio", "held", "numbers", "owner", "seq", "standing")

    def __init__(self, held: Held) -> None:
        self.held = held
        self.owner = held.owner
        self.folio = held.folio
        self.seq = held.seq
        self.numbers = held.numbers
        self.standing = held.standing


class Holders:
    """Who has and had some ids, to tell whose a result is."""

    def __init__(self, cursor: Cursor, names: Sequence[str]) -> None:
        # Nearly every id has had one owner only, who is found without another look.
        self.sole: dict[str, Posting] = {}
        self._shared: dict[str, list[Posting]] = {}
        for held in read_held(cursor, names):
            posting = Posting(held)
            if held.id in self._shared:
                self._shared[held.id].append(posting)
            elif held.id in self.sole:
                self._shared[held.id] = [self.sole.pop(held.id), posting]
            else:
                self.sole[held.id] = posting
        self._tenures: dict[str, list[tuple[int, str]]] = {name: [] for name in self._shared}
        for name, seq, owner in read_tenures(cursor, list(self._shared)):
            self._tenures[name].append((seq, owner))

    def find(self, head: Head) -> Posting | None:
        """Whose a result is, if the id has changed hands; None if nobody knows."""
        tenures = self._tenures.get(head.subscription)
        if tenures is None:
            return None
        at = bisect_right(tenures, head.seq, key=lambda tenure: tenure[0]) - 1
        if at >= 0 and not follows(head, tenures[at][0]):
            at -= 1
        owner = tenures[at][1] if at >= 0 else None
        return next((one for one in self._shared[head.subscription] if one.owner == owner), None)

    def changed(self) -> list[Posting]:
        """Those that have new results, by id."""
        shared = [posting for some in self._shared.values() for posting in some]
        every = [*self.sole.values(), *shared]
        return [one for one in every if one.numbers != one.held.numbers]


def read_held(cursor: Cursor, names: Sequence[str]) -> Iterator[Held]:
    for some in chunks(names, AT_ONCE):
        marks = ", ".join("?" * len(some))
        cursor.execute(f"SELECT {HELD} FROM subscription WHERE id IN ({marks})", some)
        for row in cursor.fetchall():
            yield Held(*row)


def read_tenures(cursor: Cursor, names: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    for some in chunks(names, AT_ONCE):
        marks = ", ".join("?" * len(some))
        cursor.execute(
            f"SELECT id, first_seq, owner FROM tenure WHERE id IN ({marks}) ORDER BY first_seq",
            some,
        )
        yield from cursor.fetchall()


def forget_tenures(cursor: Cursor, seq: int) -> None:
    """Drop those that were over before an event, all results before which are recorded."""
    cursor.execute(f"DELETE FROM tenure WHERE {PAST}", (seq, seq))
    cursor.execute(
        "DELETE FROM tenure WHERE NOT EXISTS (SELECT 1 FROM subscription s WHERE s.id = tenure.id)"
    )


def chunks(items: Sequence[Any], size: int) -> Iterator[list[Any]]:
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some
