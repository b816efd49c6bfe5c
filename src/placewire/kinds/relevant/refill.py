"""Refill results that fell below k from the retained objects of the sliding window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import read_only
from placewire.kinds.object_ids import NO_NAMED_OBJECTS, NamedObjects, concat_named_objects
from placewire.kinds.relevant.kernels.window import WindowMatches
from placewire.kinds.relevant.rows import scored_rows
from placewire.kinds.shard import run_in_portions
from placewire.model.arrays import F64, I32, I64
from placewire.model.kinds import KindMemory
from placewire.model.subscriptions import SubscriptionRows
from placewire.objects.index import Retained
from placewire.objects.kernels.best_of_rows import (
    BestObjects,
    SearchWindows,
    best_objects_of_rows,
    make_best_objects,
    objects_above_rows,
    postings_of_rows,
)
from placewire.objects.kernels.score import Columns
from placewire.objects.kernels.score_layers import PageLayers
from placewire.objects.score_layers import Layers, columns_of
from placewire.objects.store import open_retained
from placewire.segments.live_segment import LiveSegment
from placewire.storage.layout import StateDir
from placewire.storage.manifest import StoreEntry

LEAST_SLID = 4_000  # a batch covers at least this many events, even in a smaller window
FIRST_SCORED_SHARE = 0.1
SAMPLED_ROWS = 64  # of a search, to estimate the share of postings that it scores
MIN_THREAD_ROWS = 64  # not measured


class WindowFile(NamedTuple):
    """An open file of the object store, with its words ordered by hash and its rows by seq."""

    retained: Retained
    word_order: I64
    seq_order: I64
    entry: StoreEntry
    layers: Layers

    @property
    def columns(self) -> Columns:
        """The columns that kernels search."""
        return columns_of(self.retained, self.word_order)


class WindowSearch(KindMemory):
    """Searches the files of the object store; opens and orders each file once."""

    def __init__(self, state: StateDir, by_time: bool = False) -> None:
        self.state = state
        self.by_time = by_time
        self.files: dict[str, WindowFile] = {}
        self.entries: Sequence[StoreEntry] = ()
        self.scored_share = FIRST_SCORED_SHARE  # of the postings of a row, by recent searches

    def cap_batch(self, rows: int, live: Sequence[LiveSegment], window: float) -> int:
        """Cap a batch at the size of the window; in a longer batch every result must be refilled.

        A batch as long as the window is up to 12x as fast (130,000 events, window of 3,000).
        """
        return min(rows, max(LEAST_SLID, int(window)))

    def note_scored(
        self, rows: SubscriptionRows, picked: I64, wanted: SearchWindows, looked: I64
    ) -> None:
        """Update, after a search, the share of postings that searches score."""
        few = slice(0, SAMPLED_ROWS)
        postings = self.estimate_postings(
            rows, picked[few], SearchWindows(*(column[few] for column in wanted))
        )
        share = float(looked[few].sum()) / max(float(postings.sum()), 1.0)
        self.scored_share += 0.5 * (min(share, 1.0) - self.scored_share)

    def use_files(self, entries: Sequence[StoreEntry]) -> None:
        """Search these files from now on."""
        self.entries = entries
        names = {entry.name for entry in entries}
        self.files = {name: file for name, file in self.files.items() if name in names}

    def _open(self, after_seq: int, after_us: int, before_seq: int) -> list[WindowFile]:
        """Open the files that may have objects in a range."""
        found = []
        for entry in self.entries:
            if (
                entry.last_seq <= after_seq
                or entry.last_us <= after_us
                or entry.first_seq >= before_seq
            ):
                continue
            if entry.name not in self.files:
                retained = open_retained(self.state.file(entry.name))
                self.files[entry.name] = WindowFile(
                    retained,
                    np.argsort(retained.word_hash, kind="stable"),
                    np.argsort(retained.seq, kind="stable"),
                    entry,
                    Layers(),
                )
            found.append(self.files[entry.name])
        return found

    def estimate_postings(self, rows: SubscriptionRows, picked: I64, wanted: SearchWindows) -> F64:
        """Estimate how many postings of the window a search for each row reads."""
        counts = np.zeros(picked.size)
        for file in self._open(*wanted.widest):
            count_postings(file, rows, picked, counts)
        return counts

    def _choose_layers(
        self, file: WindowFile, rows: SubscriptionRows, picked: I64
    ) -> tuple[PageLayers, bool]:
        """Choose the layers for searching a file, building them once enough postings are read."""
        if file.layers.page_layers is not None:
            return file.layers.page_layers, True
        counts = np.zeros(picked.size)
        count_postings(file, rows, picked, counts)
        return file.layers.deepen(file.retained, int(counts.sum()))

    def find_best(
        self, rows: SubscriptionRows, picked: I64, wanted: SearchWindows, sizes: I64
    ) -> BestObjects:
        """Find the best objects of each of the picked rows, at most `sizes` of them."""
        best = make_best_objects(sizes)
        scored = scored_rows(rows)
        # The largest file first: its best scores prune the search of the others.
        opened = sorted(self._open(*wanted.widest), key=lambda file: -file.entry.objects)
        files = [(g.columns, *self._choose_layers(g, rows, picked)) for g in opened]

        def search(begin: int, end: int) -> list[None]:
            for columns, page_layers, layered in files:
                best_objects_of_rows(
                    read_only(picked[begin:end]),
                    SearchWindows(*(read_only(column[begin:end]) for column in wanted)),
                    scored,
                    columns,
                    page_layers,
                    layered,
                    self.by_time,
                    best.of_rows(begin, end),
                )
            return []

        # Rows differ in cost: several portions per thread balance the load.
        run_in_portions(search, picked.size, MIN_THREAD_ROWS, per_thread=4)
        return best

    def find_above(
        self, rows: SubscriptionRows, picked: I64, after_seq: I64, before_seq: I64, theta: I32
    ) -> WindowMatches:
        """Find the objects between two events that reach the threshold of each picked row."""
        parts = []
        at_any_time = np.full(picked.size, np.iinfo(np.int64).min)
        wanted = SearchWindows(*map(read_only, (at_any_time, after_seq, before_seq)))
        for file in self._open(*wanted.widest):
            parts.append(
                objects_above_rows(
                    read_only(picked),
                    wanted,
                    read_only(theta),
                    scored_rows(rows),
                    file.columns,
                    *self._choose_layers(file, rows, picked),
                    self.by_time,
                )
            )
        if not parts:
            return WindowMatches(np.zeros(picked.size + 1, np.int64), *NO_OBJECTS)
        of, nano, seq, exp = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((seq, of))
        offsets = np.searchsorted(of[order], np.arange(picked.size + 1))
        return WindowMatches(offsets, nano[order], seq[order], exp[order])

    def find_objects(self, seqs: I64) -> NamedObjects:
        """Find the objects of ascending, distinct seqs, all of which are in the store."""
        parts = []
        for file in self._open(int(seqs[0]) - 1, np.iinfo(np.int64).min, int(seqs[-1]) + 1):
            r = file.retained
            ordered = r.seq[file.seq_order]
            at = np.minimum(np.searchsorted(ordered, seqs), ordered.size - 1)
            rows = file.seq_order[at[ordered[at] == seqs]]
            data = r.data_offsets
            if data.size == 1:
                data = np.zeros(r.seq.size + 1, np.int64)
            named = NamedObjects(r.seq, r.id_offsets, r.id_bytes, data, r.data_bytes)
            parts.append(named.take(rows))
        if not parts:
            return NO_NAMED_OBJECTS
        named = concat_named_objects(parts)
        return named.take(np.argsort(named.seq, kind="stable"))


def count_postings(file: WindowFile, rows: SubscriptionRows, picked: I64, counts: F64) -> None:
    """Add the number of postings in a file of the terms of each row."""
    postings_of_rows(read_only(picked), scored_rows(rows), file.columns, counts)


NO_OBJECTS = np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64)
