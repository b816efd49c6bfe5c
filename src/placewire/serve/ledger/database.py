"""A database as the ledger wants it: one connection that writes, others that read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Row = Sequence[Any]


class Cursor(Protocol):
    """What both drivers' cursors can do."""

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any: ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> Any: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Database(Protocol):
    """Where the ledger's tables are. SQL has `?` where a value goes."""

    row_number: str  # the type of a table's own numbers

    def writing(self) -> AbstractContextManager[Cursor]:
        """A transaction, one at a time: all of it is kept, durably, or nothing."""

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """What a query gives, from any thread."""

    def close(self) -> None: ...
