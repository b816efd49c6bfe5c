"""The command line."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import click
import typer

from placewire.model.errors import Unusable

app = typer.Typer(
    help="A wire service for places: standing subscriptions over a stream of geo-tagged texts.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def placewire() -> None:
    """A wire service for places."""


@app.command()
def replay(
    log: Annotated[Path, typer.Argument(help="The event log, JSON Lines.")],
    results: Annotated[Path, typer.Option(help="Where the results go, JSON Lines.")],
    dead_letters: Annotated[
        Path | None, typer.Option(help="Where invalid events go, JSON Lines.")
    ] = None,
    settings: Annotated[
        Path | None, typer.Option(help="Settings that change results, TOML.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=4096, help="How many workers.")] = (
        os.cpu_count() or 1
    ),
    plan: Annotated[str, typer.Option(help="How work is distributed: shared, grid, scan.")] = (
        "shared"
    ),
    batch_rows: Annotated[int, typer.Option(min=1, help="Events in a micro-batch.")] = 200_000,
    state: Annotated[
        Path | None,
        typer.Option(help="Keep the state here; a run that was stopped goes on from it."),
    ] = None,
    with_data: Annotated[
        bool, typer.Option("--with-data", help="Add each object's data to its results.")
    ] = False,
    runner: Annotated[
        str, typer.Option(help="spark, or local: in this process, for small logs.")
    ] = "spark",
) -> None:
    """Run a whole event log through the pipeline and write its results in order."""
    from placewire.cli.replay import ReplayOptions, run_replay

    if runner not in ("spark", "local"):
        raise Unusable(f"runner: must be spark or local, got {runner!r}")
    options = ReplayOptions(
        log, results, dead_letters, settings, workers, plan, batch_rows, state, with_data, runner
    )
    print(run_replay(options))


def main() -> None:
    """Run the command line: one clear line and exit code 2 for anything unusable."""
    try:
        code = app(standalone_mode=False)
    except Unusable as error:
        print(f"placewire: {error}", file=sys.stderr)
        sys.exit(2)
    except click.ClickException as error:
        print(f"placewire: {error.format_message()}", file=sys.stderr)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        print("placewire: interrupted", file=sys.stderr)
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
