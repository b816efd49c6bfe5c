"""Rosters: ids and data of the objects that may be in results, so that a drop can name them.

Each batch writes the objects that entered a result; result_objects of neighbouring stretches of
the log are put together when there are many, without objects that are in no result any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.ingest.clock import BlockFacts, object_seqs
from placewire.kernels.blocks import slices_to_buffer
from placewire.kernels.jit import read_only
from placewire.model.kinds import RowResults
from placewire.model.subscriptions import concat_offsets
from placewire.storage.arrays import open_arrays, write_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import ResultObjectsEntry

NO_SEQS = np.empty(0, np.int64)
NO_BYTES = np.empty(0, np.uint8)
MOST_FILES = 16
JOINED = 8
LEAST_SWEPT = 100_000


class Named(NamedTuple):
    """Objects by ascending seq, with their ids and data (empty for none)."""

    seq: NDArray[np.int64]
    id_offsets: NDArray[np.int64]
    id_bytes: NDArray[np.uint8]
    data_offsets: NDArray[np.int64]
    data_bytes: NDArray[np.uint8]

    def take(self, picked: NDArray[np.int64]) -> Named:
        """Some of the objects, in the order picked."""
        return Named(
            self.seq[picked],
            *take_texts(self.id_offsets, self.id_bytes, picked),
            *take_texts(self.data_offsets, self.data_bytes, picked),
        )


def take_texts(
    offsets: NDArray[np.int64], texts: NDArray[np.uint8], picked: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The picked slices of a CSR column of bytes, one after another: offsets and bytes."""
    starts, ends = offsets[:-1][picked], offsets[1:][picked]
    found: tuple[NDArray[np.int64], NDArray[np.uint8]] = slices_to_buffer(
        read_only(texts), read_only(starts), read_only(ends)
    )
    return found


NOBODY = Named(
    np.empty(0, np.int64),
    np.zeros(1, np.int64),
    np.empty(0, np.uint8),
    np.zeros(1, np.int64),
    np.empty(0, np.uint8),
)


def concat_named(parts: Sequence[Named]) -> Named:
    """All objects of `parts`, one part after another."""
    if not parts:
        return NOBODY
    return Named(
        np.concatenate([p.seq for p in parts]),
        concat_offsets([p.id_offsets for p in parts]),
        np.concatenate([p.id_bytes for p in parts]),
        concat_offsets([p.data_offsets for p in parts]),
        np.concatenate([p.data_bytes for p in parts]),
    )


class ResultObjects:
    """The result_objects that the next manifest will name, oldest first."""

    def __init__(self, state: StateDir, entries: list[ResultObjectsEntry]) -> None:
        self.state = state
        self.entries = list(entries)
        self.swept = 0  # objects after the last sweep of this process

    def read(self, entry: ResultObjectsEntry) -> Named:
        arrays: dict[str, Any] = open_arrays(self.state.file(entry.name)).arrays
        return Named(*(arrays[name] for name in Named._fields))

    def find(self, seqs: NDArray[np.int64]) -> Named:
        """The objects of these seqs, in this order; all of them are there."""
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
        return concat_named(parts).take(back)

    def add(self, batch: int, objects: Named) -> None:
        """Write the stored of a batch."""
        if objects.seq.size == 0:
            return
        name = self.state.new_name(batch, "roster")
        write_arrays(self.state.file(name), objects._asdict())
        self.entries.append(ResultObjectsEntry(name, int(objects.seq[0]), int(objects.seq.size)))

    def tidy(self, batch: int, results: Iterable[RowResults]) -> None:
        """Put result_objects together when there are many; forget objects that no result has."""
        if len(self.entries) <= MOST_FILES:
            return
        total = sum(entry.objects for entry in self.entries)
        if total > 2 * self.swept + LEAST_SWEPT:
            held = np.concatenate([NO_SEQS, *(one.object_seqs() for one in results)])
            self._replace(batch, 0, len(self.entries), np.unique(held))
            self.swept = sum(entry.objects for entry in self.entries)
            return
        sizes = np.array([entry.objects for entry in self.entries])
        sums = np.convolve(sizes, np.ones(JOINED, np.int64), "valid")
        at = int(np.argmin(sums))
        self._replace(batch, at, at + JOINED, None)

    def _replace(self, batch: int, first: int, last: int, needed: NDArray[np.int64] | None) -> None:
        """One stored in the place of several neighbouring ones."""
        joined = concat_named([self.read(entry) for entry in self.entries[first:last]])
        if needed is not None:
            joined = joined.take(np.flatnonzero(np.isin(joined.seq, needed)))
        before, after = self.entries[:first], self.entries[last:]
        self.entries = before
        self.add(batch, joined)
        self.entries += after


def name_objects(facts: Sequence[BlockFacts]) -> Named:
    """All objects of the batch, block after block, in the order of each block's file."""
    parts = []
    for fact in facts:
        a = fact.arrays
        objects = a["object.event"].size
        parts.append(
            Named(
                object_seqs(fact),
                a["object.id_offsets"],
                a["object.id_bytes"],
                a.get("object.data_offsets", np.zeros(objects + 1, np.int64)),
                a.get("object.data_bytes", NO_BYTES),
            )
        )
    return concat_named(parts)
