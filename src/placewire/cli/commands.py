"""Declare the commands on logs, streams and states.

A command imports its implementation only when it runs, which keeps help and completion quick.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from typer import Argument, Option

from placewire.cli.options import (
    CommandTarget,
    JsonOption,
    KeyOption,
    ServerOption,
    StateOption,
    app,
    check_runner,
    complete_boolean_plan,
    complete_plan,
    complete_rebalance,
    complete_subscription,
    exit_with,
    number_option,
    read_target,
    with_options,
    with_target,
)
from placewire.model.errors import Unusable

YEAR_S = 366 * 86_400


class ReplayOptions(NamedTuple):
    """The options of `replay`."""

    log: Annotated[Path, Argument(help="Event log, JSON Lines.")]
    results: Annotated[Path, Option(help="File to write results to, JSON Lines.")]
    dead_letters: Annotated[
        Path | None, Option(help="File to write invalid events to, JSON Lines.")
    ] = None
    settings: Annotated[Path | None, Option(help="Settings that change results, TOML.")] = None
    workers: Annotated[
        str | None,
        Option(
            help="Number of workers, or a range such as 2..8 that follows the load. Default: all"
            " cores, or the number in a saved plan.",
            metavar="N or A..B",
            show_default=False,
        ),
    ] = None
    plan: Annotated[
        str,
        Option(
            help="How to distribute work: shared, scan, auto, grid, kdtree, rtree, frequency,"
            " hypergraph, metric, termhash, kdt, agrid, qt, quadtree, text, or a file of"
            " `placewire plan`."
            " For nearest subscriptions: kop, sop, dkm, ps2, sstd; for relevant ones: hash,"
            " location, keyword, prefix, location+prefix, prefix+location; for each kind:"
            " nearest=dkm,relevant=prefix.",
            autocompletion=complete_plan,
        ),
    ] = "shared"
    batch_rows: Annotated[int, number_option(int, "Events per batch.", 1)] = 200_000
    state: Annotated[
        Path | None, Option(help="Directory for the state; a stopped run resumes from it.")
    ] = None
    with_data: Annotated[
        bool, Option("--with-data", help="Add each object's data to its results.")
    ] = False
    slice: Annotated[
        str | None,
        Option(
            help="Time span of one file of retained objects, such as PT1H. Default: an eighth of"
            " the retention.",
            show_default=False,
        ),
    ] = None
    archive: Annotated[
        Path | None,
        Option(help="Folder for objects that leave the retention, Parquet by day."),
    ] = None
    buffer: Annotated[
        str, Option(help="Candidate buffer of relevant subscriptions: cskyband, skyband or kmax.")
    ] = "cskyband"
    rebalance: Annotated[
        str,
        Option(
            help="How to adjust a plan when the loads of workers diverge: auto, ps2-local,"
            " ps2-local:dp (or gr, si, ra), ps2-global, sstd, tornado or off.",
            autocompletion=complete_rebalance,
        ),
    ] = "auto"
    runner: Annotated[str, Option(help="Where to run: spark, or local for small logs.")] = "spark"
    json: JsonOption = False


@app.command()
@with_options
def replay(options: ReplayOptions) -> None:
    """Run an event log through the pipeline. Writes its results in order."""
    from placewire.cli.output import print_summary
    from placewire.cli.replay import run_replay

    check_runner(options.runner)
    print_summary(run_replay(options), options.json)


@app.command()
def generate(
    log: Annotated[Path, Argument(help="Event log to write, JSON Lines.")],
    objects: Annotated[int, number_option(int, "Number of objects.", 0)] = 100_000,
    subscriptions: Annotated[
        int,
        number_option(int, "Number of subscriptions; the first 18 are readable.", 0),
    ] = 1_000,
    seed: Annotated[int, number_option(int, "Seed: equal seeds give equal logs.", 0)] = 7,
    churn: Annotated[
        float,
        number_option(float, "Fraction of subscriptions that change during the log.", 0, 1),
    ] = 0.0,
    bad: Annotated[int, number_option(int, "Number of malformed lines.", 0)] = 0,
    queries: Annotated[int, number_option(int, "Number of queries; four are readable.", 0)] = 40,
    start: Annotated[str, Option(help="Start time of the log, RFC 3339.")] = "2026-03-01T12:00:00Z",
    seconds: Annotated[
        float, number_option(float, "Seconds that the log covers.", 0, YEAR_S)
    ] = 3600,
    json: JsonOption = False,
) -> None:
    """Generate an event log of city life."""
    from placewire.cli.demo import run_generate
    from placewire.cli.output import print_summary
    from placewire.demo import CityLife

    life = CityLife(seed, objects, subscriptions, start, seconds, churn, bad, queries)
    print_summary(run_generate(life, log), json)


class RunOptions(NamedTuple):
    """The options of `run`."""

    config: Annotated[Path, Option(help="Sources, sinks and options of the job, TOML.")]
    once: Annotated[bool, Option("--once", help="Stop once all current data is processed.")] = False
    seconds: Annotated[
        float | None, number_option(float, "Stop after this many seconds.", 0, name="--for")
    ] = None
    log: Annotated[str, Option(help="Format of the log on standard error: plain or json.")] = (
        "plain"
    )
    plan: Annotated[
        str | None, Option(help="Override the configured plan.", autocompletion=complete_plan)
    ] = None
    workers: Annotated[
        str | None, Option(help="Override the configured workers.", metavar="N or A..B")
    ] = None
    rebalance: Annotated[
        str | None,
        Option(help="Override the configured rebalancing.", autocompletion=complete_rebalance),
    ] = None
    json: Annotated[bool, Option("--json", help="Print a summary as one JSON object.")] = False


@app.command()
@with_options
def run(options: RunOptions) -> None:
    """Run a streaming job from a config file. Resumes where it left off."""
    from placewire.cli.output import print_summary
    from placewire.cli.replay import run_stream

    outcome = run_stream(options)
    if options.json or options.log == "plain":
        print_summary(outcome, options.json, sys.stderr)


@app.command("import")
def import_(
    file: Annotated[str, Argument(help="Queries or fences; - for standard input.")],
    source: Annotated[
        str, Option("--from", help="Source system: elasticsearch, opensearch or tile38.")
    ],
    out: Annotated[
        str, Option(help="File of subscriptions, JSON Lines; - for standard output.")
    ] = "-",
    report: Annotated[
        Path | None, Option(help="File of rejected queries and notes, JSON Lines.")
    ] = None,
    text_field: Annotated[
        list[str] | None,
        Option(
            help="Field that holds the text; can be repeated.",
            show_default="the only one queried",
        ),
    ] = None,
    place_field: Annotated[
        list[str] | None,
        Option(
            help="Field that holds the place; can be repeated.",
            show_default="the only one queried",
        ),
    ] = None,
    query_field: Annotated[str, Option(help="Field of a document that has its query.")] = "query",
    key: Annotated[
        str | None,
        Option(
            help="Tile38 collection whose objects are the stream.",
            show_default="the only one watched",
        ),
    ] = None,
    ts: Annotated[
        str | None, Option(help="Start time of the subscriptions, RFC 3339.", show_default="now")
    ] = None,
    with_data: Annotated[
        bool, Option("--with-data", help="Keep other fields of a document, or META, as data.")
    ] = False,
    phrases_as_words: Annotated[
        bool,
        Option("--phrases-as-words", help="Translate a phrase to its words, in any order."),
    ] = False,
    json: Annotated[bool, Option("--json", help="Print a summary as one JSON object.")] = False,
) -> None:
    """Import percolator queries or Tile38 fences."""
    from placewire.cli.import_ import run_import
    from placewire.importers import ImportOptions

    options = ImportOptions(
        ts or "", text_field or (), place_field or (), query_field, key, with_data, phrases_as_words
    )
    exit_with(run_import(file, source, out, report, options, json))


@app.command()
@with_target()
def query(
    query: Annotated[
        str, Argument(help="Query as JSON; - reads one per line from standard input.")
    ],
    *,
    target: CommandTarget,
    with_data: Annotated[
        bool, Option("--with-data", help="Add each object's data to the answer.")
    ] = False,
    timing: Annotated[bool, Option("--timing", help="Print the time of each answer.")] = False,
    _: Annotated[bool, Option("--json", help="Print JSON (default).")] = False,
) -> None:
    """Query the retained objects."""
    from placewire.cli.explain import run_query

    exit_with(run_query(query, target, with_data, timing))


@app.command()
@with_target(optional=True)
def explain(
    object: Annotated[
        str,
        Option(
            help="Object: its seq or id in the state, or its JSON.",
            metavar="SEQ, ID or JSON",
        ),
    ],
    subscription: Annotated[
        str,
        Option(
            help="Subscription: its id in the state, or its JSON.",
            metavar="ID or JSON",
            autocompletion=complete_subscription,
        ),
    ],
    *,
    target: CommandTarget | None,
    settings: Annotated[
        Path | None, Option(help="Settings that change results, TOML; without a state only.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Explain why an object did or did not match a subscription."""
    from placewire.cli.explain import run_explain

    run_explain(target, object, subscription, settings, json)


