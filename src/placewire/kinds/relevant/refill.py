"""Hunting: the objects of the sliding window that subscriptions want, from the store's files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kinds.object_ids import NOBODY, Named, concat_named
from placewire.kinds.threads import in_portions
from placewire.model.subscriptions import SubscriptionRows, lengths_to_offsets, take_slices
from placewire.objects.index import Retained
from placewire.objects.kernels.best_of_rows import (
    AskedRows,
    best_objects_of_rows,
    objects_above_rows,
    postings_of_rows,
)
from placewire.objects.kernels.score import Columns
from placewire.objects.kernels.score import ScoredObjects as Objects
from placewire.objects.kernels.score_layers import PageLayers
from placewire.objects.score_layers import Layers, columns_of
from placewire.objects.store import open_retained
from placewire.storage.layout import StateDir
from placewire.storage.manifest import StoreEntry

FIRST_SHARE = 0.1
TOLD_BY = 64  # rows of a search that tell how much of it was scored
ROWS_A_THREAD = 64  # fewer are not worth another thread; a guess, not measured


class WindowFile(NamedTuple):
    """A file of the store, with its words in order of hash and its rows in order of seq."""

    retained: Retained
    word_order: NDArray[np.int64]
    seq_order: NDArray[np.int64]
    entry: StoreEntry
    layers: Layers

    @property
    def columns(self) -> Columns:
        """What the kernels search."""
        return columns_of(self.retained, self.word_order)


class WindowSearch:
    """Searches the files of the store; what it needs to know of each is found once."""

    def __init__(self, state: StateDir, by_time: bool = False) -> None:
        self.state = state
        self.by_time = by_time
        self.grounds: dict[str, WindowFile] = {}
        self.entries: Sequence[StoreEntry] = ()
        self.share = FIRST_SHARE  # of a row's postings that a search scores

    def note_looked(
        self,
        rows: SubscriptionRows,
        picked: NDArray[np.int64],
        wanted: Wanted,
        looked: NDArray[np.int64],
    ) -> None:
        """Searches scored so many objects: a few of them tell what the next will."""
        few = slice(0, TOLD_BY)
        postings = self.postings(rows, picked[few], Wanted(*(column[few] for column in wanted)))
        share = float(looked[few].sum()) / max(float(postings.sum()), 1.0)
        self.share += 0.5 * (min(share, 1.0) - self.share)

    def look_at(self, entries: Sequence[StoreEntry]) -> None:
        """The store has these files now."""
        self.entries = entries
        names = {entry.name for entry in entries}
        self.grounds = {name: g for name, g in self.grounds.items() if name in names}

    def _open(self, after_seq: int, after_us: int, before_seq: int) -> list[WindowFile]:
        """The files that may have objects after these."""
        found = []
        for entry in self.entries:
            if (
                entry.last_seq <= after_seq
                or entry.last_us <= after_us
                or entry.first_seq >= before_seq
            ):
                continue
            if entry.name not in self.grounds:
                retained = open_retained(self.state.file(entry.name))
                self.grounds[entry.name] = WindowFile(
                    retained,
                    np.argsort(retained.word_hash, kind="stable"),
                    np.argsort(retained.seq, kind="stable"),
                    entry,
                    Layers(),
                )
            found.append(self.grounds[entry.name])
        return found

    def postings(
        self, rows: SubscriptionRows, picked: NDArray[np.int64], wanted: Wanted
    ) -> NDArray[np.float64]:
        """How many postings of the window a search for each row has, about."""
        counts = np.zeros(picked.size)
        for ground in self._open(*wanted.widest):
            count_postings(ground, rows, picked, counts)
        return counts

    def _deepen(
        self, ground: WindowFile, rows: SubscriptionRows, picked: NDArray[np.int64]
    ) -> tuple[PageLayers, bool]:
        """What a file is searched by for some rows."""
        if ground.layers.page_layers is not None:
            return ground.layers.page_layers, True
        counts = np.zeros(picked.size)
        count_postings(ground, rows, picked, counts)
        return ground.layers.deepen(ground.retained, int(counts.sum()))

    def best(
        self,
        rows: SubscriptionRows,
        picked: NDArray[np.int64],
        wanted: Wanted,
        sizes: NDArray[np.int64],
    ) -> BestObjects:
        """The best objects of each of the picked rows, as many as `sizes` says."""
        offsets = lengths_to_offsets(sizes)
        slots = int(offsets[-1])
        counts, looked = np.zeros((2, picked.size), np.int64)
        found = Objects(np.empty(slots, np.int32), *np.empty((2, slots), np.int64))
        # The largest first: what is found there bounds what is worth a look in the others.
        grounds = sorted(self._open(*wanted.widest), key=lambda ground: -ground.entry.objects)
        files = [(g.columns, *self._deepen(g, rows, picked)) for g in grounds]

        def search(begin: int, end: int) -> list[None]:
            for columns, page_layers, layered in files:
                best_objects_of_rows(
                    read_only(picked[begin:end]),
                    *Wanted(*(read_only(column[begin:end]) for column in wanted)),
                    asked_rows(rows),
                    columns,
                    page_layers,
                    layered,
                    self.by_time,
                    read_only(offsets[begin : end + 1]),
                    counts[begin:end],
                    looked[begin:end],
                    found,
                )
            return []

        # Rows differ much in what they cost: several portions for each thread even that out.
        in_portions(search, picked.size, ROWS_A_THREAD, each=4)
        return BestObjects(offsets, counts, *found, looked)

    def above(
        self,
        rows: SubscriptionRows,
        picked: NDArray[np.int64],
        after_seq: NDArray[np.int64],
        before_seq: NDArray[np.int64],
        theta: NDArray[np.int32],
    ) -> WindowMatches:
        """The objects between two events that score `theta` of each of the picked rows at least."""
        parts = []
        first, last = int(after_seq.min()), int(before_seq.max())
        for ground in self._open(first, np.iinfo(np.int64).min, last):
            parts.append(
                objects_above_rows(
                    read_only(picked),
                    read_only(after_seq),
                    read_only(before_seq),
                    read_only(theta),
                    asked_rows(rows),
                    ground.columns,
                    *self._deepen(ground, rows, picked),
                    self.by_time,
                )
            )
        if not parts:
            return WindowMatches(np.zeros(picked.size + 1, np.int64), *NO_OBJECTS)
        of, nano, seq, exp = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((seq, of))
        offsets = np.searchsorted(of[order], np.arange(picked.size + 1))
        return WindowMatches(offsets, nano[order], seq[order], exp[order])

    def name(self, seqs: NDArray[np.int64]) -> Named:
        """The objects of these seqs, ascending and each once; all of them are in the store."""
        parts = []
        for ground in self._open(int(seqs[0]) - 1, np.iinfo(np.int64).min, int(seqs[-1]) + 1):
            r = ground.retained
            ordered = r.seq[ground.seq_order]
            at = np.minimum(np.searchsorted(ordered, seqs), ordered.size - 1)
            rows = ground.seq_order[at[ordered[at] == seqs]]
            data = r.data_offsets
            if data.size == 1:
                data = np.zeros(r.seq.size + 1, np.int64)
            named = Named(r.seq, r.id_offsets, r.id_bytes, data, r.data_bytes)
            parts.append(named.take(rows))
        if not parts:
            return NOBODY
        named = concat_named(parts)
        return named.take(np.argsort(named.seq, kind="stable"))


def asked_rows(rows: SubscriptionRows) -> AskedRows:
    """What rows ask, as kernels take it."""
    return AskedRows(
        *map(
            read_only,
            (rows.literal_offsets, rows.literal_term, rows.shape_offsets, rows.shape),
        )
    )


def count_postings(
    ground: WindowFile,
    rows: SubscriptionRows,
    picked: NDArray[np.int64],
    counts: NDArray[np.float64],
) -> None:
    """Add how many entries of a file's lists each row asks for."""
    postings_of_rows(
        read_only(picked),
        rows.literal_offsets,
        rows.literal_term,
        ground.retained.word_hash,
        read_only(ground.word_order),
        ground.retained.list_offsets,
        counts,
    )


