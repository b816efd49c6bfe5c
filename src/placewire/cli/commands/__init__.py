"""Declare the commands: names, options and help texts.

`service` has the commands of the service, `logs` those on logs and streams, `inspection` those that
look into a state or a server. A command imports its implementation only when it runs, which keeps
help and completion quick: `replay` is in `placewire.cli.replay`, and so on; `generate` is with
`demo`; `unsubscribe`, `subscriptions` and `tail` are with `subscribe`. `keys` and `bench` need no
slow import and are implemented where they are declared.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

# The panels of `placewire --help`.
SERVICE = "The service"
LOGS = "Logs and streams"
INSPECTION = "Inspection"
PLANS = "Plans and workers"

app = typer.Typer(pretty_exceptions_enable=False)


def show_version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        print(f"placewire {version('placewire')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def placewire(
    context: typer.Context,
    _: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=show_version, help="Show the version."),
    ] = False,
) -> None:
    """A wire service for places: standing subscriptions over a stream of geo-tagged texts."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def exit_with(code: int) -> None:
    """Exit with the code of a command that failed in part; zero lets it return."""
    if code:
        raise typer.Exit(code)
