"""Segments: subscription rows, their index and their directory of ids in one immutable file."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.index.boolean import BooleanIndex, build_index
from placewire.kernels.jit import read_only
from placewire.model.subscriptions import SubscriptionRows
from placewire.state.arrays import open_arrays, write_arrays


class Segment(NamedTuple):
    """A segment in memory or mapped; `rows.id_hash` is empty when mapped, see `directory_*`."""

    rows: SubscriptionRows
    boolean: BooleanIndex
    directory_hash: NDArray[np.uint64]
    directory_row: NDArray[np.uint32]


def make_segment(rows: SubscriptionRows, literal_count: NDArray[np.int64] | None = None) -> Segment:
    """Index rows; their numbers stay."""
    rows = SubscriptionRows(*map(read_only, rows))
    order = np.argsort(rows.id_hash, kind="stable")
    return Segment(
        rows,
        BooleanIndex(*map(read_only, build_index(rows, literal_count))),
        read_only(rows.id_hash[order]),
        read_only(order.astype(np.uint32)),
    )


def write_segment(path: Path, segment: Segment) -> int:
    """Write the segment to a new file; gives its size."""
    rows = segment.rows._asdict()
    del rows["id_hash"]  # the directory has it
    arrays = {f"rows.{name}": array for name, array in rows.items()}
    arrays |= {f"index.{name}": array for name, array in segment.boolean._asdict().items()}
    arrays |= {"directory.hash": segment.directory_hash, "directory.row": segment.directory_row}
    return write_arrays(path, arrays)


def open_segment(path: Path) -> Segment:
    """Map a segment."""
    arrays = open_arrays(path).arrays
    rows = SubscriptionRows(
        id_hash=read_only(np.empty(0, np.uint64)),
        **{name: arrays[f"rows.{name}"] for name in SubscriptionRows._fields if name != "id_hash"},
    )
    index = BooleanIndex(**{name: arrays[f"index.{name}"] for name in BooleanIndex._fields})
    return Segment(rows, index, arrays["directory.hash"], arrays["directory.row"])


def whole_rows(segment: Segment) -> SubscriptionRows:
    """The rows with their id hashes put back from the directory."""
    if segment.rows.id_hash.size == segment.rows.total:
        return segment.rows
    hashes = np.empty(segment.rows.total, np.uint64)
    hashes[segment.directory_row] = segment.directory_hash
    return segment.rows._replace(id_hash=hashes)
