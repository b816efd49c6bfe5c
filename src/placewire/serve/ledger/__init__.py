"""The ledger: owners of subscriptions and numbered results, in SQLite or PostgreSQL.

Subscriptions follow from the journal and are applied again after a crash. Results come from the
outbox, each batch in one transaction with its number, so none is lost or recorded twice.

`ledger` has the operations, `rows` the row types, `database` the schema and both databases.
`ownership` decides which owner a result belongs to, `deliveries` keeps webhook state, and
`recorder` follows the pipeline's commits.

Here a ledger is opened and checked to belong to its state directory. Results are numbered once,
when their batch is recorded, and recorded batches may be deleted from the outbox: a ledger that is
behind what the state has deleted cannot be rebuilt from it.
"""

from __future__ import annotations

import re
import secrets
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
from placewire.storage.journal import journal_folder, read_id
from placewire.storage.layout import StateDir, write_file
from placewire.storage.manifest import committed_batches, read_latest

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


NUMBER_DIGITS = 15  # hex digits of a journal id that fit into 64 bits
REMEDY = (
    "restore that ledger, or continue without its data with `placewire serve --renew-ledger`:"
    " see `docs/how-to/back-up.md`, A lost ledger"
)

MARKER = "LEDGER"  # file in the state directory with the id of its ledger
NUMBER_BITS = 60


def has_ledger(state: StateDir) -> bool:
    """Whether the state directory has had a ledger, which may be lost."""
    return (state.root / MARKER).exists()


def is_ledger_of(ledger: Ledger, state: StateDir) -> bool:
    """Whether a ledger is the state's own, or the state has had none; raises Unusable."""
    try:
        noted = (state.root / MARKER).read_text().strip()
    except FileNotFoundError:
        return True
    except OSError as error:
        raise Unusable(f"state {state.root}: cannot be read: {error.strerror}") from None
    return noted == f"{ledger.meta('ledger', 0):x}"


def check_ledger(ledger: Ledger, state: StateDir) -> None:
    """Raise Unusable if a ledger is not the state's own."""
    if not is_ledger_of(ledger, state):
        raise Unusable(lost_ledger(state))


def lost_ledger(state: StateDir) -> str:
    """The error for a missing or foreign ledger."""
    return (
        f"ledger: is missing, or is not that of state {state.root}, which holds its keys and"
        f" webhooks: {REMEDY}"
    )


def mark_ledger(ledger: Ledger, state: StateDir) -> None:
    """Record in the state directory that this is its ledger."""
    if has_ledger(state) and is_ledger_of(ledger, state):
        return
    number = ledger.assign_id(secrets.randbits(NUMBER_BITS) | 1)
    try:
        write_file(state.root / MARKER, f"{number:x}\n".encode())
    except OSError as error:
        raise Unusable(f"state {state.root}: cannot be written: {error.strerror}") from None


def bind_ledger(ledger: Ledger, state: StateDir, next_seq: int, renew: bool = False) -> str:
    """Check a ledger against a state whose journal ends at `next_seq`; raises Unusable.

    With `renew`, a ledger that lacks results continues without them; returns what was done, in one
    line.
    """
    ours = int(read_id(journal_folder(state))[:NUMBER_DIGITS], 16)
    if ledger.meta("journal", ours) != ours:
        raise Unusable(
            f"ledger: belongs to another state than {state.root}; each state needs its own ledger"
        )
    ledger.set_journal(ours)
    known = committed_batches(state) if state.manifests.exists() else []
    batch, applied = ledger.batch, ledger.applied_seq
    if applied > next_seq:
        raise Unusable(
            f"ledger: knows events up to {applied}, and the journal of state {state.root} has"
            f" {next_seq}: the state is an older copy; use the ledger that was copied with it"
        )
    own = is_ledger_of(ledger, state)
    whole = not known or known[0] - 1 <= batch <= known[-1]
    if not renew and not whole:
        raise Unusable(
            f"ledger: has results up to batch {batch}, and state {state.root} keeps those from"
            f" batch {known[0]} to {known[-1]}: {REMEDY}"
        )
    if not renew:
        check_ledger(ledger, state)
    mark_ledger(ledger, state)
    if own and whole:
        return ""
    if not known:
        return "started a new ledger; keys and webhooks of the former one are lost"
    latest = read_latest(state)
    least = latest.counters.results if latest is not None else 0
    last = batch if whole else known[0] - 1
    ledger.restart_after(last, least)
    return (
        f"the ledger restarts with batch {last + 1}; results are numbered from {least + 1:,} on;"
        " older results, keys and webhooks are lost"
    )
