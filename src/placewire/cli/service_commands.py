"""Declare the commands of the service: serve, publish, subscribe, follow results, demo, keys.

A command imports its implementation only when it runs, which keeps help and completion quick.
"""

from __future__ import annotations

import os
import sys
from json import dumps
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from typer import Argument, Option

from placewire.cli.options import (
    CommandTarget,
    JsonLinesOption,
    JsonOption,
    app,
    complete_kind,
    complete_plan,
    complete_rebalance,
    complete_role,
    complete_subscription,
    exit_with,
    number_option,
    open_reader,
    with_options,
    with_target,
)

ALL_CORES = os.cpu_count() or 1

IdempotencyOption = Annotated[
    str,
    Option(
        "--idempotency-key",
        metavar="NAME",
        help="Accept a line only once under this name, however often it is sent.",
        show_default=False,
    ),
]

keys = typer.Typer(help="Manage API keys and their roles.", rich_markup_mode=None)


class ServeOptions(NamedTuple):
    """The options of `serve`."""

    state: Annotated[
        Path,
        Option(
            help="State directory; created if missing. Default: $PLACEWIRE_STATE.",
            envvar="PLACEWIRE_STATE",
            show_envvar=False,
        ),
    ]
    host: Annotated[str, Option(help="Address to bind. Any but loopback requires API keys.")] = (
        "127.0.0.1"
    )
    port: Annotated[int, number_option(int, "Port to listen on.", 1, 65_535)] = 7878
    settings: Annotated[Path | None, Option(help="Settings that change results, TOML.")] = None
    runner: Annotated[str, Option(help="Where to run: spark, or local for small streams.")] = (
        "spark"
    )
    plan: Annotated[
        str, Option(help="How to distribute work; see replay.", autocompletion=complete_plan)
    ] = "shared"
    workers: Annotated[
        str, Option(help="Number of workers, or a range such as 2..8.", metavar="N or A..B")
    ] = str(ALL_CORES)
    rebalance: Annotated[
        str, Option(help="When to adjust the plan; see replay.", autocompletion=complete_rebalance)
    ] = "auto"
    ledger: Annotated[
        str,
        Option(
            help="PostgreSQL URL of the ledger. Default: a file in the state.",
            show_default=False,
        ),
    ] = ""
    require_keys: Annotated[
        bool, Option("--require-keys", help="Require an API key from local clients too.")
    ] = False
    rate: Annotated[
        float, number_option(float, "Events per second and API key; 0 for no limit.", 0)
    ] = 0.0
    keep: Annotated[str, Option(help="How long to keep results, ISO 8601.")] = "P7D"
    allow_private_webhooks: Annotated[
        bool,
        Option(
            "--allow-private-webhooks", help="Allow webhooks to private addresses and any port."
        ),
    ] = False
    renew_ledger: Annotated[
        bool,
        Option(
            "--renew-ledger",
            help="Accept a new or older ledger that lacks results the state has deleted.",
        ),
    ] = False
    seconds: Annotated[
        float | None,
        number_option(float, "Stop this many seconds after startup.", 0, name="--for"),
    ] = None
    part: Annotated[str, Option(help="Part to run: all, gateway or pipeline.")] = "all"
    json: Annotated[bool, Option("--json", help="Print one JSON object when ready.")] = False
    held: Annotated[bool, Option("--held", hidden=True)] = False  # stop with the parent process
    quiet: Annotated[bool, Option("--quiet", help="Do not print the address.")] = False


@app.command()
@with_options
def serve(options: ServeOptions) -> None:
    """Run the service: HTTP API, streams, webhooks, live map."""
    from placewire.cli.serve import run_serve

    exit_with(run_serve(options, sys.argv[2:]))


