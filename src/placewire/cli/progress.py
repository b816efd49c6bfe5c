"""Progress on the terminal: a live bar for people, a line now and then for log files."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

LINE_EVERY_S = 5.0


class ProgressLine:
    """Shows how far a long command has come, on standard error."""

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

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        if self.bar is not None:
            self.bar.console.print(line, highlight=False, markup=False)
        else:
            print(line, file=sys.stderr)

    def update(self, done: int, note: str) -> None:
        """Come to `done` of the total."""
        if self.bar is not None:
            self.bar.update(self.task, completed=done, note=note)
            return
        now = time.monotonic()
        if now - self.last_line >= LINE_EVERY_S:
            self.last_line = now
            print(f"{self.what}: {100 * done / self.total:.0f}%, {note}", file=sys.stderr)
