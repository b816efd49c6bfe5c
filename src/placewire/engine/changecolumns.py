"""Changes of a block as columns: plain ones from the scanner, others from the strict reader."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.blocks import slices_to_buffer
from placewire.kernels.changelines import PlainChanges, scan_changes
from placewire.kernels.hashing import slices_hash
from placewire.kernels.jit import read_only
from placewire.model.regions import CIRCLE, EVERYWHERE, WORLD, circle_bounds
from placewire.model.subscriptions import (
    NEAREST,
    RELEVANT,
    SubscriptionRows,
    concat_offsets,
    concat_rows,
    lengths_to_offsets,
    take_rows,
    take_slices,
)
from placewire.text.analyzer import Analyzer


class ChangeColumns(NamedTuple):
    """Changes in log order; those that subscribe have their rows in `rows`, in the same order.

    The rows' own ids are left empty until `finish_rows` takes them from here.
    """

    event: NDArray[np.uint32]
    ts_us: NDArray[np.int64]
    subscribes: NDArray[np.bool_]
    id_offsets: NDArray[np.int64]
    id_bytes: NDArray[np.uint8]
    rows: SubscriptionRows


def plain_changes(
    raw: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    lines: NDArray[np.uint32],
    first_seq: int,
    analyzer: Analyzer,
    reach_m: float,
) -> tuple[ChangeColumns, NDArray[np.uint32]]:
    """The changes among `lines` that the scanner can read, and the other lines.

    `reach_m` is the usual reach of `relevant` subscriptions. 0 leaves them to the strict reader, as
    a lexicon asks for, because here every term weighs 1, and stems, because terms must be in order.
    """
    found, slow = scan_changes(
        raw, offsets, lines, analyzer.k0, analyzer.k1, analyzer.mapping(), reach_m
    )
    id_offsets, id_bytes = slices_to_buffer(
        read_only(raw), read_only(found.id_start), read_only(found.id_end)
    )
    box = found.figures
    circles = found.region_kind == CIRCLE
    shape_offsets, shape = _shapes_of(found)
    for row in np.flatnonzero(circles).tolist():
        box[row] = circle_bounds(*box[row, :3].tolist())
    box[found.region_kind == EVERYWHERE] = WORLD
    rows = SubscriptionRows(
        kind=found.kind,
        k=found.k,
        begin_seq=first_seq + found.line[found.subscribes].astype(np.int64),
        expires_us=found.expires_us,
        id_hash=np.zeros(found.expires_us.size, np.uint64),
        id_offsets=np.zeros(found.expires_us.size + 1, np.int64),
        id_bytes=np.empty(0, np.uint8),
        region_kind=found.region_kind,
        box=box,
        shape_offsets=shape_offsets,
        shape=shape,
        cover_mode=found.cover_mode,
        literal_offsets=found.literal_offsets,
        literal_term=found.literal_term,
        literal_true=found.literal_true,
        literal_false=found.literal_false,
        literal_cover=np.ones(found.literal_term.size, np.uint8),
    )
    return ChangeColumns(
        found.line, found.ts_us, found.subscribes, id_offsets, id_bytes, rows
    ), slow


def _shapes_of(found: PlainChanges) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The shapes of all rows as a CSR column."""
    relevant = found.kind == RELEVANT
    shaped = (found.region_kind == CIRCLE) | (found.kind == NEAREST) | relevant
    terms = np.diff(found.literal_offsets)
    offsets = lengths_to_offsets(np.where(relevant, 5 + terms, 3 * shaped))
    shape = np.ones(int(offsets[-1]), np.float64)  # and every idf is 1
    starts = offsets[:-1]
    shape[starts[shaped, None] + np.arange(3)] = found.figures[shaped, :3]
    shape[starts[relevant] + 3] = found.figures[relevant, 3]
    shape[starts[relevant] + 4] = np.sqrt(terms[relevant])
    return offsets, shape


def join_changes(one: ChangeColumns, other: ChangeColumns) -> ChangeColumns:
    """The changes of both, in log order."""
    if other.event.size == 0:
        return one
    if one.event.size == 0:
        return other
    event = np.concatenate([one.event, other.event])
    order = np.argsort(event, kind="stable")
    id_offsets, positions = take_slices(concat_offsets([one.id_offsets, other.id_offsets]), order)
    rows = concat_rows([one.rows, other.rows])
    if one.rows.total and other.rows.total:
        rows = take_rows(rows, np.argsort(rows.begin_seq, kind="stable"))
    return ChangeColumns(
        event[order],
        np.concatenate([one.ts_us, other.ts_us])[order],
        np.concatenate([one.subscribes, other.subscribes])[order],
        id_offsets,
        np.concatenate([one.id_bytes, other.id_bytes])[positions],
        rows,
    )


def finish_rows(
    changes: ChangeColumns, analyzer: Analyzer
) -> tuple[SubscriptionRows, NDArray[np.uint64], NDArray[np.int32]]:
    """The rows with their ids, the hashes of all changes' ids, and each change's row or -1."""
    hashes = slices_hash(
        read_only(changes.id_bytes),
        read_only(changes.id_offsets[:-1]),
        read_only(changes.id_offsets[1:]),
        analyzer.k0,
        analyzer.k1,
    )
    coming = np.flatnonzero(changes.subscribes)
    id_offsets, positions = take_slices(changes.id_offsets, coming)
    rows = changes.rows._replace(
        id_hash=hashes[coming], id_offsets=id_offsets, id_bytes=changes.id_bytes[positions]
    )
    numbers = np.where(changes.subscribes, np.cumsum(changes.subscribes) - 1, -1)
    return rows, hashes, numbers.astype(np.int32)
