"""The command line."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, cast

import typer

from placewire.cli.numbers import number
from placewire.model.errors import Unusable

# What Typer raises for anything mistyped; it carries its own click and does not name this base.
Mistyped = cast(type[typer.BadParameter], typer.BadParameter.__mro__[2])

YEAR_S = 366 * 86_400
INTERRUPTED = 130  # what Typer makes of Ctrl-C

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
)


def show_version(asked: bool) -> None:
    """Print the version, and that is all."""
    if asked:
        print(f"placewire {version('placewire')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def placewire(
    context: typer.Context,
    _: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=show_version, help="Show the version."),
    ] = False,
) -> None:
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
            " nearest=dkm,relevant=prefix."
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
            " ps2-global, sstd, tornado or off."
        ),
    ] = "auto",
    runner: Annotated[
        str, typer.Option(help="spark, or local: in this process, for small logs.")
    ] = "spark",
) -> None:
    """Run a whole event log through the pipeline and write its results in order."""
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
    print(run_replay(options))


@app.command()
def query(
    query: Annotated[
        str,
        typer.Argument(help="The query as JSON; - for one a line from standard input."),
    ],
    state: Annotated[Path, typer.Option(help="The state of a replay, running or not.")],
    with_data: Annotated[
        bool, typer.Option("--with-data", help="Add each object's data to its name.")
    ] = False,
    timing: Annotated[
        bool, typer.Option("--timing", help="Tell how long each answer took.")
    ] = False,
) -> None:
    """Ask about the objects that a state retains: boolean, nearest, relevant or trending."""
    from placewire.cli.query import QueryOptions, run_query

    code = run_query(QueryOptions(query, state, with_data, timing))
    if code:
        raise typer.Exit(code)


@app.command()
def explain(
    object: Annotated[
        str,
        typer.Option(
            help="The object: its seq or its id in the state, or its JSON.",
            metavar="SEQ, ID or JSON",
        ),
    ],
    subscription: Annotated[
        str,
        typer.Option(
            help="The subscription: its id in the state, or its JSON.", metavar="ID or JSON"
        ),
    ],
    state: Annotated[
        Path | None, typer.Option(help="The state of a replay, running or not.")
    ] = None,
    settings: Annotated[
        Path | None, typer.Option(help="Settings that change results, TOML, if there is no state.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Tell why an object did or did not match a subscription, and what finding out costs."""
    from placewire.cli.explain import ExplainOptions, run_explain

    run_explain(ExplainOptions(state, object, subscription, settings, json))


@app.command()
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
    plan: Annotated[str | None, typer.Option(help="Instead of the configuration's plan.")] = None,
    workers: Annotated[
        str | None, typer.Option(help="Instead of its workers.", metavar="N or A..B")
    ] = None,
    rebalance: Annotated[str | None, typer.Option(help="Instead of its rebalancing.")] = None,
) -> None:
    """Run sources to sinks until it is stopped; goes on where it was when it is started again."""
    from placewire.cli.run import RunOptions, run_config

    options = RunOptions(config, once, seconds, log, plan, workers, rebalance)
    print(run_config(options), file=sys.stderr)


@app.command()
def status(
    state: Annotated[Path, typer.Option(help="The state of a replay, running or not.")],
    leaves: Annotated[int, number(int, "How many of the heaviest leaves to show.", 0)] = 10,
    map: Annotated[Path | None, typer.Option(help="A picture of the load by leaf, PNG.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="Print metrics in Prometheus' text format.")
    ] = False,
) -> None:
    """Show how a state stands: its plans, and what workers and leaves did lately."""
    from placewire.cli.status import StatusOptions, run_status

    run_status(StatusOptions(state, leaves, map, json, metrics))


@app.command()
def rebalance(
    state: Annotated[Path, typer.Option(help="The state of a replay, running or not.")],
    plan: Annotated[
        str | None, typer.Option(help="The plan to go over to: a method's name, or shared.")
    ] = None,
    workers: Annotated[int | None, number(int, "How many workers to go on with.", 1, 4096)] = None,
    wait: Annotated[float, number(float, "At most so many seconds to wait for it.", 0)] = 10.0,
) -> None:
    """Ask a running replay to go over to another boolean plan, or to other workers."""
    from placewire.cli.rebalance import run_rebalance

    print(run_rebalance(state, plan, workers, wait))


@app.command()
def plan(
    objects: Annotated[
        Path, typer.Option(help="An event log, or Parquet with columns id, ts, lon, lat, text.")
    ],
    subscriptions: Annotated[Path, typer.Option(help="An event log; it may be the same file.")],
    workers: Annotated[int, number(int, "How many workers.", 1, 4096)],
    plan: Annotated[
        str, typer.Option(help="One plan's name, auto for its candidates, or all.")
    ] = "all",
    out: Annotated[
        Path | None, typer.Option(help="A folder for a picture and a file of each plan.")
    ] = None,
    sample: Annotated[int, number(int, "At most so many objects.", 1)] = 100_000,
    sample_subscriptions: Annotated[
        int, number(int, "At most so many subscriptions.", 1)
    ] = 1_000_000,
    machines: Annotated[int, number(int, "On how many machines the workers run.", 1, 4096)] = 1,
    cost: Annotated[
        str, typer.Option(help="What loads are measured by: load, tornado or sstd.")
    ] = "load",
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Show too where objects and subscriptions are.")
    ] = False,
) -> None:
    """Show what every plan would do with given data: copies, balance, cost."""
    from placewire.cli.plan import PlanOptions, run_plan

    run_plan(
        PlanOptions(
            objects,
            subscriptions,
            workers,
            plan,
            out,
            sample,
            sample_subscriptions,
            machines,
            cost,
            statistics,
        )
    )


