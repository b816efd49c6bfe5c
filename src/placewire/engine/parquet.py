"""Objects from Parquet: columns id, ts, lon, lat, text, a block for each row group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from placewire.engine.decode import DeadLetter, DecodedBlock, ObjectColumns, finish_block
from placewire.engine.log import BlockRef, Offset
from placewire.model.errors import Unusable
from placewire.model.events import MOST_ID_CHARACTERS, MOST_TEXT_BYTES
from placewire.text.analyzer import Analyzer

COLUMNS = ("id", "ts", "lon", "lat", "text")
FIRST_US = -62_135_596_800_000_000  # year 1
LAST_US = 253_402_300_799_999_999  # the end of year 9999


def plan_row_groups(path: str, start: Offset, rows: int) -> list[BlockRef]:
    """The blocks of the next batch: whole row groups, at least one; `byte` counts row groups."""
    meta = pq.ParquetFile(path).metadata
    refs: list[BlockRef] = []
    seq = start.seq
    for group in range(start.byte, meta.num_row_groups):
        size = meta.row_group(group).num_rows
        if refs and seq + size - start.seq > rows:
            break
        refs.append(BlockRef(len(refs), path, seq, group, group + 1, "parquet"))
        seq += size
    return refs


def decode_row_group(
    ref: BlockRef, analyzer: Analyzer, now_us: int | None, ahead_us: int
) -> DecodedBlock:
    """Read and validate one row group of objects."""
    file = pq.ParquetFile(ref.path, memory_map=True)
    missing = [name for name in COLUMNS if name not in file.schema_arrow.names]
    if missing:
        raise Unusable(f"{ref.path}: needs columns {', '.join(COLUMNS)}, lacks {missing[0]}")
    table = file.read_row_groups(range(ref.start, ref.end), columns=list(COLUMNS))
    table = table.set_column(0, "id", as_strings(table["id"])).set_column(
        4, "text", as_strings(table["text"])
    )
    ts = table["ts"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).combine_chunks()
    lon = table["lon"].cast(pa.float64()).combine_chunks()
    lat = table["lat"].cast(pa.float64()).combine_chunks()
    nulls = pc.or_kleene(pc.is_null(ts), pc.or_kleene(pc.is_null(lon), pc.is_null(lat)))
    nulls = pc.or_kleene(nulls, pc.or_kleene(pc.is_null(table["id"]), pc.is_null(table["text"])))
    ts_us = plain(ts, 0)
    lons, lats = plain(lon, np.nan), plain(lat, np.nan)
    id_raw, id_offsets = slices_of(table["id"])
    text_raw, text_offsets = slices_of(table["text"])
    characters = plain(pc.utf8_length(table["id"]).combine_chunks(), 0)
    bad = plain(nulls, True).astype(np.bool_)
    bad |= ~((lons >= -180) & (lons <= 180) & (lats >= -90) & (lats <= 90))
    bad |= (characters < 1) | (characters > MOST_ID_CHARACTERS)
    bad |= np.diff(text_offsets) > MOST_TEXT_BYTES
    bad |= (ts_us < FIRST_US) | (ts_us > LAST_US)
    good = np.flatnonzero(~bad)
    shift = id_raw.size
    columns = ObjectColumns(
        raw=np.concatenate([id_raw, text_raw]),
        event=good.astype(np.uint32),
        ts_us=ts_us[good],
        lon=lons[good],
        lat=lats[good],
        id_start=id_offsets[:-1][good].astype(np.uint32),
        id_end=id_offsets[1:][good].astype(np.uint32),
        text_start=(text_offsets[:-1][good] + shift).astype(np.uint32),
        text_end=(text_offsets[1:][good] + shift).astype(np.uint32),
        data={},
    )
    none = np.empty(0, np.uint32), np.empty(0, np.int64)
    block = finish_block(table.num_rows, columns, *none, analyzer, now_us, ahead_us)
    dead = [
        DeadLetter(event, "a column is null, out of range or too long", row_text(table, event))
        for event in np.flatnonzero(bad).tolist()
    ]
    leaps = [leap._replace(line=row_text(table, leap.event)) for leap in block.leaps]
    return block._replace(dead=dead, leaps=leaps)


def as_strings(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Ids may be numbers; everything becomes large strings in one chunk."""
    return pa.chunked_array([column.cast(pa.large_string()).combine_chunks()])


def plain(column: pa.Array, missing: Any) -> NDArray[Any]:
    """A column without nulls as numpy."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.null_count:
        column = column.fill_null(missing)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def slices_of(column: pa.ChunkedArray) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes and offsets of a large-string column in one chunk."""
    if column.num_chunks == 0 or len(column) == 0:
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    array = column.chunk(0)
    _, offsets, data = array.buffers()
    raw = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return raw, np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]


def row_text(table: pa.Table, row: int) -> bytes:
    """A row as text, for its dead letter."""
    return str(table.slice(int(row), 1).to_pylist()[0]).encode("utf-8", "replace")
