"""Completion: what may follow on the command line, as far as it is cheap to know."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import typer

KINDS = ("boolean", "nearest", "relevant", "trending")
ROLES = ("publish", "subscribe", "admin")
MOST_IDS = 200
PATIENCE_S = 0.5


def beginning(words: tuple[str, ...] | list[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def complete_kind(incomplete: str) -> list[str]:
    return beginning(KINDS, incomplete)


def complete_role(incomplete: str) -> list[str]:
    return beginning(ROLES, incomplete)


def complete_plan(incomplete: str) -> list[str]:
    """Names of plans of all kinds."""
    from placewire.plans.names import PLANS

    return beginning(
        list(dict.fromkeys(name for names in PLANS.values() for name in names)), incomplete
    )


def complete_cut(incomplete: str) -> list[str]:
    """Names of boolean plans that can be asked for."""
    from placewire.plans.boolean.methods import METHODS

    return beginning(["shared", *METHODS], incomplete)


def complete_rebalance(incomplete: str) -> list[str]:
    from placewire.plans.rebalance.rebalancer import REBALANCERS

    return beginning(REBALANCERS, incomplete)


def complete_subscription(context: typer.Context, incomplete: str) -> list[str]:
    """Ids of subscriptions, of the ledger of a state or of a server; nothing if that fails."""
    from placewire.cli.targets import read_target
    from placewire.model.errors import Unusable

    given = context.params
    state = given.get("state")
    try:
        target = read_target(given.get("server"), Path(state) if state else None, given.get("key"))
        if target.state is not None:
            return ids_of_file(target.state / "ledger.sqlite", incomplete)
        from placewire.serve.client import Client

        with Client(target.server or "", target.key, patience_s=0.0) as client:
            client.calls.http.timeout = PATIENCE_S
            page = client.calls.ask("GET", "/v1/subscriptions", params={"limit": str(MOST_IDS)})
            return beginning([one["id"] for one in page["subscriptions"]], incomplete)
    except (Unusable, OSError, sqlite3.Error):
        return []


def ids_of_file(path: Path, incomplete: str) -> list[str]:
    """Ids that begin so, of live subscriptions; reads the file and nothing else."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=PATIENCE_S
    )
    try:
        rows = connection.execute(
            "SELECT id FROM subscription WHERE ended_seq IS NULL AND substr(id, 1, ?) = ?"
            " ORDER BY id LIMIT ?",
            (len(incomplete), incomplete, MOST_IDS),
        ).fetchall()
    finally:
        connection.close()
    return [str(row[0]) for row in rows]
