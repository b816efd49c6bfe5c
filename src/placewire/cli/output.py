"""Output of commands: summaries, tables, progress, and values formatted for people."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from placewire.model.times import SECOND_US, parse_duration

if TYPE_CHECKING:
    from placewire.storage.runtime_files import Lag, SourceLag

LINE_EVERY_S = 5.0

Heading = tuple[str, str]  # two lines

METRES_PER_KM = 1000.0
UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


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

    def __exit__(self, *_: object) -> None:
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


def format_subscription(event: dict[str, Any]) -> str:
    """Say what a `subscribe` event subscribes to, and where."""
    if event["kind"] == "boolean":
        where = event.get("where", "")
        words = where if isinstance(where, str) else json.dumps(where, ensure_ascii=False)
        region = format_region(event) if "region" in event else ""
        return " ".join(part for part in (words or "any text", region) if part)
    k = event["k"]
    if event["kind"] == "trending":
        every = f", every {format_duration(event['every'])}" if "every" in event else ""
        return f"the {k} most frequent words {format_region(event)}{every}"
    point = format_point(event["lon"], event["lat"])
    if event["kind"] == "relevant":
        reach = f", reach {format_distance(event['reach_m'])}" if "reach_m" in event else ""
        best = f"the {f'{k} ' if k > 1 else ''}most relevant near {point}{reach}"
        return f"{best}: {', '.join(event['keywords'])}"
    words = (" AND " if event.get("mode") == "all" else " OR ").join(event["keywords"])
    within = f", within {format_distance(event['within_m'])}" if "within_m" in event else ""
    return f"the {f'{k} ' if k > 1 else ''}nearest to {point}{within}: {words}"


def format_region(event: dict[str, Any]) -> str:
    """Say roughly where the region of a `subscribe` event is."""
    region = event.get("region")
    if region is None:
        return "of the world"
    if "circle" in region:
        circle = region["circle"]
        centre = format_point(circle["lon"], circle["lat"])
        return f"within {format_distance(circle['radius_m'])} of {centre}"
    if "box" in region:
        west, south, east, north = region["box"]
        return f"from {format_point(west, south)} to {format_point(east, north)}"
    return f"about {format_point(*region['polygon'][0][0])}"


def format_terms(terms: Sequence[Sequence[Any]]) -> str:
    """Format terms with their counts: coffee 12, free 7."""
    return ", ".join(f"{term} {count:,}" for term, count in terms) or "no words"


def format_measure(named: dict[str, Any]) -> str:
    """Format what ranks an object in a result: its distance or its score."""
    if "distance_m" in named:
        return format_distance(named["distance_m"])
    return f"{named['score']:.3f}"


def format_distance(distance_m: float) -> str:
    """Format a distance to two digits or whole units: 812 m, 4.2 km, 1,735 km."""
    if round(distance_m) < METRES_PER_KM:
        return f"{distance_m:.0f} m"
    km = distance_m / METRES_PER_KM
    figure = f"{km:.1f}".removesuffix(".0") if km < 9.95 else f"{km:,.0f}"
    return f"{figure} km"


def format_point(lon: float, lat: float) -> str:
    return f"({lon:.3f}, {lat:.3f})"


def format_duration(duration: str) -> str:
    """Format an ISO 8601 duration in the largest unit that divides it: PT10M is 10 minutes."""
    seconds = parse_duration(duration) // SECOND_US
    for size, unit in UNITS:
        if seconds >= size and seconds % size == 0:
            return f"{seconds // size:,} {unit}s" if seconds > size else f"1 {unit}"
    return "less than a second"


def format_figure(value: float) -> str:
    """Format a number for a table, in about four characters."""
    if value < 100:
        return f"{value:.2f}" if value < 10 else f"{value:.1f}"
    return f"{value:.0f}" if value < 1e5 else f"{value:.0e}"


def count_noun(number: int, one: str, many: str = "") -> str:
    """Format a count with its noun: 1 leaf, 1,200 leaves."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def quote_text(text: str) -> str:
    """Quote a text on one line, without characters of uncertain width on a terminal."""
    kept = "".join(c if c.isprintable() else " " for c in text if c != "\ufe0f")
    return f'"{" ".join(kept.split())}"'


def format_lag(lag: Lag) -> str:
    """Format the lag of every source and sink on one line."""
    parts = [f"{source.source}: {format_source_lag(source)}" for source in lag.sources]
    parts += [
        f"sink {name} lacks {count_noun(batches, 'batch', 'batches')}"
        for name, batches in lag.sinks.items()
        if batches
    ]
    return "; ".join(parts)


def format_source_lag(source: SourceLag) -> str:
    if source.messages is not None:
        worst = max(source.partitions, key=source.partitions.__getitem__, default=None)
        several = len(source.partitions) > 1 and source.messages and worst is not None
        most = f", most in {worst}: {source.partitions[worst]:,}" if several and worst else ""
        return f"{count_noun(source.messages, 'message')} behind{most}"
    if source.files is not None:
        size = f", {source.bytes:,} bytes" if source.files and source.bytes is not None else ""
        files = f"{count_noun(source.files, 'file')} waiting{size}"
        more = source.versions
        return f"{files}, then {count_noun(more, 'version')}" if more else files
    return f"newest event taken is of {source.taken}" if source.taken else "unknown"


def format_request(asked: dict[str, Any]) -> str:
    """Format a rebalance request that is not in force yet."""
    what = " and ".join(f"{name} {asked[name]}" for name in ("plan", "workers") if name in asked)
    are = "are requested: they take" if len(asked) > 1 else "is requested: it takes"
    return f"{what} {are} effect with the batch after the next"
