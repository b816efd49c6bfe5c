"""Commands about API keys: make one, list them, end one."""

from __future__ import annotations

from typing import Annotated

import typer

from placewire.cli.app import AS_JSON, SERVICE, app
from placewire.cli.completing import complete_role
from placewire.cli.targets import (
    KeyOption,
    LedgerOption,
    ServerOption,
    StateOption,
    read_target,
)

keys = typer.Typer(help="API keys: who may publish, subscribe, or do everything.")
app.add_typer(keys, name="keys", rich_help_panel=SERVICE)


@keys.command()
def add(
    name: Annotated[str, typer.Argument(help="Whose it is.")],
    role: Annotated[
        list[str],
        typer.Option(
            help="publish, subscribe or admin; may be given again.", autocompletion=complete_role
        ),
    ],
    server: ServerOption = None,
    state: StateOption = None,
    key: KeyOption = None,
    ledger: LedgerOption = "",
    json: Annotated[bool, typer.Option("--json", help=AS_JSON)] = False,
) -> None:
    """Make a key. It is shown this once."""
    from placewire.cli.keys import add_key

    add_key(name, role, read_target(server, state, key, ledger), json)


@keys.command("list")
def list_(
    server: ServerOption = None,
    state: StateOption = None,
    key: KeyOption = None,
    ledger: LedgerOption = "",
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each.")] = False,
) -> None:
    """List keys by name and role, never themselves."""
    from placewire.cli.keys import list_keys

    list_keys(read_target(server, state, key, ledger), json)


@keys.command("end")
def end_(
    name: Annotated[str, typer.Argument(help="Whose it is.")],
    server: ServerOption = None,
    state: StateOption = None,
    key: KeyOption = None,
    ledger: LedgerOption = "",
    json: Annotated[bool, typer.Option("--json", help=AS_JSON)] = False,
) -> None:
    """End a key; its subscriptions stay."""
    from placewire.cli.keys import end_key

    end_key(name, read_target(server, state, key, ledger), json)