@app.command()
@with_target()
def status(
    *,
    target: CommandTarget,
    leaves: Annotated[int, number_option(int, "Number of heaviest leaves to show.", 0)] = 10,
    map: Annotated[Path | None, Option(help="PNG file to write a map of the load to.")] = None,
    json: JsonOption = False,
    metrics: Annotated[
        bool, Option("--metrics", help="Print metrics in the Prometheus text format.")
    ] = False,
) -> None:
    """Show the status of a state directory or server."""
    from placewire.cli.status import run_status

    run_status(target, leaves, map, json, metrics)


@app.command()
def plan(
    objects: Annotated[
        Path | None, Option(help="Event log, or Parquet with columns id, ts, lon, lat, text.")
    ] = None,
    subscriptions: Annotated[Path | None, Option(help="Event log; may be the same file.")] = None,
    workers: Annotated[int | None, number_option(int, "Number of workers.", 1, 4096)] = None,
    plan: Annotated[
        str,
        Option(
            help="Plan to make, auto for its candidates, or all.",
            autocompletion=complete_boolean_plan,
        ),
    ] = "all",
    out: Annotated[
        Path | None, Option(help="Folder for a picture and a file of each plan.")
    ] = None,
    sample: Annotated[int, number_option(int, "Maximum number of objects to sample.", 1)] = 100_000,
    sample_subscriptions: Annotated[
        int, number_option(int, "Maximum number of subscriptions to sample.", 1)
    ] = 1_000_000,
    machines: Annotated[
        int, number_option(int, "Number of machines that run the workers.", 1, 4096)
    ] = 1,
    cost: Annotated[str, Option(help="Cost model of loads: load, tornado or sstd.")] = "load",
    statistics: Annotated[
        bool, Option("--statistics", help="Also print where objects and subscriptions are.")
    ] = False,
    server: ServerOption = None,
    state: StateOption = None,
    key: KeyOption = None,
    leaves: Annotated[int, number_option(int, "Number of heaviest leaves to show.", 0)] = 10,
    json: JsonOption = False,
) -> None:
    """Compare plans on given data, or show the current plan."""
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


