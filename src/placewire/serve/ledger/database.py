"""The ledger's schema, and the databases that can store it: SQLite and PostgreSQL.

The tables use the SQL that both share. `ROW_NUMBER` stands for a database's 64-bit type of row ids.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from placewire.model.errors import Unusable, one_line
from placewire.serve import Unavailable

Row = Sequence[Any]
VERSION = 3
# Former names, kept on disk because renaming them would need a migration.
OWNERS, HISTORY, ACCOUNT, HISTORY_START = "tenure", "spell", "folio", "spells"
TABLES = (
    "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL)",
    f"""CREATE TABLE IF NOT EXISTS subscription (
        id TEXT NOT NULL, owner TEXT NOT NULL, kind TEXT NOT NULL, seq BIGINT NOT NULL,
        since_us BIGINT NOT NULL, expires_us BIGINT, ended_seq BIGINT, owned_seq BIGINT NOT NULL,
        numbers BIGINT NOT NULL, body TEXT NOT NULL, standing TEXT,
        {ACCOUNT} BIGINT NOT NULL, PRIMARY KEY (id, owner))""",
    "CREATE INDEX IF NOT EXISTS subscription_owner ON subscription (owner, id)",
    f"""CREATE TABLE IF NOT EXISTS {OWNERS} (
        id TEXT NOT NULL, first_seq BIGINT NOT NULL, owner TEXT NOT NULL,
        PRIMARY KEY (id, first_seq))""",
    f"""CREATE TABLE IF NOT EXISTS {HISTORY} (
        id TEXT NOT NULL, seq BIGINT NOT NULL, owner TEXT NOT NULL, end_seq BIGINT NOT NULL,
        how TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (id, seq))""",
    f"""CREATE TABLE IF NOT EXISTS result (
        position ROW_NUMBER PRIMARY KEY, subscription TEXT NOT NULL, owner TEXT NOT NULL,
        number BIGINT NOT NULL, seq BIGINT NOT NULL, type TEXT NOT NULL, id TEXT NOT NULL,
        body TEXT NOT NULL, at_us BIGINT NOT NULL, {ACCOUNT} BIGINT NOT NULL)""",
    f"CREATE UNIQUE INDEX IF NOT EXISTS result_number ON result ({ACCOUNT}, number)",
    "CREATE INDEX IF NOT EXISTS result_owner ON result (owner, position)",
    """CREATE TABLE IF NOT EXISTS dead_letter (
        seq ROW_NUMBER PRIMARY KEY, error TEXT NOT NULL, event TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS reply (
        owner TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL, at_us BIGINT NOT NULL,
        PRIMARY KEY (owner, key))""",
    """CREATE TABLE IF NOT EXISTS api_key (
        name TEXT PRIMARY KEY, digest TEXT NOT NULL UNIQUE, roles TEXT NOT NULL,
        made_us BIGINT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS delivery (
        subscription TEXT NOT NULL, owner TEXT NOT NULL, token TEXT NOT NULL,
        url TEXT NOT NULL, secret TEXT NOT NULL,
        throttle_us BIGINT NOT NULL, digest_us BIGINT NOT NULL,
        number BIGINT NOT NULL, taken BIGINT NOT NULL, delivered BIGINT NOT NULL,
        dropped BIGINT NOT NULL, failed BIGINT NOT NULL, attempts BIGINT NOT NULL,
        next_us BIGINT NOT NULL, sent_us BIGINT NOT NULL, error TEXT NOT NULL,
        ended TEXT NOT NULL, PRIMARY KEY (subscription, owner))""",
    """CREATE TABLE IF NOT EXISTS dead_delivery (
        subscription TEXT NOT NULL, owner TEXT NOT NULL, token TEXT NOT NULL,
        first_number BIGINT NOT NULL, last_number BIGINT NOT NULL, attempts BIGINT NOT NULL,
        error TEXT NOT NULL, at_us BIGINT NOT NULL, again BIGINT NOT NULL,
        PRIMARY KEY (subscription, owner, token, first_number))""",
)
SET_META = (
    "INSERT INTO meta (name, value) VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
ADD_META = (
    "INSERT INTO meta (name, value) VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET value = meta.value + excluded.value"
)
BUSY_S = 30.0
# Notice a lost server within seconds; the URL can override these.
TIMEOUTS = {"connect_timeout": 5, "keepalives_idle": 10, "tcp_user_timeout": 10_000}


class DatabaseCursor(Protocol):
    """The cursor methods that both drivers have."""

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any: ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> Any: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Database(Protocol):
    """A database with one writing connection. SQL uses `?` for parameters."""

    row_number: str  # the SQL type of row ids

    def writing(self) -> AbstractContextManager[DatabaseCursor]:
        """A durable transaction; one at a time."""

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows of a query, from any thread."""

    def close(self) -> None: ...


def get_meta(cursor: DatabaseCursor, name: str, otherwise: int) -> int:
    cursor.execute("SELECT value FROM meta WHERE name = ?", (name,))
    row = cursor.fetchone()
    return int(row[0]) if row else otherwise


def add_meta(cursor: DatabaseCursor, counted: Counter[str]) -> None:
    cursor.executemany(ADD_META, [(name, n) for name, n in sorted(counted.items()) if n])


class Sqlite:
    """A database file in WAL mode; each thread reads over its own connection."""

    row_number = "INTEGER"  # the rowid, which needs no other index

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._reading = threading.local()
        self._opened: list[sqlite3.Connection] = []
        try:
            self._writer = self._connect()
            # Commits must survive a power cut: the outbox is deleted after them.
            self._writer.execute("PRAGMA synchronous = FULL")
            self._writer.execute("PRAGMA journal_mode = WAL")
        except sqlite3.Error as error:
            raise Unusable(f"ledger {path}: cannot be used: {error}") from None

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        self._opened.append(connection)
        return connection

    @contextmanager
    def writing(self) -> Iterator[DatabaseCursor]:
        with self._lock:
            try:
                cursor = self._writer.cursor()
                cursor.execute("BEGIN IMMEDIATE")
                try:
                    yield cursor
                    cursor.execute("COMMIT")
                except BaseException:
                    # A full disk may or may not have ended the transaction.
                    if self._writer.in_transaction:
                        cursor.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise Unavailable(f"ledger {self.path.name}: {error}") from error

    def read(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        try:
            connection = getattr(self._reading, "connection", None)
            if connection is None:
                connection = self._reading.connection = self._connect()
            return connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise Unavailable(f"ledger {self.path.name}: {error}") from error

    def close(self) -> None:
        for connection in self._opened:
            connection.close()


def to_postgres(sql: str) -> str:
    """Translate `?` to the driver's placeholder; the ledger's SQL has neither in literals."""
    return sql.replace("?", "%s")


def unavailable(error: Exception) -> Unavailable:
    return Unavailable(f"ledger: PostgreSQL: {one_line(error)}")


class PostgresCursor:
    """A cursor that accepts the ledger's SQL."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return self._cursor.execute(to_postgres(sql), values)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> Any:
        return self._cursor.executemany(to_postgres(sql), list(rows))

    def fetchone(self) -> Any:
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        return list(self._cursor.fetchall())


class Postgres:
    """A PostgreSQL database; lost connections are reopened."""

    row_number = "BIGINT"

    def __init__(self, url: str) -> None:
        try:
            import psycopg  # an extra
        except ImportError:
            raise Unusable(
                "ledger: PostgreSQL needs psycopg, which is not installed:"
                " pip install 'placewire[postgres]'"
            ) from None
        self._driver: Any = psycopg
        self.url = url
        self._lock = threading.Lock()
        self._writer: Any = None
        self._reading = threading.local()
        self._opening = threading.Lock()
        self._opened: list[Any] = []
        try:
            self._writer = self._connect()
        except psycopg.Error as error:
            raise Unusable(f"ledger: PostgreSQL cannot be reached: {one_line(error)}") from None

    def _connect(self) -> Any:
        given = self._driver.conninfo.conninfo_to_dict(self.url)
        ours = {name: value for name, value in TIMEOUTS.items() if name not in given}
        address = self._driver.conninfo.make_conninfo(self.url, **ours)
        connection = self._driver.connect(address, autocommit=True)
        with self._opening:
            self._opened = [one for one in self._opened if not one.closed] + [connection]
        return connection

    @contextmanager
    def writing(self) -> Iterator[DatabaseCursor]:
        with self._lock:
            try:
                if self._writer.closed:
                    self._writer = self._connect()
                with self._writer.transaction(), self._writer.cursor() as cursor:
                    yield PostgresCursor(cursor)
            except self._driver.Error as error:
                if isinstance(error, self._driver.OperationalError):
                    with suppress(self._driver.Error):
                        self._writer.close()
                raise unavailable(error) from error

    def read(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        for last in (False, True):
            connection = getattr(self._reading, "connection", None)
            try:
                if connection is None or connection.closed:
                    connection = self._reading.connection = self._connect()
                return list(connection.execute(to_postgres(sql), values).fetchall())
            except self._driver.Error as error:
                if last or not isinstance(error, self._driver.OperationalError):
                    raise unavailable(error) from error
                if connection is not None:
                    with suppress(self._driver.Error):
                        connection.close()
        raise AssertionError

    def close(self) -> None:
        for connection in self._opened:
            connection.close()