@app.command()
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
) -> None:
    """Write an event log of city life, to try things on."""
    from placewire.city import CityLife
    from placewire.cli.generate import run_generate

    life = CityLife(seed, objects, subscriptions, start, seconds, churn, bad, queries)
    print(run_generate(life, log))


@app.command("import")
def import_(
    file: Annotated[str, typer.Argument(help="The queries or fences; - for standard input.")],
    source: Annotated[
        str, typer.Option("--from", help="Where they come from: elasticsearch, opensearch, tile38.")
    ],
    out: Annotated[
        str, typer.Option(help="Where the subscriptions go, JSON Lines; - for standard output.")
    ] = "-",
    report: Annotated[
        Path | None,
        typer.Option(help="A list of all that was refused or noted, JSON Lines."),
    ] = None,
    text_field: Annotated[
        list[str] | None,
        typer.Option(
            help="The field that holds the text; may be given again.",
            show_default="the only one asked of",
        ),
    ] = None,
    place_field: Annotated[
        list[str] | None,
        typer.Option(
            help="The field that holds the place; may be given again.",
            show_default="the only one asked of",
        ),
    ] = None,
    query_field: Annotated[
        str, typer.Option(help="The field of a document that has its query.")
    ] = "query",
    key: Annotated[
        str | None,
        typer.Option(
            help="Tile38's collection whose objects are the stream.",
            show_default="the only one watched",
        ),
    ] = None,
    ts: Annotated[
        str | None,
        typer.Option(help="When the subscriptions begin, RFC 3339.", show_default="now"),
    ] = None,
    with_data: Annotated[
        bool,
        typer.Option("--with-data", help="Keep a document's other fields, or META, as data."),
    ] = False,
    phrases_as_words: Annotated[
        bool,
        typer.Option("--phrases-as-words", help="Ask for all the words of a phrase, in any order."),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Tell what came of it as one JSON object.")
    ] = False,
) -> None:
    """Turn percolator queries or Tile38's fences into subscriptions, and list what has none."""
    from placewire.cli.importing import ImportCommand, run_import

    command = ImportCommand(
        file,
        source,
        out,
        report,
        text_field or [],
        place_field or [],
        query_field,
        key,
        ts,
        with_data,
        phrases_as_words,
        json,
    )
    code = run_import(command)
    if code:
        raise typer.Exit(code)


@app.command()
def serve(
    state: Annotated[Path, typer.Option(help="Where everything is kept; made if it is not there.")],
    host: Annotated[str, typer.Option(help="Beyond loopback everybody needs a key.")] = "127.0.0.1",
    port: Annotated[int, number(int, "The port to listen on.", 1, 65_535)] = 7878,
    settings: Annotated[
        Path | None, typer.Option(help="Settings that change results, TOML.")
    ] = None,
    runner: Annotated[
        str, typer.Option(help="spark, or local: in one process, for small streams.")
    ] = "spark",
    plan: Annotated[str, typer.Option(help="How work is distributed, as of replay.")] = "shared",
    workers: Annotated[
        str, typer.Option(help="How many workers, or a range as 2..8.", metavar="N or A..B")
    ] = str(os.cpu_count() or 1),
    rebalance: Annotated[str, typer.Option(help="How a plan is adjusted, as of replay.")] = "auto",
    ledger: Annotated[
        str,
        typer.Option(
            help="A PostgreSQL URL for who owns what and for results.",
            show_default="a file in the state",
        ),
    ] = "",
    require_keys: Annotated[
        bool, typer.Option("--require-keys", help="Nobody may come without a key.")
    ] = False,
    rate: Annotated[
        float, number(float, "Events a second that each key may send; 0 for any.", 0)
    ] = 0.0,
    keep: Annotated[str, typer.Option(help="How long results can be read again.")] = "P7D",
    allow_private_webhooks: Annotated[
        bool,
        typer.Option(
            "--allow-private-webhooks",
            help="Webhooks may have private addresses and any port.",
        ),
    ] = False,
    seconds: Annotated[
        float | None, number(float, "End after so many seconds.", 0, name="--for")
    ] = None,
    part: Annotated[str, typer.Option(help="all, or one of its parts: gateway, pipeline.")] = "all",
    held: Annotated[bool, typer.Option("--held", hidden=True)] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not say where it is.")] = False,
) -> None:
    """Serve: HTTP in, streams and webhooks out, a live map; until it is stopped."""
    from placewire.cli.serve import ServeOptions, run_serve

    options = ServeOptions(
        state, host, port, settings, runner, plan, workers, rebalance, ledger, require_keys,
        rate, keep, allow_private_webhooks, seconds, part, held, quiet,
    )  # fmt: skip
    code = run_serve(options, sys.argv[2:])
    if code:
        raise typer.Exit(code)


@app.command()
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
) -> None:
    """Watch the service at work on city life, in a browser; everything it needs is started."""
    from placewire.cli.demo import DemoOptions, run_demo

    run_demo(DemoOptions(rate, subscriptions, seed, workers, runner, port, seconds))


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
