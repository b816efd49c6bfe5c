"""Commands that publish, subscribe and listen, at a server or in a state directory."""

from __future__ import annotations

from typing import Annotated

import typer

from placewire.cli.app import AS_JSON, SERVICE, app, end
from placewire.cli.completing import complete_kind, complete_subscription
from placewire.cli.numbers import number
from placewire.cli.targets import (
    KeyOption,
    LedgerOption,
    ServerOption,
    StateOption,
    read_target,
)

JsonOption = Annotated[bool, typer.Option("--json", help=AS_JSON)]
OnceOption = Annotated[
    str,
    typer.Option(
        "--idempotency-key",
        metavar="NAME",
        help="Sent again under the same name, nothing is taken twice.",
        show_default="a new one each time",
    ),
]


@app.command(rich_help_panel=SERVICE)
def publish(
    file: Annotated[
        str | None, typer.Argument(help="Objects, JSON Lines; - for standard input.")
    ] = None,
    text: Annotated[str | None, typer.Option(help="Publish one object that says this.")] = None,
    lon: Annotated[float | None, number(float, "Where it is.", -180, 180)] = None,
    lat: Annotated[float | None, number(float, "Where it is.", -90, 90)] = None,
    id: Annotated[
        str | None, typer.Option(help="What it is called.", show_default="a new name")
    ] = None,
    ts: Annotated[
        str | None, typer.Option(help="When it happened, RFC 3339.", show_default="now")
    ] = None,
    data: Annotated[str | None, typer.Option(help="Any JSON that goes with it.")] = None,
    server: ServerOption = None,
    state: StateOption = None,
    key: KeyOption = None,
    ledger: LedgerOption = "",
    idempotency_key: OnceOption = "",
    json: JsonOption = False,
) -> None:
    """Publish objects: those of a file or pipe, or the one of --text."""
    from placewire.cli.publish import OneObject, PublishOptions, run_publish

    target = read_target(server, state, key, ledger)
    one = OneObject(text, lon, lat, id, ts, data)
    end(run_publish(PublishOptions(file, one, target, idempotency_key, json)))


@app.command(rich_help_panel=SERVICE)
def subscribe(
    id: Annotated[
        str | None,
        typer.Argument(help="What it is called; a new name if it is left out.", metavar="[ID]"),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            help="boolean, nearest, relevant or trending.",
            autocompletion=complete_kind,
            show_default="boolean",
        ),
    ] = None,
    box: Annotated[
        str | None, typer.Option(help="A region.", metavar="WEST,SOUTH,EAST,NORTH")
    ] = None,
    circle: Annotated[
        str | None, typer.Option(help="A region.", metavar="LON,LAT,RADIUS_M")
    ] = None,
    polygon: Annotated[
        str | None,
        typer.Option(help="A region: rings as JSON, or a GeoJSON file.", metavar="JSON or FILE"),
    ] = None,
    where: Annotated[
        str | None, typer.Option(help="The words, as coffee AND (free OR sale).")
    ] = None,
    keywords: Annotated[
        list[str] | None,
        typer.Option(help="Words with commas between; may be given again.", metavar="WORD,..."),
    ] = None,
    k: Annotated[int | None, number(int, "How many.", 1, 1000, name="-k")] = None,
    lon: Annotated[float | None, number(float, "Of the point.", -180, 180)] = None,
    lat: Annotated[float | None, number(float, "Of the point.", -90, 90)] = None,
    mode: Annotated[
        str | None, typer.Option(help="nearest: any of the keywords, or all.", show_default="any")
    ] = None,
    within_m: Annotated[
        float | None, number(float, "nearest: no farther than so many metres.", 0)
    ] = None,
    alpha: Annotated[
        float | None, number(float, "relevant: how much nearness counts.", 0, 1)
    ] = None,
    reach_m: Annotated[
        float | None, number(float, "relevant: how far nearness counts, in metres.", 0)
    ] = None,
    window: Annotated[
        str | None, typer.Option(help="trending: how far back it counts, as PT20M.")
    ] = None,
    every: Annotated[
        str | None, typer.Option(help="trending: how often it reports, as PT10M.")
    ] = None,
    expires: Annotated[str | None, typer.Option(help="When it ends by itself, RFC 3339.")] = None,
    data: Annotated[str | None, typer.Option(help="Any JSON that goes with it.")] = None,
    json_body: Annotated[
        str | None, typer.Option(help="The whole subscription as JSON, instead of options.")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(help="Many subscriptions, JSON Lines; - for standard input."),
    ] = None,
    server: ServerOption = None,
    state: StateOption = None,
    key: KeyOption = None,
    ledger: LedgerOption = "",
    idempotency_key: OnceOption = "",
    json: JsonOption = False,
) -> None:
    """Subscribe to objects by where they are and what they say; or replace a subscription."""
    from placewire.cli.subscribe import SubscribeOptions, run_subscribe

    target = read_target(server, state, key, ledger)
    fields = {
        "kind": kind, "where": where, "keywords": keywords or None, "k": k, "lon": lon,
        "lat": lat, "mode": mode, "within_m": within_m, "alpha": alpha, "reach_m": reach_m,
        "window": window, "every": every, "expires": expires, "data": data,
    }  # fmt: skip
    options = SubscribeOptions(
        id, fields, box, circle, polygon, json_body, file, target, idempotency_key, json
    )
    end(run_subscribe(options))


@app.command(rich_help_panel=SERVICE)
def unsubscribe(
    ids: Annotated[
        list[str],
        typer.Argument(help="What they are called.", autocompletion=complete_subscription),
    ],
    server: ServerOption = None,
    state: StateOption = None,
    key: KeyOption = None,
    ledger: LedgerOption = "",
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each.")] = False,
) -> None:
    """End subscriptions."""
    from placewire.cli.subscribe import run_unsubscribe

    end(run_unsubscribe(ids, read_target(server, state, key, ledger), json))


@app.command(rich_help_panel=SERVICE)
def subscriptions(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            help="Show these in full, and how they stand.", autocompletion=complete_subscription
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="List those that ended or expired too.")
    ] = False,
    server: ServerOption = None,
    state: StateOption = None,
    key: KeyOption = None,
    ledger: LedgerOption = "",
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each.")] = False,
) -> None:
    """List one's subscriptions; those of a state directory are everybody's."""
    from placewire.cli.subscribe import run_subscriptions

    run_subscriptions(ids or [], read_target(server, state, key, ledger), every, json)


@app.command(rich_help_panel=SERVICE)
def tail(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            help="Subscriptions to follow; all of one's own if there is none.",
            autocompletion=complete_subscription,
        ),
    ] = None,
    after: Annotated[
        str,
        typer.Option(
            help="latest, or a number to begin after: of results of the one subscription, or, with"
            " several, of positions among all. 0 begins with the first that is kept.",
            metavar="NUMBER or latest",
        ),
    ] = "latest",
    seconds: Annotated[
        float | None, number(float, "End after so many seconds.", 0, name="--for")
    ] = None,
    count: Annotated[int | None, number(int, "End after so many results.", 0)] = None,
    server: ServerOption = None,
    state: StateOption = None,
    key: KeyOption = None,
    ledger: LedgerOption = "",
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each.")] = False,
) -> None:
    """Follow results as they come; a lost stream is taken up where it was."""
    from placewire.cli.tail import TailOptions, run_tail

    target = read_target(server, state, key, ledger)
    run_tail(TailOptions(tuple(ids or ()), target, after, seconds, count, json))
