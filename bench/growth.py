"""Growth: objects/s and matches/s of the kernel from ten thousand to millions of subscriptions."""

from __future__ import annotations

from bench.engine import run_kernel
from bench.settings import Choice
from bench.tables import draw_lines, save_table

OBJECTS = 131_072
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 5_000_000)
LARGE = 10_000_000


def run(choice: Choice) -> None:
    """A table and a plot."""
    rows = run_sizes(choice, (*SIZES, LARGE) if choice.full else SIZES)
    draw_lines(
        "growth",
        {
            "objects/s, one core": [(r[0], r[1]) for r in rows],
            "matches/s, one core": [(r[0], r[3]) for r in rows],
        },
        x_label="subscriptions",
        y_label="a second",
    )


def run_sizes(choice: Choice, sizes: tuple[int, ...]) -> list[tuple[float, ...]]:
    """A table of some sizes."""
    rows = []
    for subscriptions in sizes:
        workload = choice.workload(OBJECTS, subscriptions)
        best = max((run_kernel(workload)[0] for _ in range(2)), key=lambda r: r.match_per_s)
        rows.append(
            (
                subscriptions,
                best.match_per_s,
                best.matches / OBJECTS,
                best.match_per_s * best.matches / OBJECTS,
                best.candidates / max(best.matches, 1),
                best.build_s,
                best.bytes_a_subscription,
            )
        )
    save_table(
        "growth",
        (
            "subscriptions",
            "matching, objects/s",
            "matches an object",
            "matches/s",
            "candidates a match",
            "build, s",
            "bytes a subscription",
        ),
        rows,
    )
    return rows
