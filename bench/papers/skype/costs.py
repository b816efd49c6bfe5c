"""Cost of an arriving and of an expiring object with the Skype paper's defaults, and its growth.

The window is full before the stream begins. Posts have two windows: one without repeats, and one of
a million, the paper's size.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bench.clock import say
from bench.figures import BarPlot, Figures, LinePlot, Table
from bench.harness import Setup
from bench.papers.skype.data import (
    LONG,
    POSTS,
    USUAL,
    VENUES,
    Corpus,
    SubscriptionShape,
    draw_rows,
    read_corpus,
)
from bench.papers.skype.index import Index, Indexing
from bench.papers.skype.store import Stock, WindowStore
from bench.papers.skype.window import Sliding, WindowCosts
from placewire.kinds.relevant.kernels.groups import LOOKED, VERIFIED
from placewire.kinds.relevant.results import BufferRule
from placewire.storage.layout import StateDir

SUBSCRIPTIONS = 100_000
WINDOW, MANY = 100_000, 1_000_000
BLOCK = 1_000
BLOCKS, WARM_BLOCKS = 20, 4
LONG_SUBSCRIPTIONS = 20_000
USUAL_RULE = BufferRule()
HEADER = (
    "setting",
    "AMP, ms",
    "matching",
    "entering",
    "EMP, ms",
    "leaving",
    "refilling",
    "reindexing",
    "objects/s",
    "postings looked at",
    "scored",
    "found",
    "updates",
    "re-evaluations of 1,000",
    "buffer",
)


def make_store(setup: Setup, corpus: Corpus, window: int, block: int = BLOCK) -> WindowStore:
    """The corpus in files, the first `window` objects as the window."""
    folder = setup.folder / f"relevant-{corpus.name}-{corpus.total}-{window}"
    return WindowStore(corpus, StateDir(folder), window, block)


def past_row(setting: str, past: WindowCosts, held: float) -> tuple[object, ...]:
    """A row of the table; all but the last three columns are of one object."""
    seconds = (
        past.match_s,
        past.enter_s,
        past.leave_s + past.index_s,
        past.leave_s - past.refill_s,
        past.refill_s,
        past.index_s,
    )
    match, enter, expire, leave, refill, index = (1e3 * past.each(s) for s in seconds)
    return (
        setting,
        past.amp_ms,
        match,
        enter,
        expire,
        leave,
        refill,
        index,
        past.per_s,
        past.each(float(past.counters[LOOKED])),
        past.each(float(past.counters[VERIFIED])),
        past.each(past.found),
        past.each(past.updates),
        1e3 * past.each(past.refills),
        held,
    )


def measure(
    store: WindowStore,
    count: int,
    asking: SubscriptionShape = USUAL,
    rule: BufferRule = USUAL_RULE,
    *,
    indexing: Indexing | None = None,
    stock: Stock | None = None,
    span_us: int | None = None,
    blocks: int = BLOCKS,
) -> tuple[WindowCosts, Sliding, Index]:
    """Fill the buffers of so many subscriptions and let the window slide past them."""
    sliding = Sliding(store, draw_rows(store.corpus, count, asking), rule, span_us, stock)
    index = Index(sliding.rows, sliding.theta, indexing or Indexing())
    sliding.run(WARM_BLOCKS, index)
    return sliding.run(blocks, index), sliding, index


def warm_up(setup: Setup) -> None:
    """Compile or load every kernel before anything is timed."""
    corpus = read_corpus(setup, 8_000)
    store = make_store(setup, corpus, 4_000, 500)
    for name in ("cskyband", "skyband", "kmax"):
        measure(store, 300, rule=BufferRule(name), blocks=3)


def measure_defaults(
    setup: Setup,
    subscriptions: int = SUBSCRIPTIONS,
    window: int = WINDOW,
    large_window: int = MANY,
    long_subscriptions: int = LONG_SUBSCRIPTIONS,
    block: int = BLOCK,
) -> Figures:
    """Every set with the defaults."""
    warm_up(setup)
    room = (BLOCKS + WARM_BLOCKS) * block
    settings = [(POSTS, window, subscriptions), (POSTS, large_window, subscriptions)]
    if setup.data is not None:
        settings.append((VENUES, large_window, subscriptions))
    settings.append((LONG, window, long_subscriptions))
    rows, sizes, bars = [], [], {}
    for name, size, count in settings:
        corpus = read_corpus(setup, size + room, name)
        setting = f"{name}, window {size:,}"
        say(f"{setting}: {count:,} subscriptions, {corpus.terms.size / corpus.total:.1f} terms")
        past, sliding, index = measure(make_store(setup, corpus, size, block), count)
        rows.append(past_row(f"{setting}, {count:,} subscriptions", past, sliding.held))
        bars[setting] = past
        held = sliding.buffers.buffers
        sizes.append((
            setting,
            corpus.terms.size / corpus.total,
            corpus.reach_m / 1e3,
            float(sliding.theta.mean()) / 1e9,
            index.nbytes / count,
            sum(array.nbytes for array in held) / count,
            1e6 * sliding.fill_s / count,
            sliding.fill_looked,
        ))  # fmt: skip
        say(f"AMP {past.amp_ms:.4f} ms, EMP {past.emp_ms:.4f} ms, {past.per_s:,.0f} objects/s")
    yield Table("relevant", HEADER, rows)
    yield Table(
        "relevant-sizes",
        ("setting", "terms an object", "reach, km", "threshold", "index, bytes a subscription",
         "buffer, bytes", "filling, µs", "objects scored for it"),
        sizes,
    )  # fmt: skip
    yield BarPlot(
        "relevant",
        {
            "AMP": {setting: past.amp_ms for setting, past in bars.items()},
            "EMP": {setting: past.emp_ms for setting, past in bars.items()},
        },
        y_label="ms an object",
    )


GROWTH_BLOCKS = 5
PAPER_PER_S = (26.0, 50.0)  # at 5 M: 1,300/s of its cluster, which is 26 to 49 times one machine
GROWTH_HEADER = (
    "subscriptions",
    "AMP, ms",
    "matching",
    "entering",
    "EMP, ms",
    "as one batch, ms",
    "objects/s, one core",
    "objects/s, two threads by the wall",
    "postings looked at",
    "found",
    "updates",
    "index, bytes a subscription",
    "index, s",
)
ONE, TWO = (
    GROWTH_HEADER.index(f"objects/s, {who}") for who in ("one core", "two threads by the wall")
)


def measure_growth(
    setup: Setup,
    sizes: tuple[int, ...] = (100_000, 200_000, 500_000, 1_000_000),
    distinct: int = 200_000,
    window: int = MANY,
    block: int = BLOCK,
) -> Figures:
    """How many subscriptions one machine bears, on one core and on two threads.

    Buffers are filled for `distinct` subscriptions; more are copies with buffers and postings of
    their own. Postings of a copy lie next to the original's: the row of 2 x 100,000 beside that of
    200,000 shows what that saves.
    """
    warm_up(setup)
    corpus = read_corpus(setup, window + 20 * block, POSTS)
    store = make_store(setup, corpus, window, block)
    say(f"filling {distinct:,} buffers")
    base = Sliding(store, draw_rows(corpus, distinct), USUAL_RULE)
    table, lines = [], {"one core": [], "two threads": []}
    for size in sizes:
        table.append(measure_size(base, np.arange(size) % distinct, f"{size:,}"))
        for name, at in (("one core", ONE), ("two threads", TWO)):
            lines[name].append((size, table[-1][at]))
        if size == distinct:
            half = np.arange(size) % (size // 2)
            table.append(measure_size(base, half, f"2 x {size // 2:,}"))
    low, high = PAPER_PER_S
    lines["the paper's machine, 5 M"] = [(5e6, low), (5e6, high)]
    yield Table("relevant-growth", GROWTH_HEADER, table)
    yield LinePlot("relevant-growth", lines, x_label="subscriptions", y_label="objects/s")


def measure_size(base: Sliding, picked: np.ndarray, label: str) -> tuple[object, ...]:
    """One size: arrivals and expiries apart, then as one batch on one thread, then on two."""
    sliding = base.multiply(picked)
    index = Index(sliding.rows, sliding.theta)
    sliding.run(1, index)
    apart = sliding.run(GROWTH_BLOCKS, index)
    batch = sliding.run(GROWTH_BLOCKS, index, together=True)
    with ThreadPoolExecutor(2) as threads:
        sliding.run(1, index, together=True, threads=threads)
        two = sliding.run(GROWTH_BLOCKS, index, together=True, threads=threads)
    row = (
        label,
        apart.amp_ms,
        1e3 * apart.each(apart.match_s),
        1e3 * apart.each(apart.enter_s),
        apart.emp_ms,
        1e3 / batch.per_s,
        batch.per_s,
        two.objects / two.wall_s,
        apart.each(float(apart.counters[LOOKED])),
        apart.each(apart.found),
        apart.each(apart.updates),
        index.nbytes / picked.size,
        index.made_s,
    )
    say(f"{label}: {batch.per_s:,.0f} objects/s on one core, {row[TWO]:,.0f} on two threads")
    return row
