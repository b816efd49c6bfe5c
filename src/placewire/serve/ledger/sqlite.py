"""The ledger in a file: SQLite, with a log of its own so that readers never wait."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from placewire.model.errors import Unusable
from placewire.serve.errors import Unavailable
from placewire.serve.ledger.database import Cursor, Row

BUSY_S = 30.0


class Sqlite:
    """A database in a file; each thread reads by a connection of its own."""

    row_number = "INTEGER"  # the row's own number, which needs no index beside it

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._reading = threading.local()
        self._opened: list[sqlite3.Connection] = []
        try:
            self._writer = self._connect()
            # What is committed must survive a power cut: the outbox is swept after it.
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
    def writing(self) -> Iterator[Cursor]:
        with self._lock:
            try:
                cursor = self._writer.cursor()
                cursor.execute("BEGIN IMMEDIATE")
                try:
                    yield cursor
                    cursor.execute("COMMIT")
                except BaseException:
                    # A full disk may have ended the transaction, or kept it open.
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
