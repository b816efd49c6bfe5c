"""The application that commands join, and what all of them share: the panels of its help."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

# The panels of `placewire --help`.
SERVICE = "The service"
LOGS = "Logs and streams"
LOOKING = "Looking into it"
PLANS = "Plans and workers"

AS_JSON = "Print one JSON object."

app = typer.Typer(pretty_exceptions_enable=False)


def show_version(asked: bool) -> None:
    """Print the version, and that is all."""
    if asked:
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


def end(code: int) -> None:
    """End the command with a code that says that not all went well."""
    if code:
        raise typer.Exit(code)
