"""Keeping results in a sliding window: the cost-based skyband against `skyband` and `kmax`.

The stream is as long as the window, so that every object that was in a buffer at first has left by
the end. The paper's runs are a tenth of that: those are the columns of the first tenth.
"""

from __future__ import annotations

from bench.relevant import make_store, say, warm_up
from bench.relevant_data import POSTS, USUAL, VENUES, K, draw_rows, read_corpus
from bench.relevant_matching import Index
from bench.relevant_store import stock_up
from bench.relevant_window import Past, Sliding
from bench.settings import Choice
from bench.tables import draw_lines, save_table
from placewire.kinds.relevant.results import BufferRule

COUNT, WINDOW = 10_000, 20_000
BLOCK = 1_000
RATIOS = (0.75, 0.85, 0.9, 0.95, 1.0)
KMAXES = (20, 40, 60, 80, 120)
HEADER = (
    "buffers",
    "EMP of the first tenth, ms",
    "re-evaluations of 1,000",
    "EMP of the second half, ms",
    "of it filling anew",
    "re-evaluations of 1,000",
    "AMP, ms",
    "AMP + EMP, ms",
    "found an object",
    "buffer",
)


def rules() -> dict[str, BufferRule]:
    """All that are compared."""
    named = {"cskyband": BufferRule("cskyband")}
    named |= {f"skyband {ratio:g}": BufferRule("skyband", ratio=ratio) for ratio in RATIOS}
    # A buffer has room for one more than k at least.
    return named | {f"kmax {kmax}": BufferRule("kmax", kmax=kmax / K) for kmax in KMAXES}


def turn_over(sliding: Sliding, index: Index, blocks: int) -> tuple[Past, Past]:
    """Let a stream as long as the window pass: its first tenth, and its second half."""
    first = sliding.run(max(1, blocks // 10), index)
    sliding.run(blocks // 2 - max(1, blocks // 10), index)
    return first, sliding.run(blocks - blocks // 2, index)


def run(choice: Choice) -> None:
    """All rules on posts, and on venues if they are there."""
    warm_up(choice)
    for name in (POSTS, VENUES) if choice.data is not None else (POSTS,):
        compare(choice, name, COUNT, WINDOW)


def compare(choice: Choice, name: str, count: int, window: int, block: int = BLOCK) -> None:
    corpus = read_corpus(choice, 2 * window, name)
    store = make_store(choice, corpus, window, block)
    rows = draw_rows(corpus, count, USUAL)
    say(f"{name}: {count:,} subscriptions, a window and a stream of {window:,}")
    stock = stock_up(store, rows, 6 * K + 12)
    table, lines = [], {}
    for label, rule in rules().items():
        sliding = Sliding(store, rows, rule, stock=stock)
        index = Index(sliding.rows, sliding.theta)
        first, second = turn_over(sliding, index, window // block)
        table.append((
            label,
            first.emp_ms,
            1e3 * first.each(first.refills),
            second.emp_ms,
            1e3 * second.each(second.refill_s),
            1e3 * second.each(second.refills),
            second.amp_ms,
            second.amp_ms + second.emp_ms,
            second.each(second.found),
            sliding.held,
        ))  # fmt: skip
        lines.setdefault(label.split()[0], []).append((sliding.held, second.emp_ms))
        say(f"{label}: EMP {second.emp_ms:.4f} ms, {second.refills:,} re-evaluations,"
            f" buffers of {sliding.held:.1f}")  # fmt: skip
    save_table(f"relevant-buffers-{name}", HEADER, table)
    draw_lines(
        f"relevant-buffers-{name}",
        lines,
        x_label="objects in a buffer",
        y_label="EMP, ms an object",
        x_scale="linear",
    )
