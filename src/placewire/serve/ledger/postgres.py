"""The ledger's database in PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from placewire.model.errors import Unusable, one_line
from placewire.serve.errors import Unavailable
from placewire.serve.ledger.database import DatabaseCursor, Row

try:
    import psycopg
except ImportError:  # an extra
    psycopg = None  # type: ignore[assignment]


# Notice a lost server within seconds; the URL can override these.
TIMEOUTS = {"connect_timeout": 5, "keepalives_idle": 10, "tcp_user_timeout": 10_000}


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
        if psycopg is None:
            raise Unusable(
                "ledger: PostgreSQL needs psycopg, which is not installed:"
                " pip install 'placewire[postgres]'"
            )
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
        given = psycopg.conninfo.conninfo_to_dict(self.url)
        ours = {name: value for name, value in TIMEOUTS.items() if name not in given}
        address = psycopg.conninfo.make_conninfo(self.url, **ours)
        connection = psycopg.connect(address, autocommit=True)
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
            except psycopg.Error as error:
                if isinstance(error, psycopg.OperationalError):
                    with suppress(psycopg.Error):
                        self._writer.close()
                raise unavailable(error) from error

    def read(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        for last in (False, True):
            connection = getattr(self._reading, "connection", None)
            try:
                if connection is None or connection.closed:
                    connection = self._reading.connection = self._connect()
                return list(connection.execute(to_postgres(sql), values).fetchall())
            except psycopg.Error as error:
                if last or not isinstance(error, psycopg.OperationalError):
                    raise unavailable(error) from error
                if connection is not None:
                    with suppress(psycopg.Error):
                        connection.close()
        raise AssertionError

    def close(self) -> None:
        for connection in self._opened:
            connection.close()
