"""The command that runs the benchmarks of the repository."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from placewire.cli.app import LOOKING, app


@app.command(rich_help_panel=LOOKING)
def bench(
    only: Annotated[
        str | None, typer.Option(help="Names of experiments, with commas.", show_default="all")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="A folder of real data sets.")] = None,
    full: Annotated[bool, typer.Option("--full", help="The large sizes too.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object for each table.")
    ] = False,
) -> None:
    """Run the benchmarks, if the repository that has them is here."""
    from placewire.cli.bench import run_bench

    run_bench(only, data, full, json)
