"""Figures of the benchmark: markdown tables and log-log line plots, kept under `bench/out/`."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

OUT = Path(__file__).parent / "out"


def save_table(name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Print a markdown table and keep it as `<name>.md`; numbers are shortened and set right."""
    cells = [[_show(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    rule = ["-" * (width - 1) + ":" for width in widths]
    rule[0] = "-" * widths[0]
    lines = [
        "| " + " | ".join(cell.rjust(w) if k else cell.ljust(w) for k, (cell, w) in row) + " |"
        for row in (enumerate(zip(r, widths, strict=True)) for r in (header, rule, *cells))
    ]
    text = "\n".join(lines) + "\n"
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)
    return text


def _show(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def draw_lines(
    name: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    x_label: str,
    y_label: str,
    x_scale: str = "log",
) -> Path:
    """Draw each series of (x, y) points as a line, y on a log axis; gives the PNG's path."""
    from matplotlib.figure import Figure  # without pyplot: no display and no global state

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot(xscale=x_scale, yscale="log", xlabel=x_label, ylabel=y_label)
    for label, points in series.items():
        xs, ys = zip(*sorted(points), strict=True)
        axes.plot(xs, ys, marker="o", label=label)
    axes.grid(visible=True, which="both", alpha=0.3)
    if x_scale == "linear":  # counts, and lines that leave no corner free
        axes.xaxis.get_major_locator().set_params(integer=True)
        figure.legend(frameon=False, loc="outside right upper")
    else:
        axes.legend(frameon=False)
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{name}.png"
    figure.savefig(path, dpi=150)
    return path
