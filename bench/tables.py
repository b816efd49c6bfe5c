"""Figures of the benchmark: markdown tables, log-log lines and bars, kept under `bench/out/`."""

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
    for number, (label, points) in enumerate(series.items()):
        xs, ys = zip(*sorted(points), strict=True)
        # Colours come round again after ten.
        axes.plot(xs, ys, marker="o", linestyle="-" if number < 10 else "--", label=label)
    axes.grid(visible=True, which="both", alpha=0.3)
    if x_scale == "linear":  # counts, and lines that leave no corner free
        axes.xaxis.get_major_locator().set_params(integer=True)
        figure.legend(frameon=False, loc="outside right upper")
    elif len(series) > 6:
        figure.legend(loc="outside right center", frameon=False)
    else:
        axes.legend(frameon=False)
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{name}.png"
    figure.savefig(path, dpi=150)
    return path


def draw_bars(name: str, series: Mapping[str, Mapping[str, float]], *, y_label: str) -> Path:
    """Draw a group of bars for each label of the series, a bar for each series in it."""
    from matplotlib.figure import Figure

    labels = list(next(iter(series.values())))
    figure = Figure(figsize=(8.0, 4.2), layout="constrained")
    axes = figure.add_subplot(ylabel=y_label)
    width = 0.8 / len(series)
    for number, (of_series, values) in enumerate(series.items()):
        places = [at + (number - (len(series) - 1) / 2) * width for at in range(len(labels))]
        axes.bar(places, [values[label] for label in labels], width, label=of_series)
    axes.set_xticks(range(len(labels)), labels, rotation=30, ha="right")
    axes.grid(visible=True, axis="y", alpha=0.3)
    axes.legend(frameon=False)
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{name}.png"
    figure.savefig(path, dpi=150)
    return path
