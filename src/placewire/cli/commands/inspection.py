"""Declare the commands that inspect a state or a server: query, explain, status."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from placewire.cli.commands import INSPECTION, app, exit_with
from placewire.cli.connection import find_target, read_target
from placewire.cli.options import (
    JsonOption,
    KeyOption,
    ServerOption,
    StateOption,
    complete_subscription,
    number_option,
)


@app.command(rich_help_panel=INSPECTION)
def query(
    query: Annotated[
        str,
        typer.Argument(help="The query as JSON; - for one a line from standard input."),
    ],
    server: ServerOption = None,
    state: StateOption = None,
    key: KeyOption = None,
    with_data: Annotated[
        bool, typer.Option("--with-data", help="Add each object's data to its name.")
    ] = False,
    timing: Annotated[
        bool, typer.Option("--timing", help="Tell how long each answer took.")
    ] = False,
    _: Annotated[bool, typer.Option("--json", help="Print JSON, as it always does.")] = False,
) -> None:
    """Ask about the objects that are retained: boolean, nearest, relevant or trending."""
    from placewire.cli.query import QueryOptions, run_query

    exit_with(run_query(QueryOptions(query, read_target(server, state, key), with_data, timing)))


@app.command(rich_help_panel=INSPECTION)
def explain(
    object: Annotated[
        str,
        typer.Option(
            help="The object: its seq or its id in the state, or its JSON.",
            metavar="SEQ, ID or JSON",
        ),
    ],
    subscription: Annotated[
        str,
        typer.Option(
            help="The subscription: its id in the state, or its JSON.",
            metavar="ID or JSON",
            autocompletion=complete_subscription,
        ),
    ],
    server: ServerOption = None,
    state: StateOption = None,
    key: KeyOption = None,
    settings: Annotated[
        Path | None, typer.Option(help="Settings that change results, TOML, if there is no state.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Tell why an object did or did not match a subscription, and what finding out costs."""
    from placewire.cli.explain import ExplainOptions, run_explain

    target = find_target(server, state, key)
    run_explain(ExplainOptions(target, object, subscription, settings, json))


@app.command(rich_help_panel=INSPECTION)
def status(
    server: ServerOption = None,
    state: StateOption = None,
    key: KeyOption = None,
    leaves: Annotated[int, number_option(int, "How many of the heaviest leaves to show.", 0)] = 10,
    map: Annotated[Path | None, typer.Option(help="A picture of the load by leaf, PNG.")] = None,
    json: JsonOption = False,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="Print metrics in Prometheus' text format.")
    ] = False,
) -> None:
    """Show how a state or a service stands: its plans, and what workers and leaves did lately."""
    from placewire.cli.status import StatusOptions, run_status

    target = read_target(server, state, key)
    run_status(StatusOptions(target, leaves, map, json, metrics))
