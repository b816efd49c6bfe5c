"""Declare the commands of the service: serve, publish, subscribe, follow results, demo, keys."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from placewire.cli.commands import SERVICE, app, exit_with
from placewire.cli.connection import CommandTarget, open_reader
from placewire.cli.options import (
    JsonLinesOption,
    JsonOption,
    complete_kind,
    complete_plan,
    complete_rebalance,
    complete_role,
    complete_subscription,
    number_option,
    with_target,
)

IdempotencyOption = Annotated[
    str,
    Option(
        "--idempotency-key",
        metavar="NAME",
        help="Lines sent again under the same name are accepted once.",
        show_default="a new one each time",
    ),
]

keys = typer.Typer(help="Manage API keys and their roles: publish, subscribe, admin.")
app.add_typer(keys, name="keys", rich_help_panel=SERVICE)


@app.command(rich_help_panel=SERVICE)
def serve(
    state: Annotated[
        Path,
        Option(help="The state directory; created if it does not exist.", envvar="PLACEWIRE_STATE"),
    ],
    host: Annotated[
        str, Option(help="The address to bind; other than loopback, it requires API keys.")
    ] = "127.0.0.1",
    port: Annotated[int, number_option(int, "The port to listen on.", 1, 65_535)] = 7878,
    settings: Annotated[Path | None, Option(help="Settings that change results, TOML.")] = None,
    runner: Annotated[
        str, Option(help="spark, or local: in one process, for small streams.")
    ] = "spark",
    plan: Annotated[
        str, Option(help="How work is distributed; see replay.", autocompletion=complete_plan)
    ] = "shared",
    workers: Annotated[
        str, Option(help="Number of workers, or a range such as 2..8.", metavar="N or A..B")
    ] = str(os.cpu_count() or 1),
    rebalance: Annotated[
        str, Option(help="How a plan is adjusted; see replay.", autocompletion=complete_rebalance)
    ] = "auto",
    ledger: Annotated[
        str,
        Option(
            help="A PostgreSQL URL for the ledger of owners and results.",
            show_default="a file in the state",
        ),
    ] = "",
    require_keys: Annotated[
        bool,
        Option(
            "--require-keys", help="Require an API key from every client, including local ones."
        ),
    ] = False,
    rate: Annotated[
        float, number_option(float, "Events per second that each key may send; 0 for no limit.", 0)
    ] = 0.0,
    keep: Annotated[str, Option(help="How long results are kept.")] = "P7D",
    allow_private_webhooks: Annotated[
        bool,
        Option(
            "--allow-private-webhooks", help="Allow webhooks to private addresses and any port."
        ),
    ] = False,
    renew_ledger: Annotated[
        bool,
        Option(
            "--renew-ledger",
            help="Continue with a new or older ledger that lacks results the state has deleted.",
        ),
    ] = False,
    seconds: Annotated[
        float | None,
        number_option(float, "Stop this many seconds after it is ready.", 0, name="--for"),
    ] = None,
    part: Annotated[str, Option(help="all, or one part: gateway or pipeline.")] = "all",
    json: Annotated[
        bool, Option("--json", help="Print a JSON object on standard output when ready.")
    ] = False,
    held: Annotated[bool, Option("--held", hidden=True)] = False,
    quiet: Annotated[bool, Option("--quiet", help="Do not print the address.")] = False,
) -> None:
    """Run the service until it is stopped: HTTP in, streams and webhooks out, a live map."""
    from placewire.cli.serve import ServeOptions, run_serve

    options = ServeOptions(
        state, host, port, settings, runner, plan, workers, rebalance, ledger, require_keys,
        rate, keep, allow_private_webhooks, seconds, part, held, quiet, json,
        renew_ledger,
    )  # fmt: skip
    code = run_serve(options, sys.argv[2:])
    exit_with(code)


@app.command(rich_help_panel=SERVICE)
@with_target(ledger=True)
def publish(
    file: Annotated[str | None, Argument(help="Objects, JSON Lines; - for standard input.")] = None,
    text: Annotated[str | None, Option(help="The text of one object to publish.")] = None,
    lon: Annotated[float | None, number_option(float, "Its longitude.", -180, 180)] = None,
    lat: Annotated[float | None, number_option(float, "Its latitude.", -90, 90)] = None,
    id: Annotated[str | None, Option(help="Its id.", show_default="a new one")] = None,
    ts: Annotated[str | None, Option(help="Its time, RFC 3339.", show_default="now")] = None,
    data: Annotated[str | None, Option(help="Its data, any JSON.")] = None,
    *,
    target: CommandTarget,
    idempotency_key: IdempotencyOption = "",
    json: JsonOption = False,
) -> None:
    """Publish objects from a file or pipe, or the one given by --text."""
    from placewire.cli.publish import TypedObject, run_publish

    one = TypedObject(text, lon, lat, id, ts, data)
    exit_with(run_publish(file, one, target, idempotency_key, json))


@app.command(rich_help_panel=SERVICE)
@with_target(ledger=True)
def subscribe(
    id: Annotated[
        str | None, Argument(help="Its id; a new one by default.", metavar="[ID]")
    ] = None,
    kind: Annotated[
        str | None,
        Option(
            help="boolean, nearest, relevant or trending.",
            autocompletion=complete_kind,
            show_default="boolean",
        ),
    ] = None,
    box: Annotated[str | None, Option(help="A region.", metavar="WEST,SOUTH,EAST,NORTH")] = None,
    circle: Annotated[str | None, Option(help="A region.", metavar="LON,LAT,RADIUS_M")] = None,
    polygon: Annotated[
        str | None,
        Option(help="A region: rings as JSON, or a GeoJSON file.", metavar="JSON or FILE"),
    ] = None,
    where: Annotated[
        str | None, Option(help="The words, such as coffee AND (free OR sale).")
    ] = None,
    keywords: Annotated[
        list[str] | None,
        Option(help="Words, separated by commas; can be repeated.", metavar="WORD,..."),
    ] = None,
    k: Annotated[
        int | None, number_option(int, "How many objects or terms.", 1, 1000, name="-k")
    ] = None,
    lon: Annotated[float | None, number_option(float, "Longitude of the point.", -180, 180)] = None,
    lat: Annotated[float | None, number_option(float, "Latitude of the point.", -90, 90)] = None,
    mode: Annotated[
        str | None, Option(help="nearest: any of the keywords, or all.", show_default="any")
    ] = None,
    within_m: Annotated[
        float | None, number_option(float, "nearest: maximum distance in metres.", 0)
    ] = None,
    alpha: Annotated[
        float | None, number_option(float, "relevant: weight of proximity.", 0, 1)
    ] = None,
    reach_m: Annotated[
        float | None,
        number_option(float, "relevant: distance up to which proximity counts, in metres.", 0),
    ] = None,
    window: Annotated[
        str | None, Option(help="trending: the time it looks back, such as PT20M.")
    ] = None,
    every: Annotated[
        str | None, Option(help="trending: how often it reports, such as PT10M.")
    ] = None,
    expires: Annotated[str | None, Option(help="When it expires, RFC 3339.")] = None,
    data: Annotated[str | None, Option(help="Its data, any JSON.")] = None,
    json_body: Annotated[
        str | None, Option(help="The whole subscription as JSON, instead of options.")
    ] = None,
    file: Annotated[
        str | None, Option(help="Many subscriptions, JSON Lines; - for standard input.")
    ] = None,
    *,
    target: CommandTarget,
    idempotency_key: IdempotencyOption = "",
    json: JsonOption = False,
) -> None:
    """Create or replace a subscription to objects, by region and words."""
    from placewire.cli.subscribe import run_subscribe

    given = {
        "kind": kind, "where": where, "keywords": keywords or None, "k": k, "lon": lon,
        "lat": lat, "mode": mode, "within_m": within_m, "alpha": alpha, "reach_m": reach_m,
        "window": window, "every": every, "expires": expires, "data": data,
        "box": box, "circle": circle, "polygon": polygon,
    }  # fmt: skip
    exit_with(run_subscribe(id, given, json_body, file, target, idempotency_key, json))


@app.command(rich_help_panel=SERVICE)
@with_target(ledger=True)
def unsubscribe(
    ids: Annotated[list[str], Argument(help="Their ids.", autocompletion=complete_subscription)],
    *,
    target: CommandTarget,
    json: JsonLinesOption = False,
) -> None:
    """End subscriptions."""
    from placewire.cli.subscribe import run_unsubscribe

    exit_with(run_unsubscribe(ids, target, json))


@app.command(rich_help_panel=SERVICE)
@with_target(ledger=True)
def subscriptions(
    ids: Annotated[
        list[str] | None,
        Argument(
            help="Show these in full, with their current results.",
            autocompletion=complete_subscription,
        ),
    ] = None,
    every: Annotated[bool, Option("--all", help="Include those that ended or expired.")] = False,
    *,
    target: CommandTarget,
    json: JsonLinesOption = False,
) -> None:
    """List your subscriptions, or those of all owners in a state directory."""
    from placewire.cli.subscribe import run_subscriptions

    run_subscriptions(ids or [], target, every, json)


@app.command(rich_help_panel=SERVICE)
@with_target(ledger=True)
def tail(
    ids: Annotated[
        list[str] | None,
        Argument(
            help="Subscriptions to follow; all of your own by default.",
            autocompletion=complete_subscription,
        ),
    ] = None,
    after: Annotated[
        str,
        Option(
            help="latest, or the number to start after: a result number of the one subscription,"
            " or, with several, a position among all. 0 starts with the oldest that is kept.",
            metavar="NUMBER or latest",
        ),
    ] = "latest",
    seconds: Annotated[
        float | None, number_option(float, "Stop after this many seconds.", 0, name="--for")
    ] = None,
    count: Annotated[int | None, number_option(int, "Stop after this many results.", 0)] = None,
    *,
    target: CommandTarget,
    json: JsonLinesOption = False,
) -> None:
    """Follow results as they arrive. A lost stream resumes where it left off."""
    from placewire.cli.subscribe import run_tail

    run_tail(ids or [], target, after, seconds, count, json)


@app.command(rich_help_panel=SERVICE)
def demo(
    rate: Annotated[int, number_option(int, "Texts per second.", 1, 100_000)] = 300,
    subscriptions: Annotated[int, number_option(int, "Number of subscriptions.", 1)] = 5_000,
    seed: Annotated[int, number_option(int, "Equal seeds give equal texts.", 0)] = 7,
    workers: Annotated[int, number_option(int, "Number of workers.", 1, 4096)] = (
        os.cpu_count() or 1
    ),
    runner: Annotated[str, Option(help="spark, or local: in one process.")] = "spark",
    port: Annotated[
        int | None,
        number_option(int, "The port to listen on; by default 7878 if it is free.", 1, 65_535),
    ] = None,
    seconds: Annotated[
        float | None,
        number_option(
            float, "Stop after this many seconds; 60 without a terminal.", 0, name="--for"
        ),
    ] = None,
    json: Annotated[
        bool,
        Option(
            "--json", help="Print a summary as one JSON object, and all else on standard error."
        ),
    ] = False,
) -> None:
    """Start the service with generated city life and watch it in a browser."""
    from placewire.cli.demo import DemoOptions, run_demo

    run_demo(DemoOptions(rate, subscriptions, seed, workers, runner, port, seconds, json))


@keys.command()
@with_target(ledger=True)
def add(
    name: Annotated[str, Argument(help="The name of the key.")],
    role: Annotated[
        list[str],
        Option(help="publish, subscribe or admin; can be repeated.", autocompletion=complete_role),
    ],
    *,
    target: CommandTarget,
    json: JsonOption = False,
) -> None:
    """Create a key. It is shown only once."""
    add_key(name, role, target, json)


@keys.command("list")
@with_target(ledger=True)
def list_(*, target: CommandTarget, json: JsonLinesOption = False) -> None:
    """List the names and roles of keys."""
    list_keys(target, json)


@keys.command("end")
@with_target(ledger=True)
def end_(
    name: Annotated[str, Argument(help="The name of the key.")],
    *,
    target: CommandTarget,
    json: JsonOption = False,
) -> None:
    """Delete a key; its subscriptions stay."""
    end_key(name, target, json)


def add_key(name: str, roles: list[str], target: CommandTarget, as_json: bool) -> None:
    """Create a key and print it, alone on standard output; raises Unusable."""
    with open_reader(target, make=True) as reader:
        made = reader.add_key(name, roles)
    if as_json:
        print(json.dumps(made))
    else:
        print(f"key {name} ({', '.join(made['roles'])}), shown this once:", file=sys.stderr)
        print(made["key"])


def list_keys(target: CommandTarget, as_json: bool) -> None:
    """Print the names and roles of keys; raises Unusable."""
    with open_reader(target) as reader:
        found = reader.keys()
    for one in found:
        print(json.dumps(one) if as_json else f"{one['name']}: {', '.join(one['roles'])}")
    if not found:
        print("no keys", file=sys.stderr)


def end_key(name: str, target: CommandTarget, as_json: bool) -> None:
    """Revoke a key; raises Unusable."""
    with open_reader(target) as reader:
        ended = reader.end_key(name)
    print(json.dumps(ended) if as_json else f"ended {name}")
