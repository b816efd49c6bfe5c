"""The ledger: who owns which subscription, and every result with its number, in a database.

What it knows of subscriptions follows from the journal and its notes, and is applied again from
there after a crash; results come from the outbox, each batch in one transaction with its number,
so that none is lost and none is there twice. `rows` has its vocabulary, `schema` its tables,
`tenures` whose a result is, `spells` what an id was before, `ledger` what can be done with all
this, `keys` who may call, `deliveries` and its `parcels` what goes to webhooks, `sqlite` and
`postgres` where they are.
"""

from __future__ import annotations

import re
from pathlib import Path

from placewire.model.errors import Unusable
from placewire.serve.ledger.ledger import Ledger
from placewire.serve.ledger.rows import Account, Change, Entry, Held, Key

__all__ = ["Account", "Change", "Entry", "Held", "Key", "Ledger", "is_postgres", "open_ledger"]


SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
POSTGRES = ("postgres", "postgresql")


def is_postgres(address: str | Path) -> bool:
    """Whether a ledger is in PostgreSQL, and not in a file; raises Unusable if it is in neither."""
    found = SCHEME.match(str(address))
    if found is not None and found[1].lower() not in POSTGRES:
        # A URL may have a password in it.
        raise Unusable(
            "ledger: must be a postgresql:// URL, or left out for a file in the state,"
            f" got {found[0]}..."
        )
    return found is not None


def open_ledger(address: str | Path) -> Ledger:
    """A ledger in a file, or in PostgreSQL by a URL; raises Unusable."""
    if is_postgres(address):
        from placewire.serve.ledger.postgres import Postgres

        return Ledger(Postgres(str(address)))
    from placewire.serve.ledger.database import Sqlite

    return Ledger(Sqlite(Path(address)))
