"""`placewire plan` of a state or a server: the boolean plan in force, and its heaviest leaves."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console

from placewire.cli.statustables import asked_line
from placewire.cli.tables import Heading, print_rows
from placewire.cli.targets import Target, open_client
from placewire.status.plan_facts import plan_facts
from placewire.status.status import open_state, read_standing

HEADINGS: list[Heading] = [
    ("", "leaf"), ("", "west"), ("", "south"), ("", "east"), ("", "north"), ("", "workers"),
    ("share of", "load, %"),
]  # fmt: skip


def show_plan(target: Target, most: int, as_json: bool) -> None:
    """Print it; raises Unusable."""
    if target.state is not None:
        facts = plan_facts(open_state(target.state), read_standing(target.state))
    else:
        with open_client(target) as client:
            facts = client.plan()
    if as_json:
        print(json.dumps(facts))
        return
    workers, leaves = facts["workers"], facts["leaves"]
    line = f"plan {facts['name']}: version {facts['version']} for {workers} worker"
    line += "s" if workers > 1 else ""
    for said in ("sized", "why"):
        line += f"; {facts[said]}" if facts.get(said) else ""
    print(line)
    if facts.get("asked"):
        print(f"  {asked_line(facts['asked'])}")
    for change in facts.get("changes", ()):
        print(f"  {change['at']}: {change['line']}")
    if len(leaves) > 1 and most:
        print(f"\nthe heaviest of {len(leaves):,} leaves:")
        print_rows(Console(highlight=False), HEADINGS, [row_of(leaf) for leaf in leaves[:most]])


def row_of(leaf: dict[str, Any]) -> list[str]:
    return [
        str(leaf["leaf"]),
        *(f"{edge:.2f}" for edge in leaf["box"]),
        " ".join(map(str, leaf["workers"])),
        f"{100 * leaf['load']:.1f}",
    ]
