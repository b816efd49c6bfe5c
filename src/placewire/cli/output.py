"""Print the output of commands: summaries as a line or JSON, tables, progress."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple, TextIO

from rich.console import Console, JustifyMethod
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

LINE_EVERY_S = 5.0

Heading = tuple[str, str]  # two lines


class CommandSummary(NamedTuple):
    """The outcome of a command as one line and as a JSON object."""

    line: str
    facts: dict[str, Any]


def print_summary(summary: CommandSummary, as_json: bool, lines_to: TextIO | None = None) -> None:
    """Print JSON on standard output, or the line on `lines_to`, standard output by default."""
    if as_json:
        print(json.dumps(summary.facts, ensure_ascii=False))
    else:
        print(summary.line, file=lines_to)


def print_table(
    console: Console,
    headings: Sequence[Heading],
    rows: Sequence[Sequence[str]],
    highlighted: str | None = None,
) -> None:
    """Print a table; a terminal highlights the row whose first cell is `highlighted`."""
    columns = zip(headings, *rows, strict=True)
    widths = [max(map(len, (*heading, *cells))) for heading, *cells in columns]
    narrow = console.is_terminal and sum(widths) + 2 * len(widths) > console.width
    gap = 1 if narrow else 2
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="bold")
    for heading, width in zip(headings, widths, strict=True):
        justify: JustifyMethod = "right" if table.columns else "left"
        table.add_column("\n".join(heading), width=width, justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row), style="bold cyan" if row[0] == highlighted else "")
    # Never truncate: a file has no width, and a narrow terminal wraps whole lines.
    Console(width=max(console.width, sum(widths) + gap * len(widths))).print(table)


class ProgressLine:
    """Show the progress of a long command on standard error.

    A terminal gets a live bar, anything else a line every few seconds.
    """

    def __init__(self, what: str, total: int) -> None:
        self.what = what
        self.total = max(total, 1)
        self.started = time.monotonic()
        self.last_line = self.started
        self.console = Console(stderr=True)
        self.bar: Progress | None = None
        if self.console.is_terminal:
            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=32),
                TaskProgressColumn(),
                TextColumn("{task.fields[note]}"),
                TimeElapsedColumn(),
                console=self.console,
                transient=True,
            )
            self.task = self.bar.add_task(what, total=self.total, note="")

    def __enter__(self) -> ProgressLine:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def print_line(self, line: str) -> None:
        """Print a line above the bar."""
        if self.bar is not None:
            self.bar.console.print(line, highlight=False, markup=False)
        else:
            print(line, file=sys.stderr)

    def update(self, done: int, note: str) -> None:
        """Advance to `done` of the total."""
        if self.bar is not None:
            self.bar.update(self.task, completed=done, note=note)
            return
        now = time.monotonic()
        if now - self.last_line >= LINE_EVERY_S:
            self.last_line = now
            print(f"{self.what}: {100 * done / self.total:.0f}%, {note}", file=sys.stderr)
