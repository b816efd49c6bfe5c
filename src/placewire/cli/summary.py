"""The close of a demo: what came of it, and what to try next."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

import placewire
from placewire.cli.dashboard import line_table, said, seconds
from placewire.cli.figures import Figures
from placewire.cli.samples import Listener
from placewire.cli.words import far, quoted


def print_summary(
    console: Console,
    figures: Figures,
    listener: Listener,
    letter: dict[str, Any] | None,
    took_s: float,
) -> None:
    """Print everything."""
    print_title(console, f"what came of it, {took_s:.0f} s after the start")
    console.print(totals_table(figures))
    if letter is not None:
        console.print(Text(f"\nA dead letter, line {letter['seq']:,}: {letter['error']}"))
        event = quoted(letter["event"])[1:-1] or "(an empty line)"
        console.print(Text(f"  {event}", "dim"), no_wrap=True, overflow="ellipsis")
    console.print()
    print_title(console, "what the readable ones heard")
    console.print(heard_table(listener))
    if any(standing.neighbours for standing in listener.standing.values()):
        console.print()
        print_title(console, "what is nearest in the end")
        console.print(standing_table(listener))
    console.print()
    print_title(console, "what to try next")
    for command, why in next_commands():
        console.print(Text(f"# {why}", "dim"), soft_wrap=True)
        console.print(Text(command), soft_wrap=True)


def print_title(console: Console, title: str) -> None:
    console.print(Rule(Text(title, style="bold cyan"), style="dim", align="left"))


def totals_table(figures: Figures) -> Table:
    """Totals, rates over the matching phase, latency."""
    counters = figures.counters
    rows = [
        [
            "events",
            f"{counters.events:,}",
            f"{counters.dead_letters:,} of them invalid: dead letters",
        ],
        ["subscriptions", f"{figures.live:,}", "live at the end"],
        [
            "objects",
            f"{counters.objects:,}",
            f"{figures.mean('objects'):,.0f} a second, in {figures.matching_s():.1f} s of matching",
        ],
        [
            "results",
            f"{counters.results:,}",
            f"{counters.results - figures.updates:,} matches, {figures.updates:,} updates;"
            " each exactly once",
        ],
        [
            "batches",
            f"{len(figures.latencies_s):,}",
            f"median {seconds(figures.latency_s(50))}, p99 {seconds(figures.latency_s(99))},"
            " from reading to committed",
        ],
    ]
    return line_table(rows, ["dim", "bold", ""], frozenset({1}))


def heard_table(listener: Listener) -> Table:
    """The readable subscriptions, how many results each had, and the last."""
    rows: list[list[str | Text]] = []
    for name, count in zip(listener.ids, listener.counts.tolist(), strict=True):
        last = listener.last.get(name)
        rows.append([name, f"{count:,}", said(last) if last else ""])
    return line_table(rows, ["cyan", "bold", "dim"], frozenset({1}))


def standing_table(listener: Listener) -> Table:
    """The results of the readable `nearest` subscriptions after the last event, nearest first."""
    rows = []
    for name in listener.standing:
        for rank, sample in enumerate(listener.neighbours(name)):
            distance = far(sample.distance_m or 0.0)
            rows.append(["" if rank else name, distance, sample.time, quoted(sample.text)])
    return line_table(rows, ["cyan", "bold", "dim", ""], frozenset({1}))


def next_commands() -> list[tuple[str, str]]:
    """Commands to copy, each with what it does."""
    me = command_name()
    commands = [
        (
            f"{me} generate hour.jsonl --objects 100000 --subscriptions 20000",
            "an hour of your own",
        ),
        (
            f"{me} replay hour.jsonl --results results.jsonl",
            "play it through the same pipeline, into a file",
        ),
        ("grep taksim-kahve results.jsonl | head", "what one of them heard"),
        ("grep the-3-nearest results.jsonl | tail -3", "and how near another's nearest came"),
    ]
    readme = Path(placewire.__file__).parents[2] / "README.md"
    if readme.is_file():
        commands.append(
            (f"less {os.path.relpath(readme)}", "the event format, and everything else")
        )
    else:
        commands.append((f"{me} replay --help", "all the options"))
    return commands


def command_name() -> str:
    """How this command line is called from the current directory."""
    if shutil.which("placewire"):
        return "placewire"
    script = Path(sys.prefix) / "bin" / "placewire"
    if script.is_file():
        relative = os.path.relpath(script)
        return str(script) if relative.startswith("..") else relative
    return f"{sys.executable} -m placewire.cli.main"