@app.command()
@with_target()
def rebalance(
    *,
    target: CommandTarget,
    plan: Annotated[
        str | None,
        Option(
            help="Plan to switch to: a method, or shared.", autocompletion=complete_boolean_plan
        ),
    ] = None,
    workers: Annotated[
        int | None, number_option(int, "Number of workers to switch to.", 1, 4096)
    ] = None,
    wait: Annotated[
        float, number_option(float, "Seconds to wait for it to take effect.", 0)
    ] = 10.0,
    json: JsonOption = False,
) -> None:
    """Change the plan or the workers of a running pipeline."""
    from placewire.cli.output import print_summary
    from placewire.cli.status import run_rebalance

    print_summary(run_rebalance(target, plan, workers, wait), json)


@app.command()
def bench(
    only: Annotated[
        str | None, Option(help="Experiments to run, separated by commas.", show_default="all")
    ] = None,
    data: Annotated[Path | None, Option(help="Folder of real data sets.")] = None,
    full: Annotated[bool, Option("--full", help="Include the large sizes.")] = False,
    json: Annotated[bool, Option("--json", help="Print a JSON object for each table.")] = False,
) -> None:
    """Run the benchmarks from a checkout."""
    run_bench(only, data, full, json)


def run_bench(only: str | None, data: Path | None, full: bool, as_json: bool) -> None:
    """Run experiments by name, or all; raises Unusable if no benchmarks found."""
    harness, catalog = (find_module(name) for name in ("harness", "catalog"))

    def show(experiment: Any, table: Any) -> None:
        if as_json:
            columns, rows = list(table.columns), table.cells()
            facts = {"experiment": experiment.name, "columns": columns, "rows": rows}
            print(json.dumps(facts), flush=True)
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
    raise Unusable("bench: no benchmarks found: run it from a checkout of the repository")
