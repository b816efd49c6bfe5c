"""`placewire keys`: add, list and end the API keys of a server or of a state's ledger."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from placewire.cli.commands import SERVICE, app
from placewire.cli.connection import CommandTarget, open_reader, read_target
from placewire.cli.options import (
    JsonLinesOption,
    JsonOption,
    KeyOption,
    LedgerOption,
    ServerOption,
    StateOption,
    complete_role,
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
    json: JsonOption = False,
) -> None:
    """Make a key. It is shown this once."""
    add_key(name, role, read_target(server, state, key, ledger), json)


@keys.command("list")
def list_(
    server: ServerOption = None,
    state: StateOption = None,
    key: KeyOption = None,
    ledger: LedgerOption = "",
    json: JsonLinesOption = False,
) -> None:
    """List keys by name and role, never themselves."""
    list_keys(read_target(server, state, key, ledger), json)


@keys.command("end")
def end_(
    name: Annotated[str, typer.Argument(help="Whose it is.")],
    server: ServerOption = None,
    state: StateOption = None,
    key: KeyOption = None,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """End a key; its subscriptions stay."""
    end_key(name, read_target(server, state, key, ledger), json)


def add_key(name: str, roles: list[str], target: CommandTarget, as_json: bool) -> None:
    """Create a key and print it, alone on standard output; raises Unusable."""
    with open_reader(target, make=True) as reader:
        made = reader.add_key(name, roles)
    if as_json:
        print(json.dumps(made))
    else:
        print(f"key {name} ({', '.join(made['roles'])}), shown this once:", file=sys.stderr)
        print(made["key"])


def list_keys(target: CommandTarget, as_json: bool) -> None:
    """Print the names and roles of keys; raises Unusable."""
    with open_reader(target) as reader:
        found = reader.keys()
    for one in found:
        print(json.dumps(one) if as_json else f"{one['name']}: {', '.join(one['roles'])}")
    if not found:
        print("no keys", file=sys.stderr)


def end_key(name: str, target: CommandTarget, as_json: bool) -> None:
    """Revoke a key; raises Unusable."""
    with open_reader(target) as reader:
        ended = reader.end_key(name)
    print(json.dumps(ended) if as_json else f"ended {name}")
