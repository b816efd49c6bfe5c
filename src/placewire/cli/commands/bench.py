"""`placewire bench`: run the benchmarks of the repository, if they are here."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from placewire.cli.commands import INSPECTION, app
from placewire.model.errors import Unusable


@app.command(rich_help_panel=INSPECTION)
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
    run_bench(only, data, full, json)


def run_bench(only: str | None, data: Path | None, full: bool, as_json: bool) -> None:
    """Run experiments by name, or all; raises Unusable if the benchmarks are not here."""
    harness, catalog = (find_module(name) for name in ("harness", "catalog"))

    def show(experiment: Any, table: Any) -> None:
        if as_json:
            columns, rows = list(table.columns), table.cells()
            told = {"experiment": experiment.name, "columns": columns, "rows": rows}
            print(json.dumps(told), flush=True)
        else:
            print(f"## {table.name}\n\n{table.markdown()}", flush=True)

    harness.run_experiments(
        harness.select(catalog.CATALOG, only.split(",") if only else ["all"]),
        data=data,
        size=harness.FULL if full else harness.DEFAULT,
        show=show,
    )


def find_module(name: str) -> Any:
    """A module of the benchmarks; raises Unusable if they are not in the current directory."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        if importlib.util.find_spec(f"bench.{name}") is not None:
            return importlib.import_module(f"bench.{name}")
    except ImportError as error:
        if error.name is not None and not error.name.startswith("bench"):
            raise Unusable(f"bench: needs {error.name}: pip install 'placewire[bench]'") from None
    finally:
        sys.path.remove(str(Path.cwd()))
    raise Unusable(
        "bench: the benchmarks are not here: they come with the repository, run it in there"
    )
