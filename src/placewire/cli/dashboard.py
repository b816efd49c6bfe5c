"""The dashboard of a run: a live view for people, a line now and then for everything else.

Nothing stands to the right of a text from the log: terminals disagree about how wide some
characters are, and the disagreement must not move anything.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from rich.cells import cell_len
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from placewire.cli.figures import Figures
from placewire.cli.samples import Sample
from placewire.cli.words import asked, lasting, place, quoted

LINE_EVERY_S = 3.0
MOST_SAMPLES = 16
LINES_AROUND = 11  # of the live view without samples, and a little air
BEST = 5  # lines of a standing result
LEAST_ROOM = 11  # lines for samples from which some are given to a standing result
WIDE = 104  # columns from which positions are shown too
FRAMES_A_SECOND = 5
NONE: frozenset[int] = frozenset()


class Dashboard:
    """Shows figures and samples; `update` after each batch, the rest goes by itself."""

    def __init__(
        self, console: Console, figures: Figures, readable: list[dict[str, Any]], window: str
    ) -> None:
        self.console = console
        self.figures = figures
        self.readable = readable
        self.window = window
        self.samples: deque[Sample] = deque(maxlen=MOST_SAMPLES)
        self.best: list[Sample] = []  # a standing result
        self.last_line_s = figures.started_s
        self.live: Live | None = None
        if console.is_terminal and not console.is_dumb_terminal:
            self.live = Live(
                get_renderable=self.view,
                console=console,
                refresh_per_second=FRAMES_A_SECOND,
                transient=True,
            )

    def __enter__(self) -> Dashboard:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.live is not None:
            self.live.stop()

    def update(self, samples: list[Sample], best: list[Sample]) -> None:
        """Take in the samples of a batch that the figures have taken in already.

        `best` is what a `relevant` subscription has after it.
        """
        self.samples.extend(samples)
        self.best = best[:BEST]
        now = time.monotonic()
        if self.live is None and now - self.last_line_s >= LINE_EVERY_S:
            self.last_line_s = now
            self.console.print(plain_line(self.figures), highlight=False, soft_wrap=True)
            rare = [s for s in samples if s.place is None or s.lead]
            for sample in (rare or samples)[-1:]:
                self.console.print(Text(f"  {plain_sample(sample)}"), soft_wrap=True)
            for sample in self.best[:1]:
                self.console.print(
                    Text(f"  most relevant now: {plain_best(sample)}"), soft_wrap=True
                )

    def view(self) -> RenderableType:
        """The whole view as it is now."""
        room = self.console.height - LINES_AROUND
        best = self.best if room >= LEAST_ROOM else []
        room = max(3, min(MOST_SAMPLES, room - (1 + BEST if best else 0)))
        if self.samples:
            title = f"what {len(self.readable)} of them hear"
            rows = sample_table(list(self.samples)[-room:], self.console.width)
        else:
            title = f"{len(self.readable)} of them, in words"
            rows = question_table(self.readable[:room])
        standing: list[RenderableType] = []
        if best:
            title_of_best = f"{best[0].name}: the most relevant of the last {lasting(self.window)}"
            standing = [quiet_rule(title_of_best), best_table(best)]
        return Group(
            headline(self.figures),
            ProgressBar(
                total=self.figures.total_events,
                completed=self.figures.counters.events,
                pulse=self.figures.manifest is None,
                complete_style="cyan",
                finished_style="cyan",
                pulse_style="cyan",
            ),
            Text(),  # the bar does not end its line
            figure_table(self.figures),
            Text(),
            *standing,
            quiet_rule(title),
            rows,
        )


def headline(figures: Figures) -> Table:
    """What is going on, and the time in the log."""
    line = Table.grid(expand=True)
    line.add_column(no_wrap=True, overflow="ellipsis")
    line.add_column(justify="right", no_wrap=True)
    phase = "matching" if figures.matching_from else "subscribing"
    if figures.manifest is None:
        phase = "waking Spark's workers"
    elapsed = time.monotonic() - figures.started_s
    line.add_row(
        Text.assemble(("Placewire", "bold cyan"), f"  {phase}", (f"  {elapsed:.0f} s", "dim")),
        Text.assemble(("the log's clock  ", "dim"), (clock(figures), "bold")),
    )
    return line


def figure_table(figures: Figures) -> Table:
    """Twelve figures in three columns."""
    counters = figures.counters
    segments = len(figures.manifest.segments) if figures.manifest else 0
    cells = (
        ("events", f"{counters.events:,}"),
        ("events/s", f"{figures.recent('events'):,.0f}"),
        ("batch latency", seconds(figures.latencies_s[-1] if figures.latencies_s else 0.0)),
        ("objects", f"{counters.objects:,}"),
        ("objects/s", f"{figures.recent('objects'):,.0f}"),
        ("median", seconds(figures.latency_s(50))),
        ("results", f"{counters.results:,}"),
        ("results/s", f"{figures.recent('results'):,.0f}"),
        ("p99", seconds(figures.latency_s(99))),
        ("subscriptions", f"{figures.live:,}"),
        ("dead letters", f"{counters.dead_letters:,}"),
        ("segments", f"{segments}"),
    )
    table = Table.grid(padding=(0, 3, 0, 0))
    for label_width, value_width in ((13, 9), (12, 9), (13, 7)):
        table.add_column(width=label_width, style="dim", no_wrap=True)
        table.add_column(width=value_width, style="bold", justify="right", no_wrap=True)
    for first in range(0, len(cells), 3):
        table.add_row(*(part for cell in cells[first : first + 3] for part in cell))
    return table


def sample_table(samples: list[Sample], width: int) -> Table:
    """Results in words, newest last; positions where there is room for them."""
    rows: list[list[str | Text]] = []
    for sample in samples:
        where = [place(*sample.place) if sample.place else ""] if width >= WIDE else []
        rows.append([sample.time, sample.name, *where, said(sample)])
    return line_table(rows, ["dim", "cyan", *(["dim"] if width >= WIDE else []), ""])


def quiet_rule(title: str) -> Rule:
    return Rule(Text(title, style="dim"), style="dim", align="left")


def best_table(best: list[Sample]) -> Table:
    """A standing result, as many lines whether it is full or not."""
    rows = [[sample.time, sample.lead, quoted(sample.text)] for sample in best]
    return line_table([*rows, *[["", "", ""]] * (BEST - len(rows))], ["dim", "bold", ""])


def said(sample: Sample) -> Text:
    """What a result says, of an object its text; if it is in a result now, first why."""
    text = quoted(sample.text) if sample.place else sample.text
    return Text.assemble((f"{sample.lead}: " if sample.lead else "", "bold"), text)


def question_table(readable: list[dict[str, Any]]) -> Table:
    """Subscriptions in words: who asks, and for what."""
    return line_table([[event["id"], asked(event)] for event in readable], ["cyan", ""])


def line_table(
    rows: Sequence[Sequence[str | Text]], styles: list[str], right: frozenset[int] = NONE
) -> Table:
    """Rows of one line each: all columns are as wide as they need, the last has the rest."""
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    for column, style in enumerate(styles[:-1]):
        width = max((cell_len(str(row[column])) for row in rows), default=0)
        justify: JustifyMethod = "right" if column in right else "left"
        table.add_column(width=width, style=style, justify=justify, no_wrap=True)
    table.add_column(style=styles[-1], no_wrap=True, overflow="ellipsis", ratio=1)
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def plain_line(figures: Figures) -> str:
    """The figures in one line."""
    counters = figures.counters
    share = 100 * counters.events / max(figures.total_events, 1)
    if figures.matching_from is None:
        done = f"{figures.live:,} subscriptions, {figures.recent('events'):,.0f}/s"
    else:
        done = (
            f"{counters.objects:,} objects, {figures.recent('objects'):,.0f}/s;"
            f" {counters.results:,} results, {figures.recent('results'):,.0f}/s"
        )
    return f"{clock(figures)}  {share:3.0f}%  {done}; {seconds(figures.latencies_s[-1])} a batch"


def plain_sample(sample: Sample) -> str:
    """A result in one line, of any length."""
    line = f"{sample.time}  {sample.name}  {said(sample)}"
    line += f"  {place(*sample.place)}" if sample.place else ""
    return f"{line}  out: {quoted(sample.dropped)}" if sample.dropped else line


def plain_best(sample: Sample) -> str:
    """The first of a standing result in one line."""
    return f"{sample.time}  {sample.name}  {sample.lead}: {quoted(sample.text)}"


def clock(figures: Figures) -> str:
    """The time in the log."""
    if figures.manifest is None or figures.manifest.now_us is None:
        return "--:--:--"
    return f"{datetime.fromtimestamp(figures.manifest.now_us / 1e6, UTC):%H:%M:%S}"


def seconds(length_s: float) -> str:
    return f"{length_s:.2f} s"