@app.command()
@with_target(ledger=True)
def publish(
    file: Annotated[str | None, Argument(help="Objects, JSON Lines; - for standard input.")] = None,
    text: Annotated[str | None, Option(help="Publish one object with this text.")] = None,
    lon: Annotated[float | None, number_option(float, "Longitude of --text.", -180, 180)] = None,
    lat: Annotated[float | None, number_option(float, "Latitude of --text.", -90, 90)] = None,
    id: Annotated[str | None, Option(help="Id of --text.", show_default="random")] = None,
    ts: Annotated[str | None, Option(help="Time of --text, RFC 3339.", show_default="now")] = None,
    data: Annotated[str | None, Option(help="Data of --text, any JSON.")] = None,
    *,
    target: CommandTarget,
    idempotency_key: IdempotencyOption = "",
    json: JsonOption = False,
) -> None:
    """Publish objects from a file or a pipe, or one with --text."""
    from placewire.cli.pubsub import TypedObject, run_publish

    one = TypedObject(text, lon, lat, id, ts, data)
    exit_with(run_publish(file, one, target, idempotency_key, json))


@app.command()
@with_target(ledger=True)
def subscribe(
    id: Annotated[str | None, Argument(help="Id; random by default.", metavar="[ID]")] = None,
    kind: Annotated[
        str | None,
        Option(
            help="boolean (default), nearest, relevant or trending.", autocompletion=complete_kind
        ),
    ] = None,
    box: Annotated[str | None, Option(help="Region.", metavar="WEST,SOUTH,EAST,NORTH")] = None,
    circle: Annotated[str | None, Option(help="Region.", metavar="LON,LAT,RADIUS_M")] = None,
    polygon: Annotated[
        str | None,
        Option(help="Region: rings as JSON, or a GeoJSON file.", metavar="JSON or FILE"),
    ] = None,
    where: Annotated[
        str | None, Option(help="Expression, such as 'coffee AND (free OR sale)'.")
    ] = None,
    keywords: Annotated[
        list[str] | None, Option(help="Keywords; can be repeated.", metavar="WORD,...")
    ] = None,
    k: Annotated[
        int | None, number_option(int, "Number of objects or terms.", 1, 1000, name="-k")
    ] = None,
    lon: Annotated[float | None, number_option(float, "Longitude of the point.", -180, 180)] = None,
    lat: Annotated[float | None, number_option(float, "Latitude of the point.", -90, 90)] = None,
    mode: Annotated[
        str | None, Option(help="nearest: match any keyword (default), or all.")
    ] = None,
    within_m: Annotated[
        float | None, number_option(float, "nearest: maximum distance in metres.", 0)
    ] = None,
    alpha: Annotated[
        float | None, number_option(float, "relevant: weight of proximity.", 0, 1)
    ] = None,
    reach_m: Annotated[
        float | None, number_option(float, "relevant: proximity counts up to this many metres.", 0)
    ] = None,
    window: Annotated[
        str | None, Option(help="trending: time span that is counted, as PT20M.")
    ] = None,
    every: Annotated[str | None, Option(help="trending: interval of reports, as PT10M.")] = None,
    expires: Annotated[str | None, Option(help="Time at which it expires, RFC 3339.")] = None,
    data: Annotated[str | None, Option(help="Data, any JSON.")] = None,
    json_body: Annotated[str | None, Option(help="The whole subscription as JSON.")] = None,
    file: Annotated[str | None, Option(help="Many subscriptions, JSON Lines; - for stdin.")] = None,
    *,
    target: CommandTarget,
    idempotency_key: IdempotencyOption = "",
    json: JsonOption = False,
) -> None:
    """Create or replace a subscription."""
    from placewire.cli.pubsub import run_subscribe

    given = {
        "kind": kind, "where": where, "keywords": keywords or None, "k": k, "lon": lon,
        "lat": lat, "mode": mode, "within_m": within_m, "alpha": alpha, "reach_m": reach_m,
        "window": window, "every": every, "expires": expires, "data": data,
        "box": box, "circle": circle, "polygon": polygon,
    }  # fmt: skip
    exit_with(run_subscribe(id, given, json_body, file, target, idempotency_key, json))


