"""What can be done with the ledger: apply changes, record results, read both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from placewire.model.errors import Unusable
from placewire.serve.ledger.database import Cursor, Database
from placewire.serve.ledger.deliveries import Deliveries, end_webhook, give_up_before
from placewire.serve.ledger.keys import Keys
from placewire.serve.ledger.meta import SET_META, add_meta, get_meta
from placewire.serve.ledger.rows import Change, Entry, Head, Held
from placewire.serve.ledger.schema import TABLES, VERSION
from placewire.serve.ledger.standing import fold
from placewire.state.journal import Note

AT_ONCE = 400  # names in one query
ROWS_AT_ONCE = 100  # of nine values, and a statement of SQLite may have 999
read_head = msgspec.json.Decoder(Head).decode
HELD = ", ".join(Held._fields)
FORGETTABLE = (
    "at_us < ? AND NOT EXISTS (SELECT 1 FROM dead_delivery x"
    " WHERE x.subscription = result.subscription"
    " AND result.number BETWEEN x.first_number AND x.last_number)"
)
ENTRY = "position, subscription, owner, number, seq, type, id, body, at_us"


class Ledger(Keys):
    """Who owns which subscription, and every result with its number."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.deliveries = Deliveries(database)
        with database.writing() as cursor:
            for table in TABLES:
                cursor.execute(table)
            found = get_meta(cursor, "version", VERSION)
            if found != VERSION:
                raise Unusable(f"ledger: needs version {VERSION}, got {found}")
            cursor.execute(SET_META, ("version", VERSION))

    def close(self) -> None:
        self.database.close()

    def counts(self) -> dict[str, int]:
        """All that was counted, by name."""
        return {name: int(value) for name, value in self.database.read("SELECT * FROM meta")}

    def meta(self, name: str, otherwise: int) -> int:
        rows = self.database.read("SELECT value FROM meta WHERE name = ?", (name,))
        return int(rows[0][0]) if rows else otherwise

    @property
    def applied_seq(self) -> int:
        """Before which event the journal's changes are in the ledger."""
        return self.meta("applied", 0)

    @property
    def batch(self) -> int:
        """The last batch whose results are in the ledger."""
        return self.meta("batch", -1)

    @property
    def position(self) -> int:
        """The place of the last result."""
        return self.meta("position", 0)

    # Changes, as they are accepted.

    def apply(self, changes: Iterable[Change], notes: Iterable[Note], applied: int) -> None:
        """Take in changes and replies of the journal up to the event `applied`."""
        with self.database.writing() as cursor:
            for change in changes:
                apply_change(cursor, change)
            cursor.executemany(
                "INSERT INTO reply (owner, key, body, at_us) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (owner, key) DO NOTHING",
                [
                    (note.owner, note.key, msgspec.json.encode(note.reply).decode(), note.at_us)
                    for note in notes
                    if note.key
                ],
            )
            cursor.execute(SET_META, ("applied", applied))

    def reply_of(self, owner: str, key: str) -> dict[str, Any] | None:
        """What was replied to a request with this idempotency key."""
        rows = self.database.read(
            "SELECT body FROM reply WHERE owner = ? AND key = ?", (owner, key)
        )
        return msgspec.json.decode(rows[0][0]) if rows else None

    # Subscriptions.

    def find(self, name: str) -> Held | None:
        rows = self.database.read(f"SELECT {HELD} FROM subscription WHERE id = ?", (name,))
        return Held(*rows[0]) if rows else None

    def find_all(self, names: Sequence[str]) -> dict[str, Held]:
        found = {}
        for some in chunks(names, AT_ONCE):
            marks = ", ".join("?" * len(some))
            rows = self.database.read(
                f"SELECT {HELD} FROM subscription WHERE id IN ({marks})", some
            )
            found.update({row[0]: Held(*row) for row in rows})
        return found

    def list_held(self, owner: str | None, after: str, limit: int) -> list[Held]:
        """Subscriptions of an owner, or all, by id."""
        where, values = ("owner = ? AND ", [owner]) if owner is not None else ("", [])
        rows = self.database.read(
            f"SELECT {HELD} FROM subscription WHERE {where}id > ? ORDER BY id LIMIT ?",
            [*values, after, limit],
        )
        return [Held(*row) for row in rows]

    def count_live(self) -> int:
        rows = self.database.read("SELECT count(*) FROM subscription WHERE ended_seq IS NULL")
        return int(rows[0][0])

    # Results, as they are committed.

    def record(
        self,
        batch: int,
        lines: Iterable[bytes],
        letters: Iterable[dict[str, Any]],
        at_us: int,
        first: int | None = None,
    ) -> list[Entry] | None:
        """Number results and keep them, of one batch or of those from `first` to `batch`.

        None if any of these is there already.
        """
        heads = [(read_head(line), line) for line in lines]
        heads = [(head, line) for head, line in heads if head.subscription]
        with self.database.writing() as cursor:
            if (batch if first is None else first) <= get_meta(cursor, "batch", -1):
                return None
            names = sorted({head.subscription for head, _ in heads})
            held = dict(read_held(cursor, names))
            position = get_meta(cursor, "position", 0)
            entries: list[Entry] = []
            numbers = {name: one.numbers for name, one in held.items()}
            standings = {name: one.standing for name, one in held.items()}
            strays = 0
            for head, line in heads:
                name = head.subscription
                one = held.get(name)
                if one is None or not follows(head, one.owned_seq):
                    strays += 1  # of a former owner, who has given the id up
                    continue
                numbers[name] += 1
                position += 1
                if head.type != "match" and follows(head, one.seq):
                    standings[name] = fold(one.kind, standings[name], head)
                entries.append(
                    Entry(
                        position,
                        name,
                        one.owner,
                        numbers[name],
                        head.seq,
                        head.type,
                        head.result_id,
                        bytes(line),
                        at_us,
                    )
                )
            for some in chunks(entries, ROWS_AT_ONCE):
                # In one statement: the driver lets go of Python's lock at each.
                marks = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?, ?)"] * len(some))
                cursor.execute(
                    f"INSERT INTO result ({ENTRY}) VALUES {marks}",
                    [value for entry in some for value in row_of(entry)],
                )
            cursor.executemany(
                "UPDATE subscription SET numbers = ?, standing = ? WHERE id = ?",
                [(numbers[name], standings[name], name) for name in sorted(held)],
            )
            cursor.executemany(
                "INSERT INTO dead_letter (seq, error, event) VALUES (?, ?, ?)"
                " ON CONFLICT (seq) DO NOTHING",
                [(x["seq"], storable(x["error"]), storable(x["event"])) for x in letters],
            )
            counted = get_meta(cursor, "strays", 0) + strays
            cursor.executemany(
                SET_META, [("batch", batch), ("position", position), ("strays", counted)]
            )
        return entries

    def results_of(
        self, name: str, after: int, limit: int, owner: str | None = None
    ) -> list[Entry]:
        """Results of a subscription from a number on, those of one owner or all."""
        where, values = (" AND owner = ?", [owner]) if owner is not None else ("", [])
        rows = self.database.read(
            f"SELECT {ENTRY} FROM result WHERE subscription = ? AND number > ?{where}"
            " ORDER BY number LIMIT ?",
            [name, after, *values, limit],
        )
        return [read_entry(row) for row in rows]

    def results_after(self, owner: str | None, after: int, limit: int) -> list[Entry]:
        """Results of all subscriptions of an owner, or of everybody, from a position on."""
        where, values = ("owner = ? AND ", [owner]) if owner is not None else ("", [])
        rows = self.database.read(
            f"SELECT {ENTRY} FROM result WHERE {where}position > ? ORDER BY position LIMIT ?",
            [*values, after, limit],
        )
        return [read_entry(row) for row in rows]

    def dead_letters(self, after: int, limit: int) -> list[dict[str, Any]]:
        rows = self.database.read(
            "SELECT seq, error, event FROM dead_letter WHERE seq > ? ORDER BY seq LIMIT ?",
            (after, limit),
        )
        return [{"seq": seq, "error": error, "event": event} for seq, error, event in rows]

    def forget_before(self, at_us: int, now_us: int) -> int:
        """Drop results and replies from before a time; gives how many results.

        What a webhook still has to deliver is given up then, and kept as long again.
        """
        with self.database.writing() as cursor:
            give_up_before(cursor, at_us, now_us)
            cursor.execute(f"SELECT count(*) FROM result WHERE {FORGETTABLE}", (at_us,))
            gone = int(cursor.fetchone()[0])
            cursor.execute(f"DELETE FROM result WHERE {FORGETTABLE}", (at_us,))
            cursor.execute("DELETE FROM reply WHERE at_us < ?", (at_us,))
            add_meta(cursor, Counter(forgotten=gone))
        return gone

    def forget_ended(self, seq: int, event_us: int) -> None:
        """Drop dead letters from before an event, and subscriptions that ended or expired before.

        `event_us` is the clock of the events. Those that have results or a webhook stay.
        """
        with self.database.writing() as cursor:
            cursor.execute(f"DELETE FROM subscription WHERE {FORGOTTEN}", (seq, seq, event_us))
            cursor.execute("DELETE FROM dead_letter WHERE seq < ?", (seq,))


