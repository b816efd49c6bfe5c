"""Declare the commands that look into a state or a server: query, explain, status, plan, bench."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from placewire.cli.commands import INSPECTION, PLANS, app, exit_with
from placewire.cli.connection import CommandTarget, read_target
from placewire.cli.options import (
    JsonOption,
    KeyOption,
    ServerOption,
    StateOption,
    complete_boolean_plan,
    complete_subscription,
    number_option,
    with_target,
)
from placewire.model.errors import Unusable


@app.command(rich_help_panel=INSPECTION)
@with_target()
def query(
    query: Annotated[
        str, Argument(help="The query as JSON; - reads one per line from standard input.")
    ],
    *,
    target: CommandTarget,
    with_data: Annotated[
        bool, Option("--with-data", help="Add each object's data to the answer.")
    ] = False,
    timing: Annotated[bool, Option("--timing", help="Print how long each answer took.")] = False,
    _: Annotated[bool, Option("--json", help="Print JSON, which is the default.")] = False,
) -> None:
    """Query the retained objects: boolean, nearest, relevant or trending."""
    from placewire.cli.query import run_query

    exit_with(run_query(query, target, with_data, timing))


@app.command(rich_help_panel=INSPECTION)
@with_target(optional=True)
def explain(
    object: Annotated[
        str,
        Option(
            help="The object: its seq or its id in the state, or its JSON.",
            metavar="SEQ, ID or JSON",
        ),
    ],
    subscription: Annotated[
        str,
        Option(
            help="The subscription: its id in the state, or its JSON.",
            metavar="ID or JSON",
            autocompletion=complete_subscription,
        ),
    ],
    *,
    target: CommandTarget | None,
    settings: Annotated[
        Path | None, Option(help="Settings that change results, TOML, if there is no state.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Explain why an object did or did not match a subscription, and what matching costs."""
    from placewire.cli.explain import run_explain

    run_explain(target, object, subscription, settings, json)


@app.command(rich_help_panel=INSPECTION)
@with_target()
def status(
    *,
    target: CommandTarget,
    leaves: Annotated[int, number_option(int, "Number of heaviest leaves to show.", 0)] = 10,
    map: Annotated[Path | None, Option(help="Write a map of the load by leaf, PNG.")] = None,
    json: JsonOption = False,
    metrics: Annotated[
        bool, Option("--metrics", help="Print metrics in the Prometheus text format.")
    ] = False,
) -> None:
    """Show the status of a state directory or server: plans, workers, load per leaf."""
    from placewire.cli.status import run_status

    run_status(target, leaves, map, json, metrics)


@app.command(rich_help_panel=PLANS)
def plan(
    objects: Annotated[
        Path | None, Option(help="An event log, or Parquet with columns id, ts, lon, lat, text.")
    ] = None,
    subscriptions: Annotated[
        Path | None, Option(help="An event log; it may be the same file.")
    ] = None,
    workers: Annotated[int | None, number_option(int, "Number of workers.", 1, 4096)] = None,
    plan: Annotated[
        str,
        Option(
            help="One plan's name, auto for its candidates, or all.",
            autocompletion=complete_boolean_plan,
        ),
    ] = "all",
    out: Annotated[
        Path | None, Option(help="A folder for a picture and a file of each plan.")
    ] = None,
    sample: Annotated[int, number_option(int, "Maximum number of objects to sample.", 1)] = 100_000,
    sample_subscriptions: Annotated[
        int, number_option(int, "Maximum number of subscriptions to sample.", 1)
    ] = 1_000_000,
    machines: Annotated[
        int, number_option(int, "Number of machines that run the workers.", 1, 4096)
    ] = 1,
    cost: Annotated[str, Option(help="The cost model of loads: load, tornado or sstd.")] = "load",
    statistics: Annotated[
        bool, Option("--statistics", help="Also show where objects and subscriptions are.")
    ] = False,
    server: ServerOption = None,
    state: StateOption = None,
    key: KeyOption = None,
    leaves: Annotated[int, number_option(int, "Number of heaviest leaves to show.", 0)] = 10,
    json: JsonOption = False,
) -> None:
    """Compare plans on given data, or show the plan in force of a state or server."""
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


@app.command(rich_help_panel=PLANS)
@with_target()
def rebalance(
    *,
    target: CommandTarget,
    plan: Annotated[
        str | None,
        Option(
            help="The new plan: a method's name, or shared.", autocompletion=complete_boolean_plan
        ),
    ] = None,
    workers: Annotated[
        int | None, number_option(int, "The new number of workers.", 1, 4096)
    ] = None,
    wait: Annotated[
        float, number_option(float, "Maximum number of seconds to wait for it.", 0)
    ] = 10.0,
    json: JsonOption = False,
) -> None:
    """Switch a running replay or service to another boolean plan or number of workers."""
    from placewire.cli.output import print_summary
    from placewire.cli.rebalance import run_rebalance

    print_summary(run_rebalance(target, plan, workers, wait), json)


@app.command(rich_help_panel=INSPECTION)
def bench(
    only: Annotated[
        str | None, Option(help="Names of experiments, separated by commas.", show_default="all")
    ] = None,
    data: Annotated[Path | None, Option(help="A folder of real data sets.")] = None,
    full: Annotated[bool, Option("--full", help="Include the large sizes.")] = False,
    json: Annotated[bool, Option("--json", help="Print a JSON object for each table.")] = False,
) -> None:
    """Run the benchmarks, in a checkout of the repository."""
    run_bench(only, data, full, json)


def run_bench(only: str | None, data: Path | None, full: bool, as_json: bool) -> None:
    """Run experiments by name, or all; raises Unusable if the benchmarks are not here."""
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
    raise Unusable("bench: the benchmarks are not here: run it in a checkout of the repository")
