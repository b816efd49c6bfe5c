"""`placewire bench`: run the benchmarks of the repository, if they are here."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
import sys
from collections.abc import Iterator
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
    """Run `python -m bench` in this process; raises Unusable if there is none."""
    program = find_bench()
    words = [*(["--only", only] if only else []), *(["--data", str(data)] if data else [])]
    words += ["--full"] if full else []
    former, sys.argv = sys.argv, ["placewire bench", *words]
    try:
        if not as_json:
            program.main()
            return
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            program.main()
    finally:
        sys.argv = former
    for table in read_tables(text.getvalue()):
        print(json.dumps(table))


def read_tables(text: str) -> Iterator[dict[str, Any]]:
    """Read the markdown tables that the benchmarks print."""
    experiment = ""
    columns: list[str] = []
    rows: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("## "):
            experiment = line[3:].partition(" (")[0]
        if line.startswith("| "):
            cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
            if not columns:
                columns = cells
            elif not set("".join(cells)) <= set("-:"):
                rows.append(cells)
        elif columns:
            yield {"experiment": experiment, "columns": columns, "rows": rows}
            columns, rows = [], []


def find_bench() -> Any:
    """Import the program of the benchmarks; raises Unusable."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        if importlib.util.find_spec("bench.settings") is not None:
            return importlib.import_module("bench.__main__")
    except ImportError as error:
        if error.name is not None and not error.name.startswith("bench"):
            raise Unusable(f"bench: needs {error.name}: pip install 'placewire[bench]'") from None
    finally:
        sys.path.remove(str(Path.cwd()))
    raise Unusable(
        "bench: the benchmarks are not here: they come with the repository, run it in there"
    )
