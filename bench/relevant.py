"""The Skype paper's defaults: what an arriving and an expiring object cost, and where it goes.

The window is full before the stream begins. Posts have two windows: one without repeats, and one of
a million, the paper's size.
"""

from __future__ import annotations

import time

from bench.relevant_data import LONG, POSTS, USUAL, VENUES, Asking, Corpus, draw_rows, read_corpus
from bench.relevant_matching import Index, Indexing
from bench.relevant_store import Stock, Store
from bench.relevant_window import Past, Sliding
from bench.settings import Choice
from bench.tables import draw_bars, save_table
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
    "filling anew",
    "indexing anew",
    "objects/s",
    "postings looked at",
    "scored",
    "found",
    "updates",
    "re-evaluations of 1,000",
    "buffer",
)


def say(line: str) -> None:
    print(f"  [{time.strftime('%H:%M:%S')}] {line}", flush=True)


def make_store(choice: Choice, corpus: Corpus, window: int, block: int = BLOCK) -> Store:
    """The corpus in files, the first `window` objects as the window."""
    folder = choice.folder / f"relevant-{corpus.name}-{corpus.total}-{window}"
    return Store(corpus, StateDir(folder), window, block)


def past_row(setting: str, past: Past, held: float) -> tuple[object, ...]:
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
    store: Store,
    count: int,
    asking: Asking = USUAL,
    rule: BufferRule = USUAL_RULE,
    *,
    indexing: Indexing | None = None,
    stock: Stock | None = None,
    span_us: int | None = None,
    blocks: int = BLOCKS,
) -> tuple[Past, Sliding, Index]:
    """Fill the buffers of so many subscriptions and let the window slide past them."""
    sliding = Sliding(store, draw_rows(store.corpus, count, asking), rule, span_us, stock)
    index = Index(sliding.rows, sliding.theta, indexing or Indexing())
    sliding.run(WARM_BLOCKS, index)
    return sliding.run(blocks, index), sliding, index


def warm_up(choice: Choice) -> None:
    """Compile or load every kernel before anything is timed."""
    corpus = read_corpus(choice, 8_000)
    store = make_store(choice, corpus, 4_000, 500)
    for name in ("cskyband", "skyband", "kmax"):
        measure(store, 300, rule=BufferRule(name), blocks=3)


def run(choice: Choice) -> None:
    """Every set with the defaults."""
    warm_up(choice)
    room = (BLOCKS + WARM_BLOCKS) * BLOCK
    settings = [(POSTS, WINDOW, SUBSCRIPTIONS), (POSTS, MANY, SUBSCRIPTIONS)]
    if choice.data is not None:
        settings.append((VENUES, MANY, SUBSCRIPTIONS))
    settings.append((LONG, WINDOW, LONG_SUBSCRIPTIONS))
    rows, sizes, bars = [], [], {}
    for name, window, count in settings:
        corpus = read_corpus(choice, window + room, name)
        setting = f"{name}, window {window:,}"
        say(f"{setting}: {count:,} subscriptions, {corpus.terms.size / corpus.total:.1f} terms")
        past, sliding, index = measure(make_store(choice, corpus, window), count)
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
    save_table("relevant", HEADER, rows)
    save_table(
        "relevant-sizes",
        ("setting", "terms an object", "reach, km", "threshold", "index, bytes a subscription",
         "buffer, bytes", "filling, µs", "objects scored for it"),
        sizes,
    )  # fmt: skip
    draw_bars(
        "relevant",
        {
            "AMP": {setting: past.amp_ms for setting, past in bars.items()},
            "EMP": {setting: past.emp_ms for setting, past in bars.items()},
        },
        y_label="ms an object",
    )
