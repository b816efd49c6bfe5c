"""Declare the commands on event logs and streams: replay, generate, run, import."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from placewire.cli.commands import LOGS, app, exit_with
from placewire.cli.options import (
    JsonOption,
    complete_plan,
    complete_rebalance,
    number_option,
)
from placewire.model.errors import Unusable

YEAR_S = 366 * 86_400


@app.command(rich_help_panel=LOGS)
def replay(
    log: Annotated[Path, Argument(help="The event log, JSON Lines.")],
    results: Annotated[Path, Option(help="Where the results go, JSON Lines.")],
    dead_letters: Annotated[
        Path | None, Option(help="Where invalid events go, JSON Lines.")
    ] = None,
    settings: Annotated[Path | None, Option(help="Settings that change results, TOML.")] = None,
    workers: Annotated[
        str | None,
        Option(
            help="How many workers, or a range as 2..8 within which their number follows the load.",
            metavar="N or A..B",
            show_default="all cores, or as many as a saved plan is for",
        ),
    ] = None,
    plan: Annotated[
        str,
        Option(
            help="How work is distributed: shared, scan, auto, grid, kdtree, rtree, frequency,"
            " hypergraph, metric, termhash, kdt, agrid, qt, quadtree, text; or a file of"
            " `placewire plan`."
            " For nearest subscriptions: kop, sop, dkm, ps2, sstd; for relevant ones: hash,"
            " location, keyword, prefix, location+prefix, prefix+location; a plan for each kind:"
            " nearest=dkm,relevant=prefix.",
            autocompletion=complete_plan,
        ),
    ] = "shared",
    batch_rows: Annotated[int, number_option(int, "Events in a micro-batch.", 1)] = 200_000,
    state: Annotated[
        Path | None, Option(help="Keep the state here; a run that was stopped goes on from it.")
    ] = None,
    with_data: Annotated[
        bool, Option("--with-data", help="Add each object's data to its results.")
    ] = False,
    slice: Annotated[
        str | None,
        Option(
            help="How much time retained objects are kept together for, as PT1H.",
            show_default="an eighth of the retention",
        ),
    ] = None,
    archive: Annotated[
        Path | None,
        Option(help="A folder for objects that are not retained any more, Parquet by day."),
    ] = None,
    buffer: Annotated[
        str,
        Option(
            help="How relevant subscriptions keep what their results may need: cskyband,"
            " skyband or kmax."
        ),
    ] = "cskyband",
    rebalance: Annotated[
        str,
        Option(
            help="How a plan is adjusted when its workers' loads drift apart: auto, ps2-local,"
            " ps2-local:dp (or gr, si, ra), ps2-global, sstd, tornado or off.",
            autocompletion=complete_rebalance,
        ),
    ] = "auto",
    runner: Annotated[
        str, Option(help="spark, or local: in this process, for small logs.")
    ] = "spark",
    json: JsonOption = False,
) -> None:
    """Run a whole event log through the pipeline and write its results in order."""
    from placewire.cli.output import print_summary
    from placewire.cli.replay import ReplayOptions, run_replay

    if runner not in ("spark", "local"):
        raise Unusable(f"runner: must be spark or local, got {runner!r}")
    options = ReplayOptions(
        log, results, dead_letters, settings, workers, plan, batch_rows, state, with_data, runner,
        slice, archive, buffer, rebalance,
    )  # fmt: skip
    print_summary(run_replay(options), json)


@app.command(rich_help_panel=LOGS)
def generate(
    log: Annotated[Path, Argument(help="Where the event log goes, JSON Lines.")],
    objects: Annotated[int, number_option(int, "How many objects.", 0)] = 100_000,
    subscriptions: Annotated[
        int,
        number_option(
            int,
            "How many subscriptions; the first 18 are readable, and all four kinds are there.",
            0,
        ),
    ] = 1_000,
    seed: Annotated[int, number_option(int, "Equal seeds give equal logs.", 0)] = 7,
    churn: Annotated[
        float, number_option(float, "Share of subscriptions that come, change or go.", 0, 1)
    ] = 0.0,
    bad: Annotated[int, number_option(int, "How many malformed lines.", 0)] = 0,
    queries: Annotated[
        int, number_option(int, "How many queries; four of them are readable.", 0)
    ] = 40,
    start: Annotated[str, Option(help="When the log begins.")] = "2026-03-01T12:00:00Z",
    seconds: Annotated[float, number_option(float, "How long a time it covers.", 0, YEAR_S)] = 3600,
    json: JsonOption = False,
) -> None:
    """Write an event log of city life, to try things on."""
    from placewire.cli.demo import run_generate
    from placewire.cli.output import print_summary
    from placewire.demo import CityLife

    life = CityLife(seed, objects, subscriptions, start, seconds, churn, bad, queries)
    print_summary(run_generate(life, log), json)


@app.command(rich_help_panel=LOGS)
def run(
    config: Annotated[Path, Option(help="Sources, sinks and how to run, TOML.")],
    once: Annotated[
        bool, Option("--once", help="End when all that the sources have now is done.")
    ] = False,
    seconds: Annotated[
        float | None, number_option(float, "End after so many seconds.", 0, name="--for")
    ] = None,
    log: Annotated[
        str, Option(help="What is told on standard error: plain lines, or json.")
    ] = "plain",
    plan: Annotated[
        str | None,
        Option(help="Instead of the configuration's plan.", autocompletion=complete_plan),
    ] = None,
    workers: Annotated[
        str | None, Option(help="Instead of its workers.", metavar="N or A..B")
    ] = None,
    rebalance: Annotated[
        str | None, Option(help="Instead of its rebalancing.", autocompletion=complete_rebalance)
    ] = None,
    json: Annotated[bool, Option("--json", help="Sum up as one JSON object.")] = False,
) -> None:
    """Run sources to sinks until it is stopped; goes on where it was when it is started again."""
    from placewire.cli.output import print_summary
    from placewire.cli.run import RunOptions, run_stream

    options = RunOptions(config, once, seconds, log, plan, workers, rebalance)
    outcome = run_stream(options)
    if json or log == "plain":
        print_summary(outcome, json, sys.stderr)


@app.command("import", rich_help_panel=LOGS)
def import_(
    file: Annotated[str, Argument(help="The queries or fences; - for standard input.")],
    source: Annotated[
        str, Option("--from", help="Where they come from: elasticsearch, opensearch, tile38.")
    ],
    out: Annotated[
        str, Option(help="Where the subscriptions go, JSON Lines; - for standard output.")
    ] = "-",
    report: Annotated[
        Path | None, Option(help="A list of all that was refused or noted, JSON Lines.")
    ] = None,
    text_field: Annotated[
        list[str] | None,
        Option(
            help="The field that holds the text; may be given again.",
            show_default="the only one asked of",
        ),
    ] = None,
    place_field: Annotated[
        list[str] | None,
        Option(
            help="The field that holds the place; may be given again.",
            show_default="the only one asked of",
        ),
    ] = None,
    query_field: Annotated[
        str, Option(help="The field of a document that has its query.")
    ] = "query",
    key: Annotated[
        str | None,
        Option(
            help="Tile38's collection whose objects are the stream.",
            show_default="the only one watched",
        ),
    ] = None,
    ts: Annotated[
        str | None, Option(help="When the subscriptions begin, RFC 3339.", show_default="now")
    ] = None,
    with_data: Annotated[
        bool, Option("--with-data", help="Keep a document's other fields, or META, as data.")
    ] = False,
    phrases_as_words: Annotated[
        bool, Option("--phrases-as-words", help="Ask for all the words of a phrase, in any order.")
    ] = False,
    json: Annotated[
        bool, Option("--json", help="Tell what came of it as one JSON object.")
    ] = False,
) -> None:
    """Turn percolator queries or Tile38's fences into subscriptions, and list what has none."""
    from placewire.cli.import_ import run_import
    from placewire.importers import ImportOptions

    options = ImportOptions(
        ts or "", text_field or (), place_field or (), query_field, key, with_data, phrases_as_words
    )
    exit_with(run_import(file, source, out, report, options, json))
