"""How many relevant subscriptions one machine bears, on one core and on two threads.

The window has a million objects, as the paper's. Buffers are filled for 200,000 subscriptions; more
of them are copies, with buffers of their own. A copy has postings of its own too, but next to those
it was copied from: the row of 2 x 100,000 beside that of 200,000 tells what that is worth.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bench.relevant import BLOCK, MANY, USUAL_RULE, make_store, say, warm_up
from bench.relevant_data import POSTS, draw_rows, read_corpus
from bench.relevant_matching import Index
from bench.relevant_window import Sliding
from bench.settings import Choice
from bench.tables import draw_lines, save_table
from placewire.kinds.relevant.kernels.groups import LOOKED

DISTINCT = 200_000
SIZES, LARGE = (100_000, 200_000, 500_000, 1_000_000), (2_000_000, 5_000_000)
BLOCKS = 5
PAPER_PER_S = (26.0, 50.0)  # at 5 M: 1,300/s of its cluster, which is 26 to 49 times one machine
HEADER = (
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
ONE, TWO = (HEADER.index(f"objects/s, {who}") for who in ("one core", "two threads by the wall"))


def run(choice: Choice) -> None:
    """All sizes, on one filling of buffers."""
    warm_up(choice)
    sizes = (*SIZES, *LARGE) if choice.full else SIZES
    corpus = read_corpus(choice, MANY + 20 * BLOCK, POSTS)
    store = make_store(choice, corpus, MANY)
    say(f"filling {DISTINCT:,} buffers")
    base = Sliding(store, draw_rows(corpus, DISTINCT), USUAL_RULE)
    table, lines = [], {"one core": [], "two threads": []}
    for size in sizes:
        table.append(measure_size(base, np.arange(size) % DISTINCT, f"{size:,}"))
        for name, at in (("one core", ONE), ("two threads", TWO)):
            lines[name].append((size, table[-1][at]))
        if size == DISTINCT:
            half = np.arange(size) % (size // 2)
            table.append(measure_size(base, half, f"2 x {size // 2:,}"))
    low, high = PAPER_PER_S
    lines["the paper's machine, 5 M"] = [(5e6, low), (5e6, high)]
    save_table("relevant-growth", HEADER, table)
    draw_lines("relevant-growth", lines, x_label="subscriptions", y_label="objects/s")


def measure_size(base: Sliding, picked: np.ndarray, label: str) -> tuple[object, ...]:
    """One size: arrivals and expiries apart, then as one batch on one thread, then on two."""
    sliding = base.multiply(picked)
    index = Index(sliding.rows, sliding.theta)
    sliding.run(1, index)
    apart = sliding.run(BLOCKS, index)
    batch = sliding.run(BLOCKS, index, together=True)
    with ThreadPoolExecutor(2) as threads:
        sliding.run(1, index, together=True, threads=threads)
        two = sliding.run(BLOCKS, index, together=True, threads=threads)
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
