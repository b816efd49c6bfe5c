"""Subscriptions as columns: decoding builds the rows, segments store them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from placewire.model.arrays import F64, I16, I64, U8, U16, U64, Array
from placewire.model.kinds import kind_named, kind_numbered

NEVER_US = np.iinfo(np.int64).max
T = TypeVar("T", bound=tuple[Any, ...])


class SubscriptionRows(NamedTuple):
    """n subscriptions; CSR columns have n + 1 offsets.

    These columns mean the same for every kind. A region is a bounding box and a shape. A literal is
    one step of a compiled expression: it tests a term and jumps to another literal of the same row,
    or to -1 (accept) or -2 (reject). No literals: any text. Where a kind has a list of terms
    instead of an expression, its literals have nothing to jump to.

    `own` has the columns of each kind's own by its number: a named tuple of arrays, in the order of
    the rows of that kind (`Kind.own_columns`). A kind without own columns or without rows here has
    no entry.
    """

    kind: U8
    k: U16
    begin_seq: I64
    expires_us: I64
    id_hash: U64
    id_offsets: I64
    id_bytes: U8
    region_kind: U8
    box: F64
    shape_offsets: I64
    shape: F64
    cover_mode: U8
    literal_offsets: I64
    literal_term: U64
    literal_true: I16
    literal_false: I16
    literal_cover: U8
    own: Mapping[int, Any] = {}

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
COLUMNS = SubscriptionRows._fields[:-1]
PER_LITERAL = "literal_"  # own columns whose names begin so have a value for each literal


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


def map_columns(rows: SubscriptionRows, change: Callable[[Array], Array]) -> SubscriptionRows:
    """Apply a function to every array of rows, such as one that makes it read-only."""
    own = {kind: type(table)(*map(change, table)) for kind, table in rows.own.items()}
    return SubscriptionRows(**{name: change(getattr(rows, name)) for name in COLUMNS}, own=own)


def concat_rows(parts: Sequence[SubscriptionRows]) -> SubscriptionRows:
    """Concatenate the rows of `parts`."""
    if not parts:
        return no_rows()
    if len(parts) == 1:
        return parts[0]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(p, name) for p in parts]) for name in ROW_COLUMNS
    }
    for offsets, flats in FLAT_COLUMNS.items():
        columns[offsets] = concat_offsets([getattr(p, offsets) for p in parts])
        for flat in flats:
            columns[flat] = np.concatenate([getattr(p, flat) for p in parts])
    own = {}
    for kind in {kind for p in parts for kind in p.own}:
        tables = [p.own[kind] for p in parts if kind in p.own]
        own[kind] = type(tables[0])(*map(np.concatenate, zip(*tables, strict=True)))
    return SubscriptionRows(**columns, own=own)


def take_rows(rows: SubscriptionRows, picked: I64) -> SubscriptionRows:
    """Return the rows at the positions `picked`, in that order."""
    columns: dict[str, Any] = {name: getattr(rows, name)[picked] for name in ROW_COLUMNS}
    for offsets_name, flats in FLAT_COLUMNS.items():
        offsets = getattr(rows, offsets_name)
        new_offsets, positions = take_slices(offsets, picked)
        columns[offsets_name] = new_offsets
        for flat in flats:
            columns[flat] = getattr(rows, flat)[positions]
    return SubscriptionRows(**columns, own=_take_own(rows, picked))


def _take_own(rows: SubscriptionRows, picked: I64) -> dict[int, Any]:
    """Return the own columns of the rows at the positions `picked`."""
    own = {}
    for kind, table in rows.own.items():
        of_kind = rows.kind == kind
        at = (np.cumsum(of_kind) - 1)[picked[of_kind[picked]]]
        if at.size == 0:
            continue
        offsets = lengths_to_offsets(np.diff(rows.literal_offsets)[of_kind])
        _, literals = take_slices(offsets, at)
        own[kind] = type(table)(
            *(
                column[literals if name.startswith(PER_LITERAL) else at]
                for name, column in table._asdict().items()
            )
        )
    return own


def make_own(kind: int, values: Mapping[str, Any]) -> Any:
    """Return the own columns of a kind from its values by name."""
    none = kind_numbered(kind).own_columns
    return type(none)(
        **{name: np.array(values[name], column.dtype) for name, column in none._asdict().items()}
    )


def rows_to_arrays(rows: SubscriptionRows) -> dict[str, Array]:
    """Return rows as arrays of a file."""
    arrays = {f"rows.{name}": getattr(rows, name) for name in COLUMNS}
    for kind, table in rows.own.items():
        own = kind_numbered(kind).name
        arrays |= {f"rows.{own}.{name}": column for name, column in table._asdict().items()}
    return arrays


def rows_of_arrays(arrays: Mapping[str, Array]) -> SubscriptionRows:
    """Return the rows in the arrays of a file."""
    own = {}
    for name in sorted({key.split(".")[1] for key in arrays if is_own(key)}):
        kind = kind_named(name)
        none = kind.own_columns
        own[kind.number] = type(none)(*(arrays[f"rows.{name}.{c}"] for c in none._fields))
    return SubscriptionRows(**{name: arrays[f"rows.{name}"] for name in COLUMNS}, own=own)


def is_own(key: str) -> bool:
    """Whether the name of an array is one of a kind's own columns."""
    return key.startswith("rows.") and key.count(".") == 2


def concat_offsets(parts: Sequence[I64]) -> I64:
    """Return the offsets of concatenated CSR columns."""
    lengths = np.concatenate([np.diff(part) for part in parts])
    return lengths_to_offsets(lengths)


def lengths_to_offsets(lengths: I64) -> I64:
    """Turn n lengths into n + 1 offsets from 0."""
    offsets = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def concat_columns(parts: Sequence[T]) -> T:
    """Concatenate named tuples of arrays by column; a name that ends in `offsets` is CSR."""
    pairs = zip(parts[0]._fields, zip(*parts, strict=True), strict=True)  # type: ignore[attr-defined]
    return type(parts[0])(
        *((concat_offsets if name.endswith("offsets") else np.concatenate)(c) for name, c in pairs)
    )


def take_columns(columns: T, picked: Any) -> T:
    """Take rows of a named tuple of arrays that has a row each, by positions, mask or slice."""
    return type(columns)(*(column[picked] for column in columns))


def take_slices(offsets: I64, picked: I64) -> tuple[I64, I64]:
    """Return the offsets of the picked slices and the flat positions of their values."""
    starts = offsets[:-1][picked]
    lengths = offsets[1:][picked] - starts
    new_offsets = lengths_to_offsets(lengths)
    shifts = np.repeat(starts - new_offsets[:-1], lengths)
    return new_offsets, np.arange(int(new_offsets[-1]), dtype=np.int64) + shifts
