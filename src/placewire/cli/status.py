"""`placewire status`: how a state stands, as tables, as JSON, as metrics or as a map."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from placewire.cli.drawing import can_draw
from placewire.cli.statustables import print_status
from placewire.cli.targets import Target, open_client
from placewire.model.errors import Unusable
from placewire.status.status import Standing, read_standing, to_facts, to_metrics


class StatusOptions(NamedTuple):
    """What the user typed."""

    target: Target
    leaves: int
    map: Path | None
    json: bool
    metrics: bool


def run_status(options: StatusOptions) -> None:
    """Print how a state or a server stands; raises Unusable."""
    if options.json and options.metrics:
        raise Unusable("status: --json and --metrics are two ways to print, give one")
    if options.target.state is None:
        ask_server(options)
        return
    standing = read_standing(options.target.state)
    if options.metrics:
        sys.stdout.write(to_metrics(standing, options.leaves))
    else:
        show(to_facts(standing, options.leaves), options)
    if options.map is not None:
        draw(options.map, standing)


def ask_server(options: StatusOptions) -> None:
    """The same of a server."""
    if options.map is not None:
        raise Unusable("status: --map needs a state directory, not a server")
    with open_client(options.target) as client:
        if options.metrics:
            sys.stdout.write(client.metrics())
        else:
            show(client.status(options.leaves), options)


def show(facts: dict[str, Any], options: StatusOptions) -> None:
    if options.json:
        print(json.dumps(facts))
    else:
        print_status(Console(highlight=False), facts)


def draw(path: Path, standing: Standing) -> None:
    """Leave a picture of the load by leaf."""
    if standing.loads is None:
        raise Unusable(
            f"{path}: there is no load by leaf to draw: it needs a boolean plan that cuts,"
            " --rebalance other than off, and a batch since the plan was adjusted last"
        )
    if not can_draw():
        raise Unusable(f"{path}: needs matplotlib, which is not installed: pip install matplotlib")
    from placewire.cli.loadmap import draw_load_map

    try:
        draw_load_map(path, standing.loads, standing.codes)
    except (OSError, ValueError) as error:
        raise Unusable(f"{path}: cannot be written: {error}") from None
