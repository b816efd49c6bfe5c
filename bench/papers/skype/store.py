"""Files of objects for a sliding window, and a search in them that counts and times itself."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from bench.papers.skype.data import Corpus
from placewire.kernels.jit import read_only
from placewire.kinds.relevant.kernels.window import WindowMatches
from placewire.kinds.relevant.refill import WindowSearch
from placewire.model.subscriptions import SubscriptionRows, lengths_to_offsets, map_columns
from placewire.model.times import FAR_PAST_US
from placewire.objects.index import build_retained, used_words
from placewire.objects.kernels.best_of_rows import BestObjects, SearchWindows
from placewire.objects.store import describe, write_retained
from placewire.storage.layout import StateDir
from placewire.storage.manifest import StoreEntry

FILE_OBJECTS = 1_000_000
FAN_IN = 4
STRETCH = 20_000  # rows that are filled at a time


def clock() -> float:
    """Processor time of all threads: others use the machine too."""
    return time.process_time()


class WindowStore:
    """Files of a corpus: the window, then the stream in blocks, merged four at a time."""

    def __init__(self, corpus: Corpus, state: StateDir, window: int, block: int) -> None:
        self.corpus = corpus
        self.state = state
        self.window = window
        self.block = block
        self._files: dict[tuple[int, int], StoreEntry] = {}
        state.files.mkdir(parents=True, exist_ok=True)

    def upto(self, last: int) -> list[StoreEntry]:
        """The files of all objects before one."""
        cuts = list(range(0, self.window, FILE_OBJECTS))
        size = self.block
        while size * FAN_IN <= last - self.window:
            size *= FAN_IN
        at = self.window
        while at < last:
            while at + size > last and size > self.block:
                size //= FAN_IN
            cuts.append(at)
            at = min(at + size, last)
        return [self._file(*span) for span in zip(cuts, [*cuts[1:], last], strict=True)]

    def _file(self, first: int, last: int) -> StoreEntry:
        if (first, last) not in self._files:
            rows, words = used_words(self.corpus.rows(first, last), self.corpus.words)
            name = f"{self.corpus.name}-{self.corpus.total}-{first}-{last}.plw"
            retained = build_retained(rows, words, self.corpus.lexicon)
            if not self.state.file(name).exists():
                write_retained(self.state.file(name), retained)
            self._files[first, last] = describe(name, retained)
        return self._files[first, last]


class Stock(NamedTuple):
    """The best objects of all rows, more than any buffer is filled with, and their postings."""

    postings: np.ndarray
    best: BestObjects

    def take(self, picked: np.ndarray, sizes: np.ndarray) -> BestObjects:
        """The first of them."""
        best = self.best
        offsets = lengths_to_offsets(sizes)
        of = np.repeat(np.arange(picked.size), sizes)
        room = best.offsets[picked + 1] - best.offsets[picked]
        assert (room >= sizes).all(), "the stock is too small"
        at = best.offsets[picked][of] + np.arange(of.size) - offsets[of]
        return BestObjects(
            offsets,
            np.minimum(best.counts[picked], sizes),
            best.looked[picked],
            best.nano[at],
            best.seq[at],
            best.exp[at],
        )


class TimedWindowSearch(WindowSearch):
    """Counts the buffers that are filled, the objects looked at for them, and the time."""

    def __init__(self, state: StateDir, by_time: bool) -> None:
        super().__init__(state, by_time)
        self.refills = self.looked = 0
        self.seconds = 0.0
        self.stock: Stock | None = None  # what is found, while buffers are filled first

    def estimate_postings(
        self, rows: SubscriptionRows, picked: np.ndarray, wanted: SearchWindows
    ) -> np.ndarray:
        if self.stock is not None:
            return self.stock.postings[picked]
        started = clock()
        counts = super().estimate_postings(rows, picked, wanted)
        self.seconds += clock() - started
        return counts

    def find_best(
        self, rows: SubscriptionRows, picked: np.ndarray, wanted: SearchWindows, sizes: np.ndarray
    ) -> BestObjects:
        if self.stock is not None:
            return self.stock.take(picked, sizes)
        started = clock()
        found = super().find_best(rows, picked, wanted, sizes)
        self.seconds += clock() - started
        self.refills += picked.size
        self.looked += int(found.looked.sum())
        return found

    def find_above(
        self,
        rows: SubscriptionRows,
        picked: np.ndarray,
        after_seq: np.ndarray,
        before_seq: np.ndarray,
        theta: np.ndarray,
    ) -> WindowMatches:
        started = clock()
        found = super().find_above(rows, picked, after_seq, before_seq, theta)
        self.seconds += clock() - started
        return found


def stock_up(store: WindowStore, rows: SubscriptionRows, size: int) -> Stock:
    """The best of the window for every row, `size` each."""
    search = WindowSearch(store.state, by_time=False)
    search.use_files(store.upto(store.window))
    parts, postings = [], []
    rows = map_columns(rows, read_only)
    for first in range(0, rows.total, STRETCH):
        picked = np.arange(first, min(first + STRETCH, rows.total))
        far_past = np.full(picked.size, FAR_PAST_US)
        wanted = SearchWindows(
            far_past, np.full(picked.size, -1), np.full(picked.size, store.window)
        )
        postings.append(search.estimate_postings(rows, picked, wanted))
        parts.append(search.find_best(rows, picked, wanted, np.full(picked.size, size)))
    columns = [np.concatenate(column) for column in list(zip(*parts, strict=True))[1:]]
    return Stock(
        np.concatenate(postings),
        BestObjects(lengths_to_offsets(np.full(rows.total, size)), *columns),
    )
