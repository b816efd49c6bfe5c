"""Samples: the few matches that a person can read, found without looking at all the others."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewire.model.events import ObjectEvent
from placewire.state.arrays import open_arrays
from placewire.state.layout import StateDir
from placewire.state.manifest import Manifest
from placewire.state.segment import Segment, open_segment
from placewire.text.analyzer import Analyzer

SAMPLES_A_BATCH = 3
CHUNK_BYTES = 1 << 24


class Sample(NamedTuple):
    """One match in words."""

    time: str
    subscription: str
    text: str
    lon: float
    lat: float


class LogLines:
    """Any line of a log by its seq: the engine keeps no texts, the log has them."""

    def __init__(self, path: Path) -> None:
        with open(path, "rb") as file:
            self.whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        raw = np.frombuffer(self.whole, np.uint8)
        ends = [np.full(1, -1, np.int64)]
        for start in range(0, raw.size, CHUNK_BYTES):
            ends.append(np.flatnonzero(raw[start : start + CHUNK_BYTES] == 10) + start)
        self.ends = np.concatenate(ends)

    def object_at(self, seq: int) -> ObjectEvent:
        """The object of the line numbered `seq`."""
        line = self.whole[self.ends[seq] + 1 : self.ends[seq + 1]]
        return msgspec.json.decode(line, type=ObjectEvent)


class Listener:
    """Hears the matches of a few subscriptions: counts all of them, keeps some in words."""

    def __init__(self, state: StateDir, lines: LogLines, ids: list[str]) -> None:
        self.state = state
        self.lines = lines
        self.ids = ids
        self.counts = np.zeros(len(ids), np.int64)
        self.last: dict[str, Sample] = {}
        self._told = np.zeros(len(ids), np.int64)
        self._rows: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    def hear(self, manifest: Manifest) -> list[Sample]:
        """Look through a committed batch; gives a few samples in log order."""
        seqs, numbers = self._matches(manifest)
        self.counts += np.bincount(numbers, minlength=self.counts.size)
        # One match a subscription, and first those that have told least: a storm is not all.
        newest = {number: seq for seq, number in sorted(zip(seqs, numbers, strict=True))}
        quiet = sorted(newest, key=lambda number: int(self._told[number]))[:SAMPLES_A_BATCH]
        self._told[quiet] += 1
        samples = []
        for number in sorted(quiet, key=lambda number: newest[number]):
            found = self.lines.object_at(newest[number])
            sample = Sample(found.ts[11:19], self.ids[number], found.text, found.lon, found.lat)
            self.last[sample.subscription] = sample
            samples.append(sample)
        return samples

    def _matches(self, manifest: Manifest) -> tuple[list[int], list[int]]:
        """The batch's matches of these subscriptions: seqs, and numbers of subscriptions."""
        seqs: list[int] = []
        numbers: list[int] = []
        self._forget(manifest)
        for piece in manifest.pieces:
            rows, of = self._rows_of(piece.segment, manifest.key)
            if not rows.size:
                continue
            stored = open_arrays(self.state.file(piece.file)).arrays
            matched = stored[f"{piece.prefix}.row"]
            picked = np.flatnonzero(np.isin(matched, rows))
            block = manifest.blocks[piece.block]
            events = open_arrays(self.state.file(block.file)).arrays["object.event"]
            objects = stored[f"{piece.prefix}.object"][picked]
            seqs += (block.first_seq + events[objects].astype(np.int64)).tolist()
            numbers += of[np.searchsorted(rows, matched[picked])].tolist()
        return seqs, numbers

    def _forget(self, manifest: Manifest) -> None:
        """Segments that are merged away take their rows with them."""
        named = {piece.segment for piece in manifest.pieces}
        named |= {entry.name for entry in manifest.segments}
        self._rows = {name: rows for name, rows in self._rows.items() if name in named}

    def _rows_of(
        self, name: str, key: tuple[int, int]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows of one segment that these ids name, ascending, and whose they are."""
        if name not in self._rows:
            segment = open_segment(self.state.file(name))
            hashes = Analyzer(*key).hash_terms(self.ids)
            found = [
                (row, number)
                for number, subscription in enumerate(self.ids)
                for row in rows_named(segment, subscription, hashes[number])
            ]
            pairs = np.array(sorted(found), np.int64).reshape(-1, 2)
            self._rows[name] = pairs[:, 0], pairs[:, 1]
        return self._rows[name]


def rows_named(segment: Segment, subscription: str, id_hash: np.uint64) -> list[int]:
    """The rows of a segment that have this id, through its directory."""
    hashes, rows = segment.directory_hash, segment.rows
    first, last = (
        np.searchsorted(hashes, id_hash, "left"),
        np.searchsorted(hashes, id_hash, "right"),
    )
    return [
        row
        for row in segment.directory_row[first:last].tolist()
        if rows.id_bytes[rows.id_offsets[row] : rows.id_offsets[row + 1]].tobytes()
        == subscription.encode()
    ]
