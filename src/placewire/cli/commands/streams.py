"""The command that runs sources to sinks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from placewire.cli.app import LOGS, app
from placewire.cli.completing import complete_plan, complete_rebalance
from placewire.cli.numbers import number


@app.command(rich_help_panel=LOGS)
def run(
    config: Annotated[Path, typer.Option(help="Sources, sinks and how to run, TOML.")],
    once: Annotated[
        bool, typer.Option("--once", help="End when all that the sources have now is done.")
    ] = False,
    seconds: Annotated[
        float | None, number(float, "End after so many seconds.", 0, name="--for")
    ] = None,
    log: Annotated[
        str, typer.Option(help="What is told on standard error: plain lines, or json.")
    ] = "plain",
    plan: Annotated[
        str | None,
        typer.Option(help="Instead of the configuration's plan.", autocompletion=complete_plan),
    ] = None,
    workers: Annotated[
        str | None, typer.Option(help="Instead of its workers.", metavar="N or A..B")
    ] = None,
    rebalance: Annotated[
        str | None,
        typer.Option(help="Instead of its rebalancing.", autocompletion=complete_rebalance),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Sum up as one JSON object.")] = False,
) -> None:
    """Run sources to sinks until it is stopped; goes on where it was when it is started again."""
    from placewire.cli.outcome import tell
    from placewire.cli.run import RunOptions, run_config

    options = RunOptions(config, once, seconds, log, plan, workers, rebalance)
    outcome = run_config(options)
    if json or log == "plain":
        tell(outcome, json, sys.stderr)
