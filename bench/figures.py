"""What an experiment yields: tables of rows, and plots. Saved under `bench/out/`."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

OUT = Path(__file__).parent / "out"


@dataclass(frozen=True)
class Table:
    """Rows under column headings."""

    name: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", [tuple(map(_plain, row)) for row in self.rows])

    def at(self, column: str, *key: object) -> float:
        """The number in a column of the row that begins with a key."""
        (row,) = (row for row in self.rows if tuple(row[: len(key)]) == key)
        return float(row[list(self.columns).index(column)])

    def points(self, x: str, y: str, of: object = None) -> list[tuple[float, float]]:
        """Two columns as points of a plot; with `of`, of the rows that have it second."""
        at_x, at_y = (list(self.columns).index(column) for column in (x, y))
        return [
            (float(row[at_x]), float(row[at_y])) for row in self.rows if of is None or row[1] == of
        ]

    def cells(self) -> list[list[str]]:
        """The rows as text, numbers shortened."""
        return [[_show(value) for value in row] for row in self.rows]

    def markdown(self) -> str:
        """The table in Markdown, numbers aligned right."""
        cells = self.cells()
        widths = [max(map(len, column)) for column in zip(self.columns, *cells, strict=True)]
        rule = ["-" * (width - 1) + ":" for width in widths]
        rule[0] = "-" * widths[0]
        lines = [
            "| " + " | ".join(cell.rjust(w) if k else cell.ljust(w) for k, (cell, w) in row) + " |"
            for row in (
                enumerate(zip(r, widths, strict=True)) for r in (self.columns, rule, *cells)
            )
        ]
        return "\n".join(lines) + "\n"

    def save(self) -> None:
        """Write the table to `<name>.md`."""
        OUT.mkdir(parents=True, exist_ok=True)
        (OUT / f"{self.name}.md").write_text(self.markdown(), encoding="utf-8")

    def records(self) -> list[dict[str, Any]]:
        """The rows as objects of JSON."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class LinePlot:
    """Series of (x, y) points, y on a log axis."""

    name: str
    series: Mapping[str, Sequence[tuple[float, float]]]
    x_label: str
    y_label: str
    x_scale: str = "log"

    def save(self) -> None:
        """Draw `<name>.png`."""
        from matplotlib.figure import Figure as Canvas  # without pyplot: no display, no globals

        canvas = Canvas(figsize=(6.4, 4.2), layout="constrained")
        axes = canvas.add_subplot(
            xscale=self.x_scale, yscale="log", xlabel=self.x_label, ylabel=self.y_label
        )
        for number, (label, points) in enumerate(self.series.items()):
            xs, ys = zip(*sorted(points), strict=True)
            # The colour cycle has ten entries.
            axes.plot(xs, ys, marker="o", linestyle="-" if number < 10 else "--", label=label)
        axes.grid(visible=True, which="both", alpha=0.3)
        if self.x_scale == "linear":  # counts, and lines that leave no corner free
            axes.xaxis.get_major_locator().set_params(integer=True)
            canvas.legend(frameon=False, loc="outside right upper")
        elif len(self.series) > 6:
            canvas.legend(loc="outside right center", frameon=False)
        else:
            axes.legend(frameon=False)
        _save(canvas, self.name)


@dataclass(frozen=True)
class BarPlot:
    """Groups of bars: one group per label, one bar per series."""

    name: str
    series: Mapping[str, Mapping[str, float]]
    y_label: str

    def save(self) -> None:
        """Draw `<name>.png`."""
        from matplotlib.figure import Figure as Canvas

        labels = list(next(iter(self.series.values())))
        canvas = Canvas(figsize=(8.0, 4.2), layout="constrained")
        axes = canvas.add_subplot(ylabel=self.y_label)
        width = 0.8 / len(self.series)
        for number, (of_series, values) in enumerate(self.series.items()):
            shift = (number - (len(self.series) - 1) / 2) * width
            at = [place + shift for place in range(len(labels))]
            axes.bar(at, [values[label] for label in labels], width, label=of_series)
        axes.set_xticks(range(len(labels)), labels, rotation=30, ha="right")
        axes.grid(visible=True, axis="y", alpha=0.3)
        axes.legend(frameon=False)
        _save(canvas, self.name)


Figure = Table | LinePlot | BarPlot
Figures = Iterator[Figure]
Result = TypeVar("Result")
FiguresAnd = Generator[Figure, None, Result]  # yields figures, then returns a result


def _save(canvas: Any, name: str) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    canvas.savefig(OUT / f"{name}.png", dpi=150)


def _plain(value: Any) -> Any:
    """A scalar of numpy as one of Python."""
    return value.item() if hasattr(value, "item") else value


def _show(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
