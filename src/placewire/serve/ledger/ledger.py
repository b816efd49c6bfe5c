"""What can be done with the ledger: apply changes, record results, read both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from placewire.model.errors import Unusable
from placewire.serve.kinds import RESULT_TYPES, fold, read_head
from placewire.serve.ledger.database import SET_META, TABLES, VERSION, Database, add_meta, get_meta
from placewire.serve.ledger.deliveries import OF_FOLIO, Deliveries, give_up_before
from placewire.serve.ledger.ownership import (
    AT_ONCE,
    HELD,
    SINCE,
    Holders,
    Past,
    apply_change,
    chunks,
    forget_spells,
    forget_tenures,
    latest_of,
    order_spells,
)
from placewire.serve.ledger.rows import Account, Change, Entry, Held, Key
from placewire.state.journal import Note

ROW = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
VALUES_AT_ONCE = 990  # a statement of SQLite may have 999
FORGETTABLE = (
    "at_us < ? AND NOT EXISTS (SELECT 1 FROM dead_delivery x"
    " WHERE x.subscription = result.subscription AND x.owner = result.owner"
    " AND result.number BETWEEN x.first_number AND x.last_number)"
)
LATEST = (
    "NOT EXISTS (SELECT 1 FROM subscription o WHERE o.id = subscription.id"
    " AND o.seq > subscription.seq)"
)
ENTRY = "position, subscription, owner, number, seq, type, id, body, at_us"


class Ledger:
    """Who owns which subscription, and every result with its number."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.deliveries = Deliveries(database)
        with database.writing() as cursor:
            for table in TABLES:
                cursor.execute(table.replace("ROW_NUMBER", database.row_number))
            found = get_meta(cursor, "version", VERSION)
            if found != VERSION:
                raise Unusable(
                    f"ledger: needs version {VERSION}, got {found}; move it away, and"
                    " `placewire serve --renew-ledger` begins a new one"
                )
            cursor.execute(SET_META, ("version", VERSION))
            # One from before spells were kept has them from now on.
            cursor.execute(
                SET_META, (SINCE, get_meta(cursor, SINCE, get_meta(cursor, "applied", 0)))
            )

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

    def note_journal(self, journal: int) -> None:
        """Keep whose results these are, by the number of a journal."""
        if self.meta("journal", -1) != journal:
            with self.database.writing() as cursor:
                cursor.execute(SET_META, ("journal", journal))

    def number_itself(self, number: int) -> int:
        """By what a state knows this ledger again: a number that it keeps, or has already."""
        with self.database.writing() as cursor:
            number = get_meta(cursor, "ledger", number)
            cursor.execute(SET_META, ("ledger", number))
        return number

    def begin_again(self, batch: int, least: int) -> None:
        """Go on after a batch, whatever is missing; numbers go on above `least`.

        Whoever has read up to a number that was given before misses nothing that comes.
        """
        with self.database.writing() as cursor:
            position = max(get_meta(cursor, "position", 0), least)
            facts = (("batch", batch), ("position", position), ("least", least))
            cursor.executemany(SET_META, facts)
            cursor.execute(
                "UPDATE delivery SET number = ?, taken = ?, attempts = 0, next_us = 0"
                " WHERE number < ?",
                (least, least, least),
            )
            cursor.execute("UPDATE subscription SET numbers = ? WHERE numbers < ?", (least, least))

    # Changes, as they are accepted.

    def apply(self, changes: Iterable[Change], notes: Iterable[Note], applied: int) -> None:
        """Take in changes and replies of the journal up to the event `applied`."""
        with self.database.writing() as cursor:
            least = get_meta(cursor, "least", 0)
            for change in changes:
                apply_change(cursor, change, least)
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

    def find(self, name: str, owner: str | None = None) -> Held | None:
        """A subscription of an owner, or of whoever had the id last."""
        rows = self.database.read(f"SELECT {HELD} FROM subscription WHERE id = ?", (name,))
        found = [Held(*row) for row in rows]
        return latest_of([held for held in found if owner in (None, held.owner)])

    def spells_of(self, name: str, owner: str | None = None) -> tuple[list[Past], int]:
        """All that an id was, of an owner or of everybody, and since which event that is whole."""
        where, values = "WHERE id = ?", (name,)
        rows = self.database.read(
            f"SELECT seq, owner, end_seq, how, body FROM spell {where}", values
        )
        held = self.database.read(f"SELECT {HELD} FROM subscription {where}", values)
        if not held:
            return [], self.meta(SINCE, 0)
        found = order_spells([Past(*row) for row in rows], [Held(*row) for row in held])
        return [past for past in found if owner in (None, past.owner)], self.meta(SINCE, 0)

    def miss_spells(self, seq: int) -> None:
        """Note that changes before an event are not known."""
        with self.database.writing() as cursor:
            forget_spells(cursor, seq)

    def find_all(self, names: Sequence[str]) -> dict[str, Held]:
        """Those who had these ids last."""
        found: dict[str, Held] = {}
        for some in chunks(names, AT_ONCE):
            marks = ", ".join("?" * len(some))
            rows = self.database.read(
                f"SELECT {HELD} FROM subscription WHERE id IN ({marks}) ORDER BY seq", some
            )
            found.update({row[0]: Held(*row) for row in rows})
        return found

    def list_held(self, owner: str | None, after: str, limit: int) -> list[Held]:
        """Subscriptions of an owner, or of those who had each id last, by id."""
        where, values = ("owner = ?", [owner]) if owner is not None else (LATEST, [])
        rows = self.database.read(
            f"SELECT {HELD} FROM subscription WHERE {where} AND id > ? ORDER BY id LIMIT ?",
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
        heads = [(head, line) for line in lines if (head := read_head(line)).subscription]
        with self.database.writing() as cursor:
            if (batch if first is None else first) <= get_meta(cursor, "batch", -1):
                return None
            holders = Holders(cursor, sorted({head.subscription for head, _ in heads}))
            position = get_meta(cursor, "position", 0)
            entries: list[Entry] = []
            values: list[Any] = []  # of rows, one after the other
            strays = 0
            for head, line in heads:
                name = head.subscription
                posting = holders.sole.get(name) or holders.find(head)
                if posting is None:
                    strays += 1  # of a subscription that the ledger does not know
                    continue
                posting.numbers += 1
                position += 1
                if RESULT_TYPES[head.type].cumulative and head.belongs_to(posting.seq):
                    posting.standing = fold(posting.held.kind, posting.standing, head)
                row = (position, name, posting.owner, posting.numbers, head.seq, head.type,
                       head.result_id)  # fmt: skip
                entries.append(Entry(*row, line, at_us))
                values += (*row, line.decode(), at_us, posting.folio)
            for at in range(0, len(values), VALUES_AT_ONCE):
                # In one statement: the driver lets go of Python's lock at each.
                some = values[at : at + VALUES_AT_ONCE]
                marks = ", ".join([ROW] * (len(some) // ROW.count("?")))
                cursor.execute(f"INSERT INTO result ({ENTRY}, folio) VALUES {marks}", some)
            cursor.executemany(
                "UPDATE subscription SET numbers = ?, standing = ? WHERE id = ? AND owner = ?",
                [(one.numbers, one.standing, *one.held[:2]) for one in holders.changed()],
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

    def results_of(self, account: Account, after: int, limit: int) -> list[Entry]:
        """Results of an account from a number on."""
        rows = self.database.read(
            f"SELECT {ENTRY} FROM result {OF_FOLIO} AND number > ? ORDER BY number LIMIT ?",
            [*account, after, limit],
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
            forget_tenures(cursor, seq)
            forget_spells(cursor, seq)

    # API keys.

    def all_keys(self) -> list[Key]:
        rows = self.database.read("SELECT name, digest, roles, made_us FROM api_key ORDER BY name")
        return [
            Key(name, digest, tuple(roles.split(",")), made) for name, digest, roles, made in rows
        ]

    def add_key(self, key: Key) -> bool:
        """Keep a key; false if there is one of that name."""
        with self.database.writing() as cursor:
            cursor.execute("SELECT 1 FROM api_key WHERE name = ?", (key.name,))
            if cursor.fetchone():
                return False
            cursor.execute(
                "INSERT INTO api_key (name, digest, roles, made_us) VALUES (?, ?, ?, ?)",
                (key.name, key.digest, ",".join(key.roles), key.made_us),
            )
        return True

    def end_key(self, name: str) -> bool:
        with self.database.writing() as cursor:
            cursor.execute("SELECT 1 FROM api_key WHERE name = ?", (name,))
            known = cursor.fetchone() is not None
            cursor.execute("DELETE FROM api_key WHERE name = ?", (name,))
        return known


FORGOTTEN = (
    "(ended_seq < ? OR (seq < ? AND expires_us <= ?))"
    " AND NOT EXISTS (SELECT 1 FROM result r WHERE r.folio = subscription.folio)"
    " AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.subscription = subscription.id"
    " AND d.owner = subscription.owner)"
)


def read_entry(row: Sequence[Any]) -> Entry:
    position, subscription, owner, number, seq, kind, name, body, at_us = row
    return Entry(position, subscription, owner, number, seq, kind, name, body.encode(), at_us)


def storable(text: str) -> str:
    """Text that every database takes: PostgreSQL has no NUL."""
    return text.replace("\x00", "�")
