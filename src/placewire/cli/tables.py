"""Tables of figures: columns as wide as what is in them, on a terminal or not."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

Heading = tuple[str, str]  # two lines


def print_rows(
    console: Console,
    headings: Sequence[Heading],
    rows: Sequence[Sequence[str]],
    bright: str | None = None,
) -> None:
    """Print a table; on a terminal the row that begins with `bright` stands out."""
    columns = zip(headings, *rows, strict=True)
    widths = [max(map(len, (*heading, *cells))) for heading, *cells in columns]
    narrow = console.is_terminal and sum(widths) + 2 * len(widths) > console.width
    gap = 1 if narrow else 2
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="bold")
    for heading, width in zip(headings, widths, strict=True):
        justify: JustifyMethod = "right" if table.columns else "left"
        table.add_column("\n".join(heading), width=width, justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row), style="bold cyan" if row[0] == bright else "")
    # What is no terminal has all the room there is; one that is too narrow wraps whole lines.
    Console(width=max(console.width, sum(widths) + gap * len(widths))).print(table)


def figure(value: float) -> str:
    """A number in a handful of characters."""
    if value < 100:
        return f"{value:.2f}" if value < 10 else f"{value:.1f}"
    return f"{value:.0f}" if value < 1e5 else f"{value:.0e}"
