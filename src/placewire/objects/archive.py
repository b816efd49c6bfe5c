"""The archive: objects that are no longer retained, as Parquet files by day, for any tool to read.

    DIR/day=2026-03-01/b000000012-objects-....parquet

No query needs it. A file is written atomically, under a name that depends only on its source, so
that writing it again after a crash changes nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from placewire.model.errors import Unusable
from placewire.model.times import DAY_US, format_timestamp
from placewire.objects.index import Retained, Rows, rows_of, take_retained
from placewire.storage.filesystem import Folder

MARK = ".placewire"  # names the state that owns the archive
ROW_GROUP = 100_000


def claim_archive(folder: Folder, key: tuple[int, int]) -> None:
    """Make the folder the archive of the state with this key; raises Unusable.

    Two states would archive the objects of one log twice.
    """
    owner = f"{key[0]:016x}{key[1]:016x}".encode()
    try:
        folder.make()
        there = folder.list()
        if MARK in there and folder.read(MARK) == owner:
            return
    except Unusable as error:
        raise Unusable(f"archive {error}") from None
    if set(there) - {MARK}:
        whose = "belongs to another state" if MARK in there else "is not empty, nor an archive"
        raise Unusable(f"archive {folder}: {whose}; choose another folder")
    folder.write(MARK, owner)


def archive_objects(folder: Folder, name: str, retained: Retained) -> None:
    """Write the objects of a file of the store as one Parquet file per day."""
    rows = rows_of(retained)
    days = rows.ts_us // DAY_US
    for day in np.unique(days).tolist():
        picked = np.flatnonzero(days == day)
        picked = picked[np.argsort(rows.seq[picked])]
        target = f"day={format_timestamp(day * DAY_US)[:10]}/{Path(name).stem}.parquet"
        write_table(folder, target, table_of(take_retained(rows, picked), retained))


def table_of(rows: Rows, retained: Retained) -> pa.Table:
    """Convert objects to a table: seq, id, ts, lon, lat, text, terms, data."""
    words = strings(retained.word_offsets, retained.word_bytes)
    terms = pa.LargeListArray.from_arrays(
        pa.array(rows.term_offsets), words.take(pa.array(rows.terms))
    )
    return pa.table(
        {
            "seq": pa.array(rows.seq),
            "id": strings(rows.id_offsets, rows.id_bytes),
            "ts": pa.array(rows.ts_us).cast(pa.timestamp("us", "UTC")),
            "lon": pa.array(rows.lon),
            "lat": pa.array(rows.lat),
            "text": optional_strings(rows.text_offsets, rows.text_bytes, rows.seq.size),
            "terms": terms,
            "data": optional_strings(rows.data_offsets, rows.data_bytes, rows.seq.size, True),
        }
    )


def strings(offsets: NDArray[np.int64], raw: NDArray[np.uint8]) -> pa.Array:
    """Convert a CSR column of UTF-8 to Arrow."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(raw.tobytes())]
    return pa.Array.from_buffers(pa.large_string(), offsets.size - 1, buffers)


def optional_strings(
    offsets: NDArray[np.int64], raw: NDArray[np.uint8], count: int, empty_is_null: bool = False
) -> pa.Array:
    """Convert a column that may be missing."""
    if offsets.size == 1:
        return pa.nulls(count, pa.large_string())
    column: Any = strings(offsets, raw)
    if not empty_is_null:
        return column
    return pa.compute.if_else(pa.array(np.diff(offsets) > 0), column, pa.scalar(None, column.type))


def write_table(folder: Folder, name: str, table: pa.Table) -> None:
    """Write a table to a file atomically."""
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd", row_group_size=ROW_GROUP)
    try:
        folder.write(name, buffer.getvalue())
    except Unusable as error:
        raise type(error)(f"archive {error}") from None
