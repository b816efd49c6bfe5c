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

from placewire.cli.dashboard import WIDE, line_table, said, seconds
from placewire.cli.figures import Figures
from placewire.cli.samples import Listener
from placewire.cli.words import asked, lasting, quoted

MOST_HEARD = 4
MOST_NEAR = 2  # of one subscription
MOST_RELEVANT = 5


def print_summary(
    console: Console,
    figures: Figures,
    listener: Listener,
    letter: dict[str, Any] | None,
    took_s: float,
    window: str,
) -> None:
    """Print everything, in some 45 rows."""
    print_title(console, f"what came of it, {took_s:.0f} s after the start")
    console.print(totals_table(figures, letter, console.width))
    tables = (
        ("what some of them heard, how often and last", heard_table(listener)),
        ("what is nearest in the end", standing_table(listener, "nearest", MOST_NEAR)),
        (
            f"what is most relevant in the end, of the last {lasting(window)}{wished(listener)}",
            standing_table(listener, "relevant", MOST_RELEVANT),
        ),
        ("what is talked about, every ten minutes", report_table(listener)),
        ("what was asked, and answered", answer_table(listener)),
    )
    for title, table in tables:
        if table.row_count:
            console.print()
            print_title(console, title)
            console.print(table)
    console.print()
    print_title(console, "what to try next: an hour of your own, played and asked about")
    for command in next_commands():
        console.print(Text(command), soft_wrap=True)


def wished(listener: Listener) -> str:
    """What the `relevant` subscription asks for, in words."""
    return "".join(f": {asked(listener.wishes[name])}" for name in listener.of_kind("relevant")[:1])


def print_title(console: Console, title: str) -> None:
    console.print(Rule(Text(title, style="bold cyan"), style="dim", align="left"))


def totals_table(figures: Figures, letter: dict[str, Any] | None, width: int) -> Table:
    """Totals, rates over the matching phase, latency, and one of the dead letters."""
    counters = figures.counters
    why = f"line {letter['seq'] + 1:,}: {letter['error']}" if letter is not None else ""
    rows = [
        [
            "events",
            f"{counters.events:,}",
            f"in {len(figures.latencies_s):,} batches, median {seconds(figures.latency_s(50))},"
            f" p99 {seconds(figures.latency_s(99))}",
        ],
        ["dead letters", f"{counters.dead_letters:,}", why],
        ["subscriptions", f"{figures.live:,}", "live at the end"],
        [
            "objects",
            f"{counters.objects:,}",
            f"{figures.mean('objects'):,.0f} a second, in {figures.matching_s():.1f} s of matching",
        ],
        ["results", f"{counters.results:,}", results_by_type(figures, width)],
    ]
    return line_table(rows, ["dim", "bold", ""], frozenset({1}))


def results_by_type(figures: Figures, width: int) -> str:
    """How many results there are of each type, rounded where there is little room."""
    amounts = (
        (figures.matches, "matches"),
        (figures.updates, "updates"),
        (figures.reports, "reports"),
        (figures.answers, "answers"),
    )
    if width >= WIDE:
        exact = ", ".join(f"{amount:,} {name}" for amount, name in amounts)
        return f"{exact}; each exactly once"
    return ", ".join(f"{rounded(amount)} {name}" for amount, name in amounts)


def rounded(amount: int) -> str:
    """A number in at most five characters: 9,999, 58k, 5.1M."""
    if amount < 10_000:
        return f"{amount:,}"
    return f"{amount / 1e3:.0f}k" if amount < 999_500 else f"{amount / 1e6:.1f}M"


def heard_table(listener: Listener) -> Table:
    """Some readable `boolean` subscriptions, how many matches each had, and the last."""
    rows: list[list[str | Text]] = []
    for name, count in zip(listener.ids, listener.counts.tolist(), strict=True):
        last = listener.last.get(name)
        if listener.kinds[name] == "boolean" and last is not None and len(rows) < MOST_HEARD:
            rows.append([name, f"{count:,}", said(last)])
    return line_table(rows, ["cyan", "bold", "dim"], frozenset({1}))


def standing_table(listener: Listener, kind: str, most: int) -> Table:
    """The results of readable subscriptions of a kind after the last event, the first first."""
    rows = []
    for name in listener.of_kind(kind):
        for rank, sample in enumerate(listener.members(name)[:most]):
            rows.append(["" if rank else name, sample.lead, sample.time, quoted(sample.text)])
    return line_table(rows, ["cyan", "bold", "dim", ""], frozenset({1}))


def report_table(listener: Listener) -> Table:
    """The first, the middle and the last report of the readable `trending` subscriptions."""
    rows = []
    for name, reports in listener.reports.items():
        told = sorted({0, len(reports) // 2, len(reports) - 1}) if reports else []
        for rank, number in enumerate(told):
            sample = reports[number]
            rows.append(["" if rank else name, sample.time[:5], sample.text])
    return line_table(rows, ["cyan", "dim", ""])


def answer_table(listener: Listener) -> Table:
    """The readable queries with their answers."""
    rows = [[sample.name, sample.time[:5], sample.text] for sample in listener.answers]
    return line_table(rows, ["cyan", "dim", ""])


def next_commands() -> list[str]:
    """Commands to copy, one after the other."""
    me = command_name()
    return [
        f"{me} generate hour.jsonl",
        f"{me} replay hour.jsonl --results results.jsonl --state hour",
        "grep talk-of-maracana results.jsonl",
        f"""{me} query '{{"kind":"trending","k":9,"last":"PT20M"}}' --state hour""",
    ]


def command_name() -> str:
    """How this command line is called from the current directory."""
    if shutil.which("placewire"):
        return "placewire"
    script = Path(sys.prefix) / "bin" / "placewire"
    if script.is_file():
        relative = os.path.relpath(script)
        return str(script) if relative.startswith("..") else relative
    return f"{sys.executable} -m placewire.cli.main"
