"""API keys in the ledger: their names, roles and digests."""

from __future__ import annotations

from placewire.serve.ledger.database import Database
from placewire.serve.ledger.rows import Key


class Keys:
    """The part of the ledger that knows who may call."""

    database: Database

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