@app.command()
@with_target(ledger=True)
def unsubscribe(
    ids: Annotated[
        list[str], Argument(help="Subscriptions to end.", autocompletion=complete_subscription)
    ],
    *,
    target: CommandTarget,
    json: JsonLinesOption = False,
) -> None:
    """End subscriptions."""
    from placewire.cli.pubsub import run_unsubscribe

    exit_with(run_unsubscribe(ids, target, json))


@app.command()
@with_target(ledger=True)
def subscriptions(
    ids: Annotated[
        list[str] | None,
        Argument(
            help="Subscriptions to show in full, with their current results.",
            autocompletion=complete_subscription,
        ),
    ] = None,
    every: Annotated[bool, Option("--all", help="Include ended and expired ones.")] = False,
    *,
    target: CommandTarget,
    json: JsonLinesOption = False,
) -> None:
    """List your subscriptions, or all in a state directory."""
    from placewire.cli.pubsub import run_subscriptions

    run_subscriptions(ids or [], target, every, json)


@app.command()
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
            help="Start after this result number of the subscription, or after this position among"
            " all results if you follow several; 0 starts with the oldest kept.",
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
    """Follow results as they arrive. Resumes after a lost connection."""
    from placewire.cli.pubsub import run_tail

    run_tail(ids or [], target, after, seconds, count, json)


class DemoOptions(NamedTuple):
    """The options of `demo`."""

    rate: Annotated[int, number_option(int, "Objects per second.", 1, 100_000)] = 300
    subscriptions: Annotated[int, number_option(int, "Number of subscriptions.", 1)] = 5_000
    seed: Annotated[int, number_option(int, "Seed of the generated texts.", 0)] = 7
    workers: Annotated[int, number_option(int, "Number of workers.", 1, 4096)] = ALL_CORES
    runner: Annotated[str, Option(help="Where to run: spark, or local.")] = "spark"
    port: Annotated[
        int | None,
        number_option(int, "Port to listen on. Default: 7878 if it is free.", 1, 65_535),
    ] = None
    seconds: Annotated[
        float | None,
        number_option(
            float, "Stop after this many seconds; 60 without a terminal.", 0, name="--for"
        ),
    ] = None
    json: Annotated[
        bool, Option("--json", help="Print a summary as JSON, and the rest on standard error.")
    ] = False


@app.command()
@with_options
def demo(options: DemoOptions) -> None:
    """Serve generated city life and show it on a live map."""
    from placewire.cli.demo import run_demo

    run_demo(options)


app.add_typer(keys, name="keys")


@keys.command("add")
@with_target(ledger=True)
def add_key(
    name: Annotated[str, Argument(help="Name of the key.")],
    role: Annotated[
        list[str],
        Option(help="publish, subscribe or admin; can be repeated.", autocompletion=complete_role),
    ],
    *,
    target: CommandTarget,
    json: JsonOption = False,
) -> None:
    """Create a key and print it. It is shown only once."""
    with open_reader(target, make=True) as reader:
        made = reader.add_key(name, role)
    if json:
        print(dumps(made))
    else:
        print(f"key {name} ({', '.join(made['roles'])}), shown only once:", file=sys.stderr)
        print(made["key"])


@keys.command("list")
@with_target(ledger=True)
def list_keys(*, target: CommandTarget, json: JsonLinesOption = False) -> None:
    """List keys with their roles."""
    with open_reader(target) as reader:
        found = reader.keys()
    for one in found:
        print(dumps(one) if json else f"{one['name']}: {', '.join(one['roles'])}")
    if not found:
        print("no keys", file=sys.stderr)


@keys.command("end")
@with_target(ledger=True)
def end_key(
    name: Annotated[str, Argument(help="Name of the key.")],
    *,
    target: CommandTarget,
    json: JsonOption = False,
) -> None:
    """Delete a key. Its subscriptions stay."""
    with open_reader(target) as reader:
        ended = reader.end_key(name)
    print(dumps(ended) if json else f"ended {name}")
