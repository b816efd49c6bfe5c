"""Segments: subscription rows of one kind in one file, with an index and a directory of ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from placewire.kernels.jit import read_only
from placewire.model.arrays import I64, U32, U64
from placewire.model.kinds import kind_numbered
from placewire.model.subscriptions import (
    NEVER_US,
    SubscriptionRows,
    map_columns,
    rows_of_arrays,
    rows_to_arrays,
)
from placewire.storage.arrays import open_arrays, write_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest, SegmentEntry

NONE_DEAD = np.empty(0, np.uint64)
NO_HASHES = read_only(np.empty(0, np.uint64))


class Segment(NamedTuple):
    """A segment in memory or mapped; `rows.id_hash` is empty when mapped, see `directory_*`.

    The kind defines `index`, by which objects find rows, and `held`, the results of the rows when
    the segment was written.
    """

    kind: int
    rows: SubscriptionRows
    index: Any
    held: Any
    directory_hash: U64
    directory_row: U32


def make_segment(kind: int, rows: SubscriptionRows, held: Any = None, parts: Any = None) -> Segment:
    """Build a segment of rows of one kind and their results; row numbers stay."""
    rows = map_columns(rows, read_only)
    index = kind_numbered(kind).build_index(rows, held, parts)
    return Segment(kind, rows, index, held, *make_directory(rows))


def unindexed(rows: SubscriptionRows) -> Segment:
    """Build a segment without an index, for lookups by id only."""
    rows = map_columns(rows, read_only)
    kind = int(rows.kind[0]) if rows.total else 0
    return Segment(kind, rows, None, None, *make_directory(rows))


def make_directory(rows: SubscriptionRows) -> tuple[U64, U32]:
    """Return the hashes of ids, ascending, and the row of each."""
    order = np.argsort(rows.id_hash, kind="stable")
    return read_only(rows.id_hash[order]), read_only(order.astype(np.uint32))


def write_segment(path: Path, segment: Segment) -> int:
    """Write the segment to a new file; returns its size."""
    arrays = rows_to_arrays(segment.rows)
    del arrays["rows.id_hash"]  # the directory has it
    arrays |= {"directory.hash": segment.directory_hash, "directory.row": segment.directory_row}
    more, facts = kind_numbered(segment.kind).save(segment)
    return write_arrays(path, arrays | more, {"kind": segment.kind} | facts)


def open_segment(path: Path) -> Segment:
    """Map a segment."""
    arrays, facts = open_arrays(path)
    rows = rows_of_arrays({"rows.id_hash": NO_HASHES} | arrays)
    kind = facts["kind"]
    index, held = kind_numbered(kind).load(arrays, facts)
    return Segment(kind, rows, index, held, arrays["directory.hash"], arrays["directory.row"])


def whole_rows(segment: Segment) -> SubscriptionRows:
    """Return the rows with their id hashes, restored from the directory."""
    if segment.rows.id_hash.size == segment.rows.total:
        return segment.rows
    hashes = np.empty(segment.rows.total, np.uint64)
    hashes[segment.directory_row] = segment.directory_hash
    return segment.rows._replace(id_hash=hashes)


def open_segments(state: StateDir, entries: Sequence[SegmentEntry]) -> list[tuple[Segment, U64]]:
    """Map segments and their tombstones."""
    return [
        (
            open_segment(state.file(entry.name)),
            NONE_DEAD if entry.dead is None else open_arrays(state.file(entry.dead)).arrays["bits"],
        )
        for entry in entries
    ]


class SubscriptionCounts:
    """Counts live subscriptions at a commit; caches the expiry times of immutable segments."""

    def __init__(self, state: StateDir) -> None:
        self.state = state
        self._expiring: dict[str, tuple[I64, I64]] = {}

    def count(self, manifest: Manifest) -> dict[int, int]:
        """Count live subscriptions by kind; raises Unusable if a file was deleted."""
        live: dict[int, int] = {}
        for entry in manifest.segments:
            expired = 0 if manifest.now_us is None else self._expired(entry, manifest.now_us)
            live[entry.kind] = live.get(entry.kind, 0) + entry.rows - entry.ended - expired
        named = {entry.name for entry in manifest.segments}
        for name in self._expiring.keys() - named:
            del self._expiring[name]
        return live

    def _expired(self, entry: SegmentEntry, now_us: int) -> int:
        """Count rows that have expired and have no tombstone."""
        if entry.name not in self._expiring:
            self._expiring[entry.name] = self._look_up(entry)
        times, rows = self._expiring[entry.name]
        over = rows[: int(np.searchsorted(times, now_us, side="right"))]
        if over.size == 0 or entry.dead is None:
            return int(over.size)
        [(_, dead)] = open_segments(self.state, [entry])
        bits = dead[over >> 6] >> (over & 63).astype(np.uint64)
        return int(over.size - np.count_nonzero(bits & np.uint64(1)))

    def _look_up(self, entry: SegmentEntry) -> tuple[I64, I64]:
        """Return the expiry times of rows that expire, ascending, and the rows."""
        [(segment, _)] = open_segments(self.state, [entry])
        expires_us = segment.rows.expires_us
        rows = np.flatnonzero(expires_us != NEVER_US)
        rows = rows[np.argsort(expires_us[rows], kind="stable")]
        return expires_us[rows], rows
