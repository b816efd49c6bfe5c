"""Parameters of the Skype paper: k, keywords, windows, and the rule that sizes buffers."""

from __future__ import annotations

import numpy as np

from bench.clock import say
from bench.figures import Figures, LinePlot, Table
from bench.harness import SEED, Setup
from bench.papers.skype.costs import BLOCK, HEADER, WINDOW, make_store, measure, past_row, warm_up
from bench.papers.skype.data import (
    KEYWORDS,
    POSTS,
    USUAL,
    VENUES,
    Corpus,
    K,
    SubscriptionShape,
    draw_rows,
    read_corpus,
)
from bench.papers.skype.index import Index
from bench.papers.skype.store import stock_up
from bench.papers.skype.window import Sliding, WindowCosts
from placewire.kinds.relevant.results import BufferRule

COUNT = 50_000
KS = (10, 20, 30, 40, 50)
WINDOWS = (50_000, 100_000, 200_000, 500_000)
BLOCKS, WARM = 20, 4
BUSY = 4.0  # a busy hour has so many more objects than a quiet one


def vary_subscriptions(
    setup: Setup, count: int = COUNT, window: int = WINDOW, block: int = BLOCK
) -> Figures:
    """k, keywords, Zipf's law, and a window by time."""
    warm_up(setup)
    corpus = read_corpus(setup, window + (BLOCKS + WARM) * block)
    yield from sweep_subscriptions(setup, corpus, window, count, block)


def sweep_subscriptions(
    setup: Setup, corpus: Corpus, window: int, count: int, block: int = BLOCK
) -> Figures:
    store = make_store(setup, corpus, window, block)
    asked = {f"k {k}": SubscriptionShape(k=k) for k in KS}
    asked |= {f"{n} keywords": SubscriptionShape(keywords=n) for n in range(1, KEYWORDS + 1)}
    asked["keywords by Zipf's law"] = SubscriptionShape(zipf=True)
    blocks = (corpus.total - window) // block - WARM
    table, lines = [], {}
    for label, asking in asked.items():
        past, sliding, _ = measure(store, count, asking, blocks=blocks)
        table.append(past_row(label, past, sliding.held))
        if label.startswith("k "):
            for name, ms in (("AMP", past.amp_ms), ("EMP", past.emp_ms)):
                lines.setdefault(f"{name} by k / 10", []).append((asking.k / 10, ms))
        elif asking.keywords:
            for name, ms in (("AMP", past.amp_ms), ("EMP", past.emp_ms)):
                lines.setdefault(f"{name} by keywords", []).append((asking.keywords, ms))
        say(f"{label}: AMP {past.amp_ms:.4f} ms, EMP {past.emp_ms:.4f} ms")
    timed = by_time(corpus)
    span_us = int(timed.ts_us[window - 1] - timed.ts_us[0])
    rule = BufferRule(by_time=True)
    named = timed._replace(name=f"{corpus.name}-timed")
    past, sliding, _ = measure(
        make_store(setup, named, window, block), count, USUAL, rule, span_us=span_us, blocks=blocks
    )
    table.append(past_row("window by time", past, sliding.held))
    yield Table("relevant-sweeps", HEADER, table)
    yield LinePlot(
        "relevant-sweeps",
        lines,
        x_label="keywords; k / 10",
        y_label="ms an object",
        x_scale="linear",
    )


def by_time(corpus: Corpus) -> Corpus:
    """The corpus with times of its own: busy and quiet hours, and chance."""
    rng = np.random.default_rng([SEED, 13])
    wave = 1.0 + (BUSY - 1.0) * np.sin(np.linspace(0.0, 40.0, corpus.total)) ** 2
    gaps = rng.exponential(1e6, corpus.total) / wave
    return corpus._replace(ts_us=np.cumsum(gaps).astype(np.int64) + 1)


def vary_window(
    setup: Setup, sizes: tuple[int, ...] = WINDOWS, count: int = COUNT, block: int = BLOCK
) -> Figures:
    """Windows of the last so many objects."""
    warm_up(setup)
    table, lines = [], {"AMP": [], "EMP": []}
    # The stream is the same for all: the last objects of the largest.
    corpus = read_corpus(setup, max(sizes) + (BLOCKS + WARM) * block)
    for size in sizes:
        begin = max(sizes) - size
        own = tail(corpus, begin)
        past, sliding, _ = measure(make_store(setup, own, size, block), count, blocks=BLOCKS)
        table.append(past_row(f"window {size:,}", past, sliding.held))
        lines["AMP"].append((size, past.amp_ms))
        lines["EMP"].append((size, past.emp_ms))
        say(f"window {size:,}: AMP {past.amp_ms:.4f} ms, EMP {past.emp_ms:.4f} ms")
    yield Table("relevant-window", HEADER, table)
    yield LinePlot(
        "relevant-window", lines, x_label="objects in the window", y_label="ms an object"
    )


def tail(corpus: Corpus, begin: int) -> Corpus:
    """The corpus without its first objects."""
    first = corpus.term_offsets[begin]
    return corpus._replace(
        lon=corpus.lon[begin:],
        lat=corpus.lat[begin:],
        ts_us=corpus.ts_us[begin:],
        term_offsets=corpus.term_offsets[begin:] - first,
        terms=corpus.terms[first:],
        norms=corpus.norms[begin:],
    )


RATIOS = (0.75, 0.85, 0.9, 0.95, 1.0)
KMAXES = (20, 40, 60, 80, 120)
BUFFER_HEADER = (
    "buffers",
    "EMP of the first tenth, ms",
    "re-evaluations of 1,000",
    "EMP of the second half, ms",
    "of it refilling",
    "re-evaluations of 1,000",
    "AMP, ms",
    "AMP + EMP, ms",
    "found an object",
    "buffer",
)


def list_rules() -> dict[str, BufferRule]:
    """All that are compared."""
    named = {"cskyband": BufferRule("cskyband")}
    named |= {f"skyband {ratio:g}": BufferRule("skyband", ratio=ratio) for ratio in RATIOS}
    # A buffer has room for one more than k at least.
    return named | {f"kmax {kmax}": BufferRule("kmax", kmax=kmax / K) for kmax in KMAXES}


def turn_over(sliding: Sliding, index: Index, blocks: int) -> tuple[WindowCosts, WindowCosts]:
    """Let a stream as long as the window pass: its first tenth, and its second half."""
    first = sliding.run(max(1, blocks // 10), index)
    sliding.run(blocks // 2 - max(1, blocks // 10), index)
    return first, sliding.run(blocks - blocks // 2, index)


def vary_buffers(
    setup: Setup, count: int = 10_000, window: int = 20_000, block: int = BLOCK
) -> Figures:
    """All list_rules on posts, and on venues if they are there."""
    warm_up(setup)
    for name in (POSTS, VENUES) if setup.data is not None else (POSTS,):
        yield from compare_rules(setup, name, count, window, block)


def compare_rules(setup: Setup, name: str, count: int, window: int, block: int = BLOCK) -> Figures:
    corpus = read_corpus(setup, 2 * window, name)
    store = make_store(setup, corpus, window, block)
    rows = draw_rows(corpus, count, USUAL)
    say(f"{name}: {count:,} subscriptions, a window and a stream of {window:,}")
    stock = stock_up(store, rows, 6 * K + 12)
    table, lines = [], {}
    for label, rule in list_rules().items():
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
    yield Table(f"relevant-buffers-{name}", BUFFER_HEADER, table)
    yield LinePlot(
        f"relevant-buffers-{name}",
        lines,
        x_label="objects in a buffer",
        y_label="EMP, ms an object",
        x_scale="linear",
    )
