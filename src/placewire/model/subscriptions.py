"""Subscriptions as columns: decoding builds the rows, segments store them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NEVER_US = np.iinfo(np.int64).max

BOOLEAN, NEAREST, TRENDING, RELEVANT = 0, 1, 2, 3  # kinds of rows, as numbered by `model.kinds`


class SubscriptionRows(NamedTuple):
    """n subscriptions; CSR columns have n + 1 offsets.

    A literal is one step of a compiled expression: it tests a term and jumps to another literal of
    the same row, or to -1 (accept) or -2 (reject). No literals: any text.

    A kind may store values of its own in `shape` and `literal_term`, which it then reads by name
    through `placewire.kinds.<kind>.rows`. Separate columns would cost memory in rows of all kinds.

    A `nearest` row asks for the `k` objects nearest to a point: its region is a circle, or
    everywhere. A `trending` row has no words; its literals are times. The literals of a `relevant`
    row are its terms in code-point order; its norm is the root of the sum of the squares of their
    idf, added in that order.
    """

    kind: NDArray[np.uint8]
    k: NDArray[np.uint16]
    begin_seq: NDArray[np.int64]
    expires_us: NDArray[np.int64]
    id_hash: NDArray[np.uint64]
    id_offsets: NDArray[np.int64]
    id_bytes: NDArray[np.uint8]
    region_kind: NDArray[np.uint8]
    box: NDArray[np.float64]
    shape_offsets: NDArray[np.int64]
    shape: NDArray[np.float64]
    cover_mode: NDArray[np.uint8]
    literal_offsets: NDArray[np.int64]
    literal_term: NDArray[np.uint64]
    literal_true: NDArray[np.int16]
    literal_false: NDArray[np.int16]
    literal_cover: NDArray[np.uint8]

    @property
    def total(self) -> int:
        return int(self.begin_seq.size)


# Each CSR column's offsets and the flat columns they cut.
FLAT_COLUMNS = {
    "id_offsets": ("id_bytes",),
    "shape_offsets": ("shape",),
    "literal_offsets": ("literal_term", "literal_true", "literal_false", "literal_cover"),
}
ROW_COLUMNS = (
    "kind",
    "k",
    "begin_seq",
    "expires_us",
    "id_hash",
    "region_kind",
    "box",
    "cover_mode",
)


def no_rows() -> SubscriptionRows:
    """Return columns without rows."""
    return SubscriptionRows(
        kind=np.empty(0, np.uint8),
        k=np.empty(0, np.uint16),
        begin_seq=np.empty(0, np.int64),
        expires_us=np.empty(0, np.int64),
        id_hash=np.empty(0, np.uint64),
        id_offsets=np.zeros(1, np.int64),
        id_bytes=np.empty(0, np.uint8),
        region_kind=np.empty(0, np.uint8),
        box=np.empty((0, 4), np.float64),
        shape_offsets=np.zeros(1, np.int64),
        shape=np.empty(0, np.float64),
        cover_mode=np.empty(0, np.uint8),
        literal_offsets=np.zeros(1, np.int64),
        literal_term=np.empty(0, np.uint64),
        literal_true=np.empty(0, np.int16),
        literal_false=np.empty(0, np.int16),
        literal_cover=np.empty(0, np.uint8),
    )


def concat_rows(parts: Sequence[SubscriptionRows]) -> SubscriptionRows:
    """Concatenate the rows of `parts`."""
    if not parts:
        return no_rows()
    if len(parts) == 1:
        return parts[0]
    columns = {name: np.concatenate([getattr(p, name) for p in parts]) for name in ROW_COLUMNS}
    for offsets, flats in FLAT_COLUMNS.items():
        columns[offsets] = concat_offsets([getattr(p, offsets) for p in parts])
        for flat in flats:
            columns[flat] = np.concatenate([getattr(p, flat) for p in parts])
    return SubscriptionRows(**columns)


def take_rows(rows: SubscriptionRows, picked: NDArray[np.int64]) -> SubscriptionRows:
    """Return the rows at the positions `picked`, in that order."""
    columns = {name: getattr(rows, name)[picked] for name in ROW_COLUMNS}
    for offsets_name, flats in FLAT_COLUMNS.items():
        offsets = getattr(rows, offsets_name)
        new_offsets, positions = take_slices(offsets, picked)
        columns[offsets_name] = new_offsets
        for flat in flats:
            columns[flat] = getattr(rows, flat)[positions]
    return SubscriptionRows(**columns)


def concat_offsets(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the offsets of concatenated CSR columns."""
    lengths = np.concatenate([np.diff(part) for part in parts])
    return lengths_to_offsets(lengths)


def lengths_to_offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Turn n lengths into n + 1 offsets from 0."""
    offsets = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def take_slices(
    offsets: NDArray[np.int64], picked: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the offsets of the picked slices and the flat positions of their values."""
    starts = offsets[:-1][picked]
    lengths = offsets[1:][picked] - starts
    new_offsets = lengths_to_offsets(lengths)
    shifts = np.repeat(starts - new_offsets[:-1], lengths)
    return new_offsets, np.arange(int(new_offsets[-1]), dtype=np.int64) + shifts
