"""The operations of the ledger: apply changes, record results, read both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from placewire.model.errors import Unusable
from placewire.serve.ledger.database import (
    ACCOUNT,
    HISTORY,
    HISTORY_START,
    SET_META,
    TABLES,
    VERSION,
    Database,
    add_meta,
    get_meta,
)
from placewire.serve.ledger.deliveries import IN_ACCOUNT, Deliveries, give_up_before
from placewire.serve.ledger.ownership import (
    COLUMNS,
    MAX_NAMES,
    OwnerLookup,
    PastSubscription,
    apply_change,
    chunks,
    latest_of,
    order_history,
    purge_history,
    purge_owners,
)
from placewire.serve.ledger.rows import (
    RESULT_TYPES,
    Account,
    ApiKey,
    ResultEntry,
    SubscriptionChange,
    SubscriptionRow,
    fold,
    read_head,
)
from placewire.storage.journal import Note

ROW = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
MAX_VALUES = 990  # SQLite allows 999 parameters
EXPIRED_RESULTS = (
    "at_us < ? AND NOT EXISTS (SELECT 1 FROM dead_delivery x"
    " WHERE x.subscription = result.subscription AND x.owner = result.owner"
    " AND result.number BETWEEN x.first_number AND x.last_number)"
)
LATEST = (
    "NOT EXISTS (SELECT 1 FROM subscription o WHERE o.id = subscription.id"
    " AND o.seq > subscription.seq)"
)
ENTRY = "position, subscription, owner, number, seq, type, id, body, at_us"
EXPIRED_SUBSCRIPTIONS = (
    "(ended_seq < ? OR (seq < ? AND expires_us <= ?))"
    f" AND NOT EXISTS (SELECT 1 FROM result r WHERE r.{ACCOUNT} = subscription.{ACCOUNT})"
    " AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.subscription = subscription.id"
    " AND d.owner = subscription.owner)"
)


class Ledger:
    """Owners of subscriptions, numbered results, replies and API keys."""

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
                    " start a new one with `placewire serve --renew-ledger`"
                )
            cursor.execute(SET_META, ("version", VERSION))
            # An older ledger has history from now on.
            cursor.execute(
                SET_META,
                (HISTORY_START, get_meta(cursor, HISTORY_START, get_meta(cursor, "applied", 0))),
            )

    def close(self) -> None:
        self.database.close()

    def counts(self) -> dict[str, int]:
        """All counters, by name."""
        return {name: int(value) for name, value in self.database.read("SELECT * FROM meta")}

    def meta(self, name: str, otherwise: int) -> int:
        rows = self.database.read("SELECT value FROM meta WHERE name = ?", (name,))
        return int(rows[0][0]) if rows else otherwise

    @property
    def applied_seq(self) -> int:
        """The event up to which the journal's changes are applied."""
        return self.meta("applied", 0)

    @property
    def batch(self) -> int:
        """The last recorded batch."""
        return self.meta("batch", -1)

    @property
    def position(self) -> int:
        """The position of the last result."""
        return self.meta("position", 0)

    def set_journal(self, journal: int) -> None:
        """Store the id of the journal that the results come from."""
        if self.meta("journal", -1) != journal:
            with self.database.writing() as cursor:
                cursor.execute(SET_META, ("journal", journal))

    def assign_id(self, number: int) -> int:
        """Give the ledger an id, unless it has one; returns it."""
        with self.database.writing() as cursor:
            number = get_meta(cursor, "ledger", number)
            cursor.execute(SET_META, ("ledger", number))
        return number

    def restart_after(self, batch: int, least: int) -> None:
        """Continue after a batch despite missing results, with numbers above `least`.

        Readers that hold an older number then miss nothing new.
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

    def apply(
        self, changes: Iterable[SubscriptionChange], notes: Iterable[Note], applied: int
    ) -> None:
        """Apply changes and replies of the journal up to the event `applied`."""
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
        """The stored reply to an idempotency key."""
        rows = self.database.read(
            "SELECT body FROM reply WHERE owner = ? AND key = ?", (owner, key)
        )
        return msgspec.json.decode(rows[0][0]) if rows else None

    # Subscriptions.

    def find(self, name: str, owner: str | None = None) -> SubscriptionRow | None:
        """A subscription of an owner, or of the latest owner of the id."""
        rows = self.database.read(f"SELECT {COLUMNS} FROM subscription WHERE id = ?", (name,))
        found = [SubscriptionRow(*row) for row in rows]
        return latest_of([row for row in found if owner in (None, row.owner)])

    def history_of(self, name: str, owner: str | None = None) -> tuple[list[PastSubscription], int]:
        """The lifetimes of an id, of one owner or of all, and since when they are complete."""
        where, values = "WHERE id = ?", (name,)
        ended = self.database.read(
            f"SELECT seq, owner, end_seq, how, body FROM {HISTORY} {where}", values
        )
        rows = self.database.read(f"SELECT {COLUMNS} FROM subscription {where}", values)
        if not rows:
            return [], self.meta(HISTORY_START, 0)
        found = order_history(
            [PastSubscription(*row) for row in ended], [SubscriptionRow(*row) for row in rows]
        )
        return [past for past in found if owner in (None, past.owner)], self.meta(HISTORY_START, 0)

    def mark_history_gap(self, seq: int) -> None:
        """Record that changes before an event are unknown."""
        with self.database.writing() as cursor:
            purge_history(cursor, seq)

    def find_all(self, names: Sequence[str]) -> dict[str, SubscriptionRow]:
        """The latest subscription of each id."""
        found: dict[str, SubscriptionRow] = {}
        for some in chunks(names, MAX_NAMES):
            marks = ", ".join("?" * len(some))
            rows = self.database.read(
                f"SELECT {COLUMNS} FROM subscription WHERE id IN ({marks}) ORDER BY seq", some
            )
            found.update({row[0]: SubscriptionRow(*row) for row in rows})
        return found

    def list_subscriptions(
        self, owner: str | None, after: str, limit: int
    ) -> list[SubscriptionRow]:
        """Subscriptions of an owner, or the latest of each id, by id."""
        where, values = ("owner = ?", [owner]) if owner is not None else (LATEST, [])
        rows = self.database.read(
            f"SELECT {COLUMNS} FROM subscription WHERE {where} AND id > ? ORDER BY id LIMIT ?",
            [*values, after, limit],
        )
        return [SubscriptionRow(*row) for row in rows]

    # Results, as they are committed.

    def record(
        self,
        batch: int,
        lines: Iterable[bytes],
        letters: Iterable[dict[str, Any]],
        at_us: int,
        first: int | None = None,
    ) -> list[ResultEntry] | None:
        """Number and store the results of one batch, or of the batches `first` to `batch`.

        Returns None if any of them is recorded already.
        """
        heads = [(head, line) for line in lines if (head := read_head(line)).subscription]
        with self.database.writing() as cursor:
            if (batch if first is None else first) <= get_meta(cursor, "batch", -1):
                return None
            owners = OwnerLookup(cursor, sorted({head.subscription for head, _ in heads}))
            position = get_meta(cursor, "position", 0)
            entries: list[ResultEntry] = []
            values: list[Any] = []  # of all rows, flattened
            strays = 0
            for head, line in heads:
                name = head.subscription
                tally = owners.sole.get(name) or owners.find(head)
                if tally is None:
                    strays += 1  # its subscription is unknown
                    continue
                tally.numbers += 1
                position += 1
                if RESULT_TYPES[head.type].cumulative and head.belongs_to(tally.seq):
                    tally.standing = fold(tally.subscription.kind, tally.standing, head)
                row = (position, name, tally.owner, tally.numbers, head.seq, head.type,
                       head.result_id)  # fmt: skip
                entries.append(ResultEntry(*row, line, at_us))
                values += (*row, line.decode(), at_us, tally.account_number)
            for at in range(0, len(values), MAX_VALUES):
                # One statement for many rows: the driver releases the GIL at each statement.
                some = values[at : at + MAX_VALUES]
                marks = ", ".join([ROW] * (len(some) // ROW.count("?")))
                cursor.execute(f"INSERT INTO result ({ENTRY}, {ACCOUNT}) VALUES {marks}", some)
            cursor.executemany(
                "UPDATE subscription SET numbers = ?, standing = ? WHERE id = ? AND owner = ?",
                [(one.numbers, one.standing, *one.subscription[:2]) for one in owners.changed()],
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

    def results_of(self, account: Account, after: int, limit: int) -> list[ResultEntry]:
        """Results of an account after a number."""
        rows = self.database.read(
            f"SELECT {ENTRY} FROM result {IN_ACCOUNT} AND number > ? ORDER BY number LIMIT ?",
            [*account, after, limit],
        )
        return [read_entry(row) for row in rows]

    def results_after(self, owner: str | None, after: int, limit: int) -> list[ResultEntry]:
        """Results of an owner, or of all owners, after a position."""
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

    def purge_before(self, at_us: int, now_us: int) -> int:
        """Delete results and replies from before a time; returns the number of results.

        Results that a webhook still has to deliver become dead deliveries, which are kept as long
        again.
        """
        with self.database.writing() as cursor:
            give_up_before(cursor, at_us, now_us)
            cursor.execute(f"SELECT count(*) FROM result WHERE {EXPIRED_RESULTS}", (at_us,))
            gone = int(cursor.fetchone()[0])
            cursor.execute(f"DELETE FROM result WHERE {EXPIRED_RESULTS}", (at_us,))
            cursor.execute("DELETE FROM reply WHERE at_us < ?", (at_us,))
            add_meta(cursor, Counter(forgotten=gone))
        return gone

    def purge_ended(self, seq: int, event_us: int) -> None:
        """Delete dead letters and ended or expired subscriptions from before an event.

        `event_us` is the event clock. Subscriptions with results or a webhook stay.
        """
        with self.database.writing() as cursor:
            cursor.execute(
                f"DELETE FROM subscription WHERE {EXPIRED_SUBSCRIPTIONS}", (seq, seq, event_us)
            )
            cursor.execute("DELETE FROM dead_letter WHERE seq < ?", (seq,))
            purge_owners(cursor, seq)
            purge_history(cursor, seq)

    # API keys.

    def all_keys(self) -> list[ApiKey]:
        rows = self.database.read("SELECT name, digest, roles, made_us FROM api_key ORDER BY name")
        return [
            ApiKey(name, digest, tuple(roles.split(",")), made)
            for name, digest, roles, made in rows
        ]

    def add_key(self, key: ApiKey) -> bool:
        """Store a key; false if the name is taken."""
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


def read_entry(row: Sequence[Any]) -> ResultEntry:
    position, subscription, owner, number, seq, kind, name, body, at_us = row
    return ResultEntry(position, subscription, owner, number, seq, kind, name, body.encode(), at_us)


def storable(text: str) -> str:
    """Text that PostgreSQL can store: without NUL."""
    return text.replace("\x00", "�")
