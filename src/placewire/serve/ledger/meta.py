"""Single numbers that the ledger keeps: how far it is, and what was counted."""

from __future__ import annotations

from collections import Counter

from placewire.serve.ledger.database import Cursor

SET_META = (
    "INSERT INTO meta (name, value) VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
ADD_META = (
    "INSERT INTO meta (name, value) VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET value = meta.value + excluded.value"
)


def get_meta(cursor: Cursor, name: str, otherwise: int) -> int:
    cursor.execute("SELECT value FROM meta WHERE name = ?", (name,))
    row = cursor.fetchone()
    return int(row[0]) if row else otherwise


def add_meta(cursor: Cursor, counted: Counter[str]) -> None:
    """Add to counts that only grow."""
    cursor.executemany(ADD_META, [(name, n) for name, n in sorted(counted.items()) if n])
