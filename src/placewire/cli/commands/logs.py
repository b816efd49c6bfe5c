"""Commands about event logs: run one, make one, watch one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from placewire.cli.app import AS_JSON, LOGS, SERVICE, app
from placewire.cli.completing import complete_plan, complete_rebalance
from placewire.cli.numbers import number
from placewire.model.errors import Unusable

YEAR_S = 366 * 86_400

JsonOption = Annotated[bool, typer.Option("--json", help=AS_JSON)]


@app.command(rich_help_panel=LOGS)
def replay(
    log: Annotated[Path, typer.Argument(help="The event log, JSON Lines.")],
    results: Annotated[Path, typer.Option(help="Where the results go, JSON Lines.")],
    dead_letters: Annotated[
        Path | None, typer.Option(help="Where invalid events go, JSON Lines.")
    ] = None,
    settings: Annotated[
        Path | None, typer.Option(help="Settings that change results, TOML.")
    ] = None,
    workers: Annotated[
        str | None,
        typer.Option(
            help="How many workers, or a range as 2..8 within which their number follows the load.",
            metavar="N or A..B",
            show_default="all cores, or as many as a saved plan is for",
        ),
    ] = None,
    plan: Annotated[
        str,
        typer.Option(
            help="How work is distributed: shared, scan, auto, grid, kdtree, rtree, frequency,"
            " hypergraph, metric, termhash, kdt, agrid, qt, quadtree, text; or a file of"
            " `placewire plan`."
            " For nearest subscriptions: kop, sop, dkm, ps2, sstd; for relevant ones: hash,"
            " location, keyword, prefix, location+prefix, prefix+location; a plan for each kind:"
            " nearest=dkm,relevant=prefix.",
            autocompletion=complete_plan,
        ),
    ] = "shared",
    batch_rows: Annotated[int, number(int, "Events in a micro-batch.", 1)] = 200_000,
    state: Annotated[
        Path | None,
        typer.Option(help="Keep the state here; a run that was stopped goes on from it."),
    ] = None,
    with_data: Annotated[
        bool, typer.Option("--with-data", help="Add each object's data to its results.")
    ] = False,
    slice: Annotated[
        str | None,
        typer.Option(
            help="How much time retained objects are kept together for, as PT1H.",
            show_default="an eighth of the retention",
        ),
    ] = None,
    archive: Annotated[
        Path | None,
        typer.Option(help="A folder for objects that are not retained any more, Parquet by day."),
    ] = None,
    buffer: Annotated[
        str,
        typer.Option(
            help="How relevant subscriptions keep what their results may need: cskyband,"
            " skyband or kmax."
        ),
    ] = "cskyband",
    rebalance: Annotated[
        str,
        typer.Option(
            help="How a plan is adjusted when its workers' loads drift apart: auto, ps2-local,"
            " ps2-local:dp (or gr, si, ra), ps2-global, sstd, tornado or off.",
            autocompletion=complete_rebalance,
        ),
    ] = "auto",
    runner: Annotated[
        str, typer.Option(help="spark, or local: in this process, for small logs.")
    ] = "spark",
    json: JsonOption = False,
) -> None:
    """Run a whole event log through the pipeline and write its results in order."""
    from placewire.cli.outcome import tell
    from placewire.cli.replay import ReplayOptions, run_replay

    if runner not in ("spark", "local"):
        raise Unusable(f"runner: must be spark or local, got {runner!r}")
    options = ReplayOptions(
        log,
        results,
        dead_letters,
        settings,
        workers,
        plan,
        batch_rows,
        state,
        with_data,
        runner,
        slice,
        archive,
        buffer,
        rebalance,
    )
    tell(run_replay(options), json)


@app.command(rich_help_panel=LOGS)
def generate(
    log: Annotated[Path, typer.Argument(help="Where the event log goes, JSON Lines.")],
    objects: Annotated[int, number(int, "How many objects.", 0)] = 100_000,
    subscriptions: Annotated[
        int,
        number(
            int,
            "How many subscriptions; the first 18 are readable, and all four kinds are there.",
            0,
        ),
    ] = 1_000,
    seed: Annotated[int, number(int, "Equal seeds give equal logs.", 0)] = 7,
    churn: Annotated[
        float,
        number(float, "Share of subscriptions that come, change or go.", 0, 1),
    ] = 0.0,
    bad: Annotated[int, number(int, "How many malformed lines.", 0)] = 0,
    queries: Annotated[int, number(int, "How many queries; four of them are readable.", 0)] = 40,
    start: Annotated[str, typer.Option(help="When the log begins.")] = "2026-03-01T12:00:00Z",
    seconds: Annotated[float, number(float, "How long a time it covers.", 0, YEAR_S)] = 3600,
    json: JsonOption = False,
) -> None:
    """Write an event log of city life, to try things on."""
    from placewire.cli.generate import run_generate
    from placewire.cli.outcome import tell
    from placewire.demo import CityLife

    life = CityLife(seed, objects, subscriptions, start, seconds, churn, bad, queries)
    tell(run_generate(life, log), json)


@app.command(rich_help_panel=SERVICE)
def demo(
    rate: Annotated[int, number(int, "How many texts a second.", 1, 100_000)] = 300,
    subscriptions: Annotated[int, number(int, "How many subscriptions.", 1)] = 5_000,
    seed: Annotated[int, number(int, "Equal seeds give equal texts.", 0)] = 7,
    workers: Annotated[int, number(int, "How many workers.", 1, 4096)] = (os.cpu_count() or 1),
    runner: Annotated[str, typer.Option(help="spark, or local: in one process.")] = "spark",
    port: Annotated[
        int | None, number(int, "The port to listen on; by default 7878 if it is free.", 1, 65_535)
    ] = None,
    seconds: Annotated[
        float | None,
        number(
            float,
            "End after so many seconds; 60 when there is no terminal.",
            0,
            name="--for",
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Sum up as one JSON object, the rest aside.")
    ] = False,
) -> None:
    """Watch the service at work on city life, in a browser; everything it needs is started."""
    from placewire.cli.demo import DemoOptions, run_demo

    run_demo(DemoOptions(rate, subscriptions, seed, workers, runner, port, seconds, json))
