"""Store ids and data of objects in results, so that later updates can name dropped objects.

Each batch writes a file of the objects that entered a result. When there are many files, adjacent
files are merged, and objects that are in no result any more are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.ingest.clock import BlockFacts, object_seqs
from placewire.kernels.blocks import slices_to_buffer
from placewire.kernels.jit import read_only
from placewire.model.arrays import I64, U8
from placewire.model.kinds import RowResults
from placewire.model.subscriptions import concat_columns
from placewire.storage.arrays import open_arrays, write_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import ResultObjectsEntry

NO_SEQS = np.empty(0, np.int64)
NO_BYTES = np.empty(0, np.uint8)
MAX_FILES = 16
MERGED_FILES = 8
MIN_SWEPT = 100_000


class NamedObjects(NamedTuple):
    """Objects with their seqs, ids and data (empty for none), CSR by object."""

    seq: I64
    id_offsets: I64
    id_bytes: U8
    data_offsets: I64
    data_bytes: U8

    def take(self, picked: I64) -> NamedObjects:
        """Return the objects at the positions `picked`, in that order."""
        return NamedObjects(
            self.seq[picked],
            *take_texts(self.id_offsets, self.id_bytes, picked),
            *take_texts(self.data_offsets, self.data_bytes, picked),
        )


def take_texts(offsets: I64, texts: U8, picked: NDArray[np.integer]) -> tuple[I64, U8]:
    """Copy the picked slices of a CSR column of bytes; return offsets and bytes."""
    starts, ends = offsets[:-1][picked], offsets[1:][picked]
    return slices_to_buffer(read_only(texts), read_only(starts), read_only(ends))


NO_NAMED_OBJECTS = NamedObjects(
    np.empty(0, np.int64),
    np.zeros(1, np.int64),
    np.empty(0, np.uint8),
    np.zeros(1, np.int64),
    np.empty(0, np.uint8),
)


def concat_named_objects(parts: Sequence[NamedObjects]) -> NamedObjects:
    """Concatenate the objects of `parts`."""
    if not parts:
        return NO_NAMED_OBJECTS
    return concat_columns(parts)


class ResultObjectFiles:
    """The files of result objects that the next manifest lists, oldest first."""

    def __init__(self, state: StateDir, entries: list[ResultObjectsEntry]) -> None:
        self.state = state
        self.entries = list(entries)
        self.swept = 0  # objects left by the last sweep of this process

    def read(self, entry: ResultObjectsEntry) -> NamedObjects:
        """Map a file of result objects."""
        arrays: dict[str, Any] = open_arrays(self.state.file(entry.name)).arrays
        return NamedObjects(*(arrays[name] for name in NamedObjects._fields))

    def find(self, seqs: I64) -> NamedObjects:
        """Return the objects with these seqs, in this order; every seq must be in a file."""
        order = np.argsort(seqs, kind="stable")
        ordered = seqs[order]
        starts = [entry.first_seq for entry in self.entries]
        cuts = np.append(np.searchsorted(ordered, starts), ordered.size)
        parts = []
        for number, entry in enumerate(self.entries):
            wanted = ordered[cuts[number] : cuts[number + 1]]
            if wanted.size:
                stored = self.read(entry)
                parts.append(stored.take(np.searchsorted(stored.seq, wanted)))
        back = np.empty(order.size, np.int64)
        back[order] = np.arange(order.size)
        return concat_named_objects(parts).take(back)

    def add(self, batch: int, objects: NamedObjects) -> None:
        """Write the objects that entered a result in this batch."""
        if objects.seq.size == 0:
            return
        name = self.state.new_name(batch, "ids")
        write_arrays(self.state.file(name), objects._asdict())
        self.entries.append(ResultObjectsEntry(name, int(objects.seq[0]), int(objects.seq.size)))

    def compact(self, batch: int, results: Iterable[RowResults]) -> None:
        """Merge files when there are many; remove objects that are in no result."""
        if len(self.entries) <= MAX_FILES:
            return
        total = sum(entry.objects for entry in self.entries)
        if total > 2 * self.swept + MIN_SWEPT:
            held = np.concatenate([NO_SEQS, *(one.object_seqs() for one in results)])
            self._replace(batch, 0, len(self.entries), np.unique(held))
            self.swept = sum(entry.objects for entry in self.entries)
            return
        sizes = np.array([entry.objects for entry in self.entries])
        sums = np.convolve(sizes, np.ones(MERGED_FILES, np.int64), "valid")
        at = int(np.argmin(sums))
        self._replace(batch, at, at + MERGED_FILES, None)

    def _replace(self, batch: int, first: int, last: int, needed: I64 | None) -> None:
        """Replace adjacent files by one; if `needed` is given, keep only those objects."""
        joined = concat_named_objects([self.read(entry) for entry in self.entries[first:last]])
        if needed is not None:
            joined = joined.take(np.flatnonzero(np.isin(joined.seq, needed)))
        before, after = self.entries[:first], self.entries[last:]
        self.entries = before
        self.add(batch, joined)
        self.entries += after


def read_batch_objects(facts: Sequence[BlockFacts]) -> NamedObjects:
    """Read all objects of a batch, in the order of its blocks."""
    parts = []
    for fact in facts:
        a = fact.arrays
        objects = a["object.event"].size
        parts.append(
            NamedObjects(
                object_seqs(fact),
                a["object.id_offsets"],
                a["object.id_bytes"],
                a.get("object.data_offsets", np.zeros(objects + 1, np.int64)),
                a.get("object.data_bytes", NO_BYTES),
            )
        )
    return concat_named_objects(parts)
