"""The Skype paper's sweeps: k, keywords, Zipf's law, a window by time, and window sizes."""

from __future__ import annotations

import numpy as np

from bench.relevant import BLOCK, HEADER, WINDOW, make_store, measure, past_row, say, warm_up
from bench.relevant_data import KEYWORDS, USUAL, Asking, Corpus, read_corpus
from bench.settings import SEED, Choice
from bench.tables import draw_lines, save_table
from placewire.kinds.relevant.results import BufferRule

COUNT = 50_000
KS = (10, 20, 30, 40, 50)
WINDOWS = (50_000, 100_000, 200_000, 500_000)
LARGE = (1_000_000, 2_000_000, 5_000_000)
BLOCKS, WARM = 20, 4
BUSY = 4.0  # a busy hour has so many more objects than a quiet one


def run(choice: Choice) -> None:
    """k, keywords, Zipf's law, and a window by time."""
    warm_up(choice)
    corpus = read_corpus(choice, WINDOW + (BLOCKS + WARM) * BLOCK)
    sweep(choice, corpus, WINDOW, COUNT)


def sweep(choice: Choice, corpus: Corpus, window: int, count: int, block: int = BLOCK) -> None:
    store = make_store(choice, corpus, window, block)
    asked = {f"k {k}": Asking(k=k) for k in KS}
    asked |= {f"{n} keywords": Asking(keywords=n) for n in range(1, KEYWORDS + 1)}
    asked["keywords by Zipf's law"] = Asking(zipf=True)
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
        make_store(choice, named, window, block), count, USUAL, rule, span_us=span_us, blocks=blocks
    )
    table.append(past_row("window by time", past, sliding.held))
    save_table("relevant-sweeps", HEADER, table)
    draw_lines(
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


def run_window(choice: Choice) -> None:
    """Windows of the last so many objects."""
    warm_up(choice)
    sizes = (*WINDOWS, *LARGE) if choice.full else WINDOWS
    compare_windows(choice, sizes, COUNT)


def compare_windows(choice: Choice, sizes: tuple[int, ...], count: int, block: int = BLOCK) -> None:
    table, lines = [], {"AMP": [], "EMP": []}
    # The stream is the same for all: the last objects of the largest.
    corpus = read_corpus(choice, max(sizes) + (BLOCKS + WARM) * block)
    for size in sizes:
        begin = max(sizes) - size
        own = tail(corpus, begin)
        past, sliding, _ = measure(make_store(choice, own, size, block), count, blocks=BLOCKS)
        table.append(past_row(f"window {size:,}", past, sliding.held))
        lines["AMP"].append((size, past.amp_ms))
        lines["EMP"].append((size, past.emp_ms))
        say(f"window {size:,}: AMP {past.amp_ms:.4f} ms, EMP {past.emp_ms:.4f} ms")
    save_table("relevant-window", HEADER, table)
    draw_lines("relevant-window", lines, x_label="objects in the window", y_label="ms an object")


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
