"""The ledger: who owns which subscription, and every result with its number, in a database.

What it knows of subscriptions follows from the journal and its notes, and is applied again from
there after a crash; results come from the outbox, each batch in one transaction with its number,
so that none is lost and none is there twice. `rows` has its vocabulary, `schema` its tables,
`tenures` whose a result is, `ledger` what can be done with all this, `keys` who may call,
`deliveries` and its `parcels` what goes to webhooks, `sqlite` and `postgres` where they are.
"""

from __future__ import annotations

from pathlib import Path

from placewire.serve.ledger.ledger import Ledger
from placewire.serve.ledger.rows import Account, Change, Entry, Held, Key

__all__ = ["Account", "Change", "Entry", "Held", "Key", "Ledger", "open_ledger"]


def open_ledger(address: str | Path) -> Ledger:
    """A ledger in a file, or in PostgreSQL by a URL; raises Unusable."""
    if str(address).startswith(("postgres://", "postgresql://")):
        from placewire.serve.ledger.postgres import Postgres

        return Ledger(Postgres(str(address)))
    from placewire.serve.ledger.sqlite import Sqlite

    return Ledger(Sqlite(Path(address)))
