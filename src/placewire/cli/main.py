"""The command line."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, cast

import typer

from placewire.model.errors import Unusable

# What Typer raises for anything mistyped; it carries its own click and does not name this base.
Mistyped = cast(type[typer.BadParameter], typer.BadParameter.__mro__[2])

INTERRUPTED = 130  # what Typer makes of Ctrl-C

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def placewire(context: typer.Context) -> None:
    """A wire service for places: standing subscriptions over a stream of geo-tagged texts."""
    if context.invoked_subcommand is None:
        print(context.get_help())


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
    plan: Annotated[
        str,
        typer.Option(
            help="How work is distributed: shared, scan, auto, grid, kdtree, rtree, frequency,"
            " hypergraph, metric, termhash, kdt, agrid, qt; or a file of `placewire plan`."
        ),
    ] = "shared",
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


@app.command()
def plan(
    objects: Annotated[
        Path, typer.Option(help="An event log, or Parquet with columns id, ts, lon, lat, text.")
    ],
    subscriptions: Annotated[Path, typer.Option(help="An event log; it may be the same file.")],
    workers: Annotated[int, typer.Option(min=1, max=4096, help="How many workers.")],
    plan: Annotated[
        str, typer.Option(help="One plan's name, auto for its candidates, or all.")
    ] = "all",
    out: Annotated[
        Path | None, typer.Option(help="A folder for a picture and a file of each plan.")
    ] = None,
    sample: Annotated[int, typer.Option(min=1, help="At most so many objects.")] = 100_000,
    sample_subscriptions: Annotated[
        int, typer.Option(min=1, help="At most so many subscriptions.")
    ] = 1_000_000,
) -> None:
    """Show what every plan would do with given data: copies, balance, cost."""
    from placewire.cli.plan import PlanOptions, run_plan

    run_plan(PlanOptions(objects, subscriptions, workers, plan, out, sample, sample_subscriptions))


@app.command()
def generate(
    log: Annotated[Path, typer.Argument(help="Where the event log goes, JSON Lines.")],
    objects: Annotated[int, typer.Option(min=0, help="How many objects.")] = 100_000,
    subscriptions: Annotated[
        int, typer.Option(min=0, help="How many subscriptions; the first 15 are readable.")
    ] = 1_000,
    seed: Annotated[int, typer.Option(min=0, help="Equal seeds give equal logs.")] = 7,
    churn: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of subscriptions that come, change or go."),
    ] = 0.0,
    bad: Annotated[int, typer.Option(min=0, help="How many malformed lines.")] = 0,
    start: Annotated[str, typer.Option(help="When the log begins.")] = "2026-03-01T12:00:00Z",
    seconds: Annotated[float, typer.Option(help="How long a time it covers.")] = 3600,
) -> None:
    """Write an event log of city life, to try things on."""
    from placewire.city import CityLife
    from placewire.cli.generate import run_generate

    life = CityLife(seed, objects, subscriptions, start, seconds, churn, bad)
    print(run_generate(life, log))


@app.command()
def demo(
    objects: Annotated[int, typer.Option(min=1, help="How many objects.")] = 500_000,
    subscriptions: Annotated[int, typer.Option(min=1, help="How many subscriptions.")] = 300_000,
    seed: Annotated[int, typer.Option(min=0, help="Equal seeds give equal hours.")] = 7,
    workers: Annotated[int, typer.Option(min=1, max=4096, help="How many workers.")] = (
        os.cpu_count() or 1
    ),
) -> None:
    """Watch an hour of city life go through the whole pipeline; takes a minute or two."""
    from placewire.cli.demo import DemoOptions, run_demo

    run_demo(DemoOptions(objects, subscriptions, seed, workers))


def main() -> None:
    """Run the command line: one clear line and exit code 2 for anything unusable."""
    try:
        code = app(standalone_mode=False)
    except (Unusable, OSError) as error:
        # One line, whatever a file name or a system's message brings along.
        print("placewire: " + " ".join(str(error).split()), file=sys.stderr)
        sys.exit(2)
    except Mistyped as error:
        print(f"placewire: {error.format_message()}", file=sys.stderr)
        sys.exit(2)
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    if code == INTERRUPTED:
        print("placewire: interrupted", file=sys.stderr)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
