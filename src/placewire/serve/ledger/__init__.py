"""The ledger: owners of subscriptions and numbered results, in SQLite or PostgreSQL.

Subscriptions follow from the journal and are applied again after a crash. Results come from the
outbox, each batch in one transaction with its number, so none is lost or recorded twice.

`ledger` has the operations, `rows` the row types, `database` the schema and both databases.
`ownership` decides which owner a result belongs to, `deliveries` keeps webhook state, `recorder`
follows the pipeline's commits, and `identity` ties a ledger to its state directory.
"""

from __future__ import annotations

import re
from pathlib import Path

from placewire.model.errors import Unusable
from placewire.serve.ledger.database import Postgres, Sqlite
from placewire.serve.ledger.ledger import Ledger
from placewire.serve.ledger.rows import (
    Account,
    ApiKey,
    ResultEntry,
    SubscriptionChange,
    SubscriptionRow,
)

__all__ = [
    "LEDGER_FILE",
    "Account",
    "ApiKey",
    "Ledger",
    "ResultEntry",
    "SubscriptionChange",
    "SubscriptionRow",
    "is_postgres",
    "open_ledger",
]


SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
LEDGER_FILE = "ledger.sqlite"  # in a state directory
POSTGRES = ("postgres", "postgresql")


def is_postgres(address: str | Path) -> bool:
    """Whether an address is a PostgreSQL URL; raises Unusable for other URLs."""
    found = SCHEME.match(str(address))
    if found is not None and found[1].lower() not in POSTGRES:
        # Do not show the rest: it may contain a password.
        raise Unusable(
            "ledger: must be a postgresql:// URL, or left out for a file in the state,"
            f" got {found[0]}..."
        )
    return found is not None


def open_ledger(address: str | Path) -> Ledger:
    """Open a ledger in a file, or in PostgreSQL by URL; raises Unusable."""
    if is_postgres(address):
        return Ledger(Postgres(str(address)))
    return Ledger(Sqlite(Path(address)))
