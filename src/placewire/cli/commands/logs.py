"""Declare the commands on event logs and streams: replay, generate, run, import."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from placewire.cli.commands import LOGS, app, exit_with
from placewire.cli.options import (
    JsonOption,
    check_runner,
    complete_plan,
    complete_rebalance,
    number_option,
)

YEAR_S = 366 * 86_400


@app.command(rich_help_panel=LOGS)
def replay(
    log: Annotated[Path, Argument(help="The event log, JSON Lines.")],
    results: Annotated[Path, Option(help="The file of results, JSON Lines.")],
    dead_letters: Annotated[
        Path | None, Option(help="The file of invalid events, JSON Lines.")
    ] = None,
    settings: Annotated[Path | None, Option(help="Settings that change results, TOML.")] = None,
    workers: Annotated[
        str | None,
        Option(
            help="Number of workers, or a range such as 2..8 within which it follows the load.",
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
        Path | None, Option(help="Keep the state here; a stopped run resumes from it.")
    ] = None,
    with_data: Annotated[
        bool, Option("--with-data", help="Add each object's data to its results.")
    ] = False,
    slice: Annotated[
        str | None,
        Option(
            help="Time span of one file of retained objects, such as PT1H.",
            show_default="an eighth of the retention",
        ),
    ] = None,
    archive: Annotated[
        Path | None,
        Option(help="A folder for objects that are no longer retained, Parquet by day."),
    ] = None,
    buffer: Annotated[
        str, Option(help="How relevant subscriptions buffer candidates: cskyband, skyband or kmax.")
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

    check_runner(runner)
    options = ReplayOptions(
        log, results, dead_letters, settings, workers, plan, batch_rows, state, with_data, runner,
        slice, archive, buffer, rebalance,
    )  # fmt: skip
    print_summary(run_replay(options), json)


@app.command(rich_help_panel=LOGS)
def generate(
    log: Annotated[Path, Argument(help="The event log to write, JSON Lines.")],
    objects: Annotated[int, number_option(int, "Number of objects.", 0)] = 100_000,
    subscriptions: Annotated[
        int,
        number_option(
            int, "Number of subscriptions, of all four kinds; the first 18 are readable.", 0
        ),
    ] = 1_000,
    seed: Annotated[int, number_option(int, "Equal seeds give equal logs.", 0)] = 7,
    churn: Annotated[
        float,
        number_option(float, "Share of subscriptions that arrive, are replaced or end.", 0, 1),
    ] = 0.0,
    bad: Annotated[int, number_option(int, "Number of malformed lines.", 0)] = 0,
    queries: Annotated[
        int, number_option(int, "Number of queries; four of them are readable.", 0)
    ] = 40,
    start: Annotated[str, Option(help="Start time of the log.")] = "2026-03-01T12:00:00Z",
    seconds: Annotated[
        float, number_option(float, "Number of seconds that the log covers.", 0, YEAR_S)
    ] = 3600,
    json: JsonOption = False,
) -> None:
    """Write a generated event log of city life."""
    from placewire.cli.demo import run_generate
    from placewire.cli.output import print_summary
    from placewire.demo import CityLife

    life = CityLife(seed, objects, subscriptions, start, seconds, churn, bad, queries)
    print_summary(run_generate(life, log), json)


@app.command(rich_help_panel=LOGS)
def run(
    config: Annotated[Path, Option(help="The configuration of sources, sinks and the run, TOML.")],
    once: Annotated[
        bool, Option("--once", help="Stop when everything that the sources have now is processed.")
    ] = False,
    seconds: Annotated[
        float | None, number_option(float, "Stop after this many seconds.", 0, name="--for")
    ] = None,
    log: Annotated[str, Option(help="The log on standard error: plain or json.")] = "plain",
    plan: Annotated[
        str | None, Option(help="Override the configured plan.", autocompletion=complete_plan)
    ] = None,
    workers: Annotated[
        str | None, Option(help="Override the configured workers.", metavar="N or A..B")
    ] = None,
    rebalance: Annotated[
        str | None,
        Option(help="Override the configured rebalancing.", autocompletion=complete_rebalance),
    ] = None,
    json: Annotated[bool, Option("--json", help="Print a summary as one JSON object.")] = False,
) -> None:
    """Run a streaming job from a configuration file. Resumes where it left off."""
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
        str, Option("--from", help="Their source: elasticsearch, opensearch or tile38.")
    ],
    out: Annotated[
        str, Option(help="The file of subscriptions, JSON Lines; - for standard output.")
    ] = "-",
    report: Annotated[
        Path | None, Option(help="A file that lists everything refused or noted, JSON Lines.")
    ] = None,
    text_field: Annotated[
        list[str] | None,
        Option(
            help="The field that holds the text; can be repeated.",
            show_default="the only one queried",
        ),
    ] = None,
    place_field: Annotated[
        list[str] | None,
        Option(
            help="The field that holds the place; can be repeated.",
            show_default="the only one queried",
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
        str | None, Option(help="Start time of the subscriptions, RFC 3339.", show_default="now")
    ] = None,
    with_data: Annotated[
        bool, Option("--with-data", help="Keep a document's other fields, or META, as data.")
    ] = False,
    phrases_as_words: Annotated[
        bool,
        Option("--phrases-as-words", help="Translate a phrase to all of its words, in any order."),
    ] = False,
    json: Annotated[bool, Option("--json", help="Print a summary as one JSON object.")] = False,
) -> None:
    """Translate percolator queries or Tile38 fences into subscriptions, and report the rest."""
    from placewire.cli.import_ import run_import
    from placewire.importers import ImportOptions

    options = ImportOptions(
        ts or "", text_field or (), place_field or (), query_field, key, with_data, phrases_as_words
    )
    exit_with(run_import(file, source, out, report, options, json))
