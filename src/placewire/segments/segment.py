"""Segments: subscription rows of one kind, their index and their directory of ids, in one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.model.kinds import kind_numbered
from placewire.model.subscriptions import SubscriptionRows
from placewire.storage.arrays import open_arrays, write_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import SegmentEntry

NONE_DEAD = np.empty(0, np.uint64)


class Segment(NamedTuple):
    """A segment in memory or mapped; `rows.id_hash` is empty when mapped, see `directory_*`.

    The kind knows what `index` and `held` are: how objects find rows, and the results that rows
    had when the segment was made.
    """

    kind: int
    rows: SubscriptionRows
    index: Any
    held: Any
    directory_hash: NDArray[np.uint64]
    directory_row: NDArray[np.uint32]


def make_segment(kind: int, rows: SubscriptionRows, held: Any = None, parts: Any = None) -> Segment:
    """Index rows of one kind, with the results that they hold; their numbers stay."""
    rows = SubscriptionRows(*map(read_only, rows))
    index = kind_numbered(kind).build_index(rows, held, parts)
    return Segment(kind, rows, index, held, *make_directory(rows))


def unindexed(rows: SubscriptionRows) -> Segment:
    """Rows without an index, which no object finds."""
    rows = SubscriptionRows(*map(read_only, rows))
    kind = int(rows.kind[0]) if rows.total else 0
    return Segment(kind, rows, None, None, *make_directory(rows))


def make_directory(rows: SubscriptionRows) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """The rows by the hash of their id: hashes, ascending, and rows."""
    order = np.argsort(rows.id_hash, kind="stable")
    return read_only(rows.id_hash[order]), read_only(order.astype(np.uint32))


def write_segment(path: Path, segment: Segment) -> int:
    """Write the segment to a new file; returns its size."""
    rows = segment.rows._asdict()
    del rows["id_hash"]  # the directory has it
    arrays = {f"rows.{name}": array for name, array in rows.items()}
    arrays |= {"directory.hash": segment.directory_hash, "directory.row": segment.directory_row}
    more, facts = kind_numbered(segment.kind).save(segment)
    return write_arrays(path, arrays | more, {"kind": segment.kind} | facts)


def open_segment(path: Path) -> Segment:
    """Map a segment."""
    arrays, facts = open_arrays(path)
    rows = SubscriptionRows(
        id_hash=read_only(np.empty(0, np.uint64)),
        **{name: arrays[f"rows.{name}"] for name in SubscriptionRows._fields if name != "id_hash"},
    )
    kind = facts["kind"]
    index, held = kind_numbered(kind).load(arrays, facts)
    return Segment(kind, rows, index, held, arrays["directory.hash"], arrays["directory.row"])


def whole_rows(segment: Segment) -> SubscriptionRows:
    """The rows with their id hashes put back from the directory."""
    if segment.rows.id_hash.size == segment.rows.total:
        return segment.rows
    hashes = np.empty(segment.rows.total, np.uint64)
    hashes[segment.directory_row] = segment.directory_hash
    return segment.rows._replace(id_hash=hashes)


def open_segments(
    state: StateDir, entries: Sequence[SegmentEntry]
) -> list[tuple[Segment, NDArray[np.uint64]]]:
    """Live segments with their ended rows, mapped."""
    return [
        (
            open_segment(state.file(entry.name)),
            NONE_DEAD if entry.dead is None else open_arrays(state.file(entry.dead)).arrays["bits"],
        )
        for entry in entries
    ]
