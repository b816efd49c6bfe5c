"""Declare the commands on plans: compare plans, show the plan in force, rebalance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from placewire.cli.commands import PLANS, app
from placewire.cli.connection import read_target
from placewire.cli.options import (
    JsonOption,
    KeyOption,
    ServerOption,
    StateOption,
    complete_boolean_plan,
    number_option,
)
from placewire.model.errors import Unusable


@app.command(rich_help_panel=PLANS)
def plan(
    objects: Annotated[
        Path | None,
        typer.Option(help="An event log, or Parquet with columns id, ts, lon, lat, text."),
    ] = None,
    subscriptions: Annotated[
        Path | None, typer.Option(help="An event log; it may be the same file.")
    ] = None,
    workers: Annotated[int | None, number_option(int, "How many workers.", 1, 4096)] = None,
    plan: Annotated[
        str,
        typer.Option(
            help="One plan's name, auto for its candidates, or all.",
            autocompletion=complete_boolean_plan,
        ),
    ] = "all",
    out: Annotated[
        Path | None, typer.Option(help="A folder for a picture and a file of each plan.")
    ] = None,
    sample: Annotated[int, number_option(int, "At most so many objects.", 1)] = 100_000,
    sample_subscriptions: Annotated[
        int, number_option(int, "At most so many subscriptions.", 1)
    ] = 1_000_000,
    machines: Annotated[
        int, number_option(int, "On how many machines the workers run.", 1, 4096)
    ] = 1,
    cost: Annotated[
        str, typer.Option(help="What loads are measured by: load, tornado or sstd.")
    ] = "load",
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Show too where objects and subscriptions are.")
    ] = False,
    server: ServerOption = None,
    state: StateOption = None,
    key: KeyOption = None,
    leaves: Annotated[int, number_option(int, "How many of the heaviest leaves to show.", 0)] = 10,
    json: JsonOption = False,
) -> None:
    """Show what every plan would do with given data; or the plan in force of a state or server."""
    data = {"--objects": objects, "--subscriptions": subscriptions, "--workers": workers}
    if not any(value is not None for value in data.values()):
        from placewire.cli.plan import show_plan

        show_plan(read_target(server, state, key), leaves, json)
        return
    if server is not None or state is not None:
        raise Unusable("plan: give data to plan for, or --server or --state, not both")
    if objects is None or subscriptions is None or workers is None:
        missing = next(name for name, value in data.items() if value is None)
        raise Unusable(
            f"plan: needs --objects, --subscriptions and --workers, {missing} is missing"
        )
    from placewire.cli.plan import PlanOptions, run_plan

    options = PlanOptions(
        objects, subscriptions, workers, plan, out, sample, sample_subscriptions, machines, cost,
        statistics, json,
    )  # fmt: skip
    run_plan(options)


@app.command(rich_help_panel=PLANS)
def rebalance(
    server: ServerOption = None,
    state: StateOption = None,
    key: KeyOption = None,
    plan: Annotated[
        str | None,
        typer.Option(
            help="The plan to go over to: a method's name, or shared.",
            autocompletion=complete_boolean_plan,
        ),
    ] = None,
    workers: Annotated[
        int | None, number_option(int, "How many workers to go on with.", 1, 4096)
    ] = None,
    wait: Annotated[
        float, number_option(float, "At most so many seconds to wait for it.", 0)
    ] = 10.0,
    json: JsonOption = False,
) -> None:
    """Ask a running replay or service to go over to another boolean plan, or to other workers."""
    from placewire.cli.output import print_summary
    from placewire.cli.rebalance import run_rebalance

    print_summary(run_rebalance(read_target(server, state, key), plan, workers, wait), json)
