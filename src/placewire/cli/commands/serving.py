"""The command that serves."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from placewire.cli.app import SERVICE, app, end
from placewire.cli.completing import complete_plan, complete_rebalance
from placewire.cli.numbers import number


@app.command(rich_help_panel=SERVICE)
def serve(
    state: Annotated[
        Path,
        typer.Option(
            help="Where everything is kept; made if it is not there.", envvar="PLACEWIRE_STATE"
        ),
    ],
    host: Annotated[str, typer.Option(help="Beyond loopback everybody needs a key.")] = "127.0.0.1",
    port: Annotated[int, number(int, "The port to listen on.", 1, 65_535)] = 7878,
    settings: Annotated[
        Path | None, typer.Option(help="Settings that change results, TOML.")
    ] = None,
    runner: Annotated[
        str, typer.Option(help="spark, or local: in one process, for small streams.")
    ] = "spark",
    plan: Annotated[
        str,
        typer.Option(help="How work is distributed, as of replay.", autocompletion=complete_plan),
    ] = "shared",
    workers: Annotated[
        str, typer.Option(help="How many workers, or a range as 2..8.", metavar="N or A..B")
    ] = str(os.cpu_count() or 1),
    rebalance: Annotated[
        str,
        typer.Option(
            help="How a plan is adjusted, as of replay.", autocompletion=complete_rebalance
        ),
    ] = "auto",
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
    renew_ledger: Annotated[
        bool,
        typer.Option(
            "--renew-ledger",
            help="Go on with a ledger that lacks what the state has swept: a new or an old one.",
        ),
    ] = False,
    seconds: Annotated[
        float | None, number(float, "End so many seconds after it is ready.", 0, name="--for")
    ] = None,
    part: Annotated[str, typer.Option(help="all, or one of its parts: gateway, pipeline.")] = "all",
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object on standard output when ready.")
    ] = False,
    held: Annotated[bool, typer.Option("--held", hidden=True)] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not say where it is.")] = False,
) -> None:
    """Serve: HTTP in, streams and webhooks out, a live map; until it is stopped."""
    from placewire.cli.serve import ServeOptions, run_serve

    options = ServeOptions(
        state, host, port, settings, runner, plan, workers, rebalance, ledger, require_keys,
        rate, keep, allow_private_webhooks, seconds, part, held, quiet, json,
        renew_ledger,
    )  # fmt: skip
    code = run_serve(options, sys.argv[2:])
    end(code)