FORGOTTEN = (
    "(ended_seq < ? OR (seq < ? AND expires_us <= ?))"
    " AND NOT EXISTS (SELECT 1 FROM result WHERE result.subscription = subscription.id)"
    " AND NOT EXISTS (SELECT 1 FROM delivery WHERE delivery.subscription = subscription.id)"
)


def follows(head: Head, seq: int) -> bool:
    """Whether a result is of the subscription that began at an event, and not of one before.

    What a new one has already is told at its own event; reports made there are the old one's.
    """
    return head.seq > seq or (head.seq == seq and head.type == "update")


def apply_change(cursor: Cursor, change: Change) -> None:
    """One subscribe or unsubscribe; applied twice it is the same as once."""
    cursor.execute(f"SELECT {HELD} FROM subscription WHERE id = ?", (change.id,))
    row = cursor.fetchone()
    held = Held(*row) if row else None
    if change.ends:
        if held is not None and held.ended_seq is None and held.seq < change.seq:
            cursor.execute(
                "UPDATE subscription SET ended_seq = ? WHERE id = ?", (change.seq, change.id)
            )
        return
    if held is not None and held.seq >= change.seq:
        return
    numbers = held.numbers if held is not None else 0
    same = held is not None and held.owner == change.owner
    owned = held.owned_seq if held is not None and same else change.seq
    first = held.first_number if held is not None and same else numbers + 1
    if not same:
        end_webhook(cursor, change.id)  # of a former owner
    cursor.execute(
        f"INSERT INTO subscription ({HELD}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, kind = excluded.kind,"
        " seq = excluded.seq, since_us = excluded.since_us, expires_us = excluded.expires_us,"
        " ended_seq = NULL, owned_seq = excluded.owned_seq, first_number = excluded.first_number,"
        " body = excluded.body, standing = NULL",
        (change.id, change.owner, change.kind, change.seq, change.since_us, change.expires_us,
         None, owned, first, numbers, change.body, None),
    )  # fmt: skip


def read_held(cursor: Cursor, names: Sequence[str]) -> Iterator[tuple[str, Held]]:
    for some in chunks(names, AT_ONCE):
        marks = ", ".join("?" * len(some))
        cursor.execute(f"SELECT {HELD} FROM subscription WHERE id IN ({marks})", some)
        for row in cursor.fetchall():
            yield row[0], Held(*row)


def row_of(entry: Entry) -> tuple[Any, ...]:
    """An entry as the table has it."""
    return (
        entry.position, entry.subscription, entry.owner, entry.number, entry.seq, entry.type,
        entry.id, entry.body.decode(), entry.at_us,
    )  # fmt: skip


def read_entry(row: Sequence[Any]) -> Entry:
    position, subscription, owner, number, seq, kind, name, body, at_us = row
    return Entry(position, subscription, owner, number, seq, kind, name, body.encode(), at_us)


def storable(text: str) -> str:
    """Text that every database takes: PostgreSQL has no NUL."""
    return text.replace("\x00", "�")


def chunks(items: Sequence[Any], size: int) -> Iterator[list[Any]]:
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some
