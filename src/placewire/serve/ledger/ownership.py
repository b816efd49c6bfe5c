"""Tenures: who has had an id from which event on.

An id that has ended or expired may be another owner's next. A result belongs to whoever had the
id at its event, however late the result comes, and is numbered in that owner's account.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from placewire.serve.kinds import ResultHead
from placewire.serve.ledger.database import SET_META, Cursor, get_meta
from placewire.serve.ledger.rows import Change, Held

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

    def find(self, head: ResultHead) -> Posting | None:
        """Whose a result is, if the id has changed hands; None if nobody knows."""
        tenures = self._tenures.get(head.subscription)
        if tenures is None:
            return None
        at = bisect_right(tenures, head.seq, key=lambda tenure: tenure[0]) - 1
        if at >= 0 and not head.belongs_to(tenures[at][0]):
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


SINCE = "spells"  # the first event from which on none is missing
ADD_SPELL = (
    "INSERT INTO spell (id, seq, owner, end_seq, how, body) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (id, seq) DO NOTHING"
)


class Past(NamedTuple):
    """A subscription from its event on: at `end_seq`, if it is over, it was ended or replaced.

    One that had expired is over when another owner takes the id.
    """

    seq: int
    owner: str
    end_seq: int | None
    how: str
    body: str


def keep_spell(cursor: Cursor, held: Held, change: Change) -> None:
    """Note what an id was, which a change makes something else."""
    past = close_spell(held, change.seq, change.owner)
    cursor.execute(ADD_SPELL, (held.id, *past))


def close_spell(held: Held, next_seq: int, next_owner: str) -> Past:
    """A subscription after which there was another one."""
    if held.ended_seq is not None:
        return Past(held.seq, held.owner, held.ended_seq, "ended", held.body)
    how = "replaced" if held.owner == next_owner else "expired"
    return Past(held.seq, held.owner, next_seq, how, held.body)


def order_spells(kept: Iterable[Past], rows: Sequence[Held]) -> list[Past]:
    """All that an id was in order, from what was kept and from those who have or had it."""
    found = {past.seq: past for past in kept}
    latest = max(rows, key=lambda held: held.seq)
    for held in rows:
        if held.seq not in found and held is not latest:
            found[held.seq] = close_spell(held, latest.owned_seq, latest.owner)
    how = "" if latest.ended_seq is None else "ended"
    found[latest.seq] = Past(latest.seq, latest.owner, latest.ended_seq, how, latest.body)
    return [found[seq] for seq in sorted(found)]


def forget_spells(cursor: Cursor, seq: int) -> None:
    """Drop those that were over before an event."""
    cursor.execute("DELETE FROM spell WHERE end_seq < ?", (seq,))
    cursor.execute(SET_META, (SINCE, max(seq, get_meta(cursor, SINCE, 0))))