class Wanted(NamedTuple):
    """The window of each row: ts > after_us, after_seq < seq < before_seq."""

    after_us: NDArray[np.int64]
    after_seq: NDArray[np.int64]
    before_seq: NDArray[np.int64]

    @property
    def widest(self) -> tuple[int, int, int]:
        """What any row may want: seqs after, times after, seqs before."""
        return int(self.after_seq.min()), int(self.after_us.min()), int(self.before_seq.max())


class BestObjects(NamedTuple):
    """The best objects by rank: row i has the first counts[i] of slots offsets[i]:offsets[i+1]."""

    offsets: NDArray[np.int64]
    counts: NDArray[np.int64]
    nano: NDArray[np.int32]
    seq: NDArray[np.int64]
    exp: NDArray[np.int64]
    looked: NDArray[np.int64]


class WindowMatches(NamedTuple):
    """Objects of rows by seq, CSR."""

    offsets: NDArray[np.int64]
    nano: NDArray[np.int32]
    seq: NDArray[np.int64]
    exp: NDArray[np.int64]

    def take(self, picked: NDArray[np.int64]) -> WindowMatches:
        """Those of some rows."""
        offsets, at = take_slices(self.offsets, picked)
        return WindowMatches(offsets, self.nano[at], self.seq[at], self.exp[at])


NO_OBJECTS = np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64)
