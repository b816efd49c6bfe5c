"""Decode an Arrow table of objects into a validated block.

Columns are `id`, `ts`, `lon`, `lat`, `text`, and optionally `data`, compact JSON, or `data_text`,
which may be any text. Where a coordinate is not a number, `lon_text` and `lat_text` have its text.
An invalid row becomes a dead letter.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from placewire.ingest.decode import DeadLetter, DecodedBlock, ObjectColumns, finish_block
from placewire.kernels.jit import read_only
from placewire.kernels.json.timestamps import slices_to_timestamps
from placewire.model.arrays import I64, U8, Array, Bools
from placewire.model.errors import InvalidEvent
from placewire.model.events import (
    MOST_DATA_BYTES,
    MOST_ID_CHARACTERS,
    MOST_TEXT_BYTES,
    compact_data,
)
from placewire.model.times import FIRST_US, LAST_US, parse_timestamp
from placewire.text.analyzer import Analyzer

COLUMNS = ("id", "ts", "lon", "lat", "text")
TEXT_COLUMNS = {"lon": "lon_text", "lat": "lat_text"}  # the text of what is not a number
COLUMN_OF_TEXT = {"data_text": "data", "lon_text": "lon", "lat_text": "lat"}
SHOWN = 64  # characters of a text in an error


def decode_columns(
    table: pa.Table, analyzer: Analyzer, now_us: int | None, ahead_us: int
) -> DecodedBlock:
    """Validate the objects of a table and analyse them."""
    table, unreadable = repair_texts(table)
    ids, texts = to_strings(table["id"]), to_strings(table["text"])
    carried = to_strings(table["data"]) if "data" in table.column_names else None
    mistakes: dict[int, str] = {}
    if "data_text" in table.column_names:
        carried, mistakes = read_data(table["data_text"])
    ts_us, timeless = read_times(table["ts"])
    lon, lat = (to_numpy(table[name].cast(pa.float64()), np.nan) for name in ("lon", "lat"))
    characters = to_numpy(pc.utf8_length(ids), 0)
    (id_raw, id_at), (text_raw, text_at) = string_buffers(ids), string_buffers(texts)
    data_raw, data_at = string_buffers(carried) if carried is not None else (id_raw[:0], None)
    faults = {
        "id": to_numpy(pc.is_null(ids), True)
        | (characters < 1)
        | (characters > MOST_ID_CHARACTERS),
        "ts": timeless | (ts_us < FIRST_US) | (ts_us > LAST_US),
        "lon": ~((lon >= -180) & (lon <= 180)),
        "lat": ~((lat >= -90) & (lat <= 90)),
        "text": to_numpy(pc.is_null(texts), True) | (np.diff(text_at) > MOST_TEXT_BYTES),
    }
    if data_at is not None:
        faults["data"] = np.diff(data_at) > MOST_DATA_BYTES
        faults["data"][list(mistakes)] = True
    for name, rows in unreadable.items():
        if COLUMN_OF_TEXT.get(name, name) in faults:
            faults[COLUMN_OF_TEXT.get(name, name)][rows] = True
    bad = np.logical_or.reduce(list(faults.values()))
    good = np.flatnonzero(~bad)
    shift, further = id_raw.size, id_raw.size + text_raw.size
    nothing = np.zeros(good.size, np.uint32)
    columns = ObjectColumns(
        raw=np.concatenate([id_raw, text_raw, data_raw]),
        event=good.astype(np.uint32),
        ts_us=ts_us[good],
        lon=lon[good],
        lat=lat[good],
        id_start=id_at[:-1][good].astype(np.uint32),
        id_end=id_at[1:][good].astype(np.uint32),
        text_start=(text_at[:-1][good] + shift).astype(np.uint32),
        text_end=(text_at[1:][good] + shift).astype(np.uint32),
        data_start=nothing if data_at is None else (data_at[:-1][good] + further).astype("u4"),
        data_end=nothing if data_at is None else (data_at[1:][good] + further).astype("u4"),
    )
    none = np.empty(0, np.uint32), np.empty(0, np.int64)
    block = finish_block(table.num_rows, columns, *none, analyzer, now_us, ahead_us)
    dead = []
    for row in np.flatnonzero(bad).tolist():
        name = next(name for name, fault in faults.items() if fault[row])
        if any(COLUMN_OF_TEXT.get(n, n) == name and row in rows for n, rows in unreadable.items()):
            dead.append(DeadLetter(row, f"{name}: is not UTF-8", row_to_json(table, row)))
            continue
        if name == "data" and row in mistakes:
            dead.append(DeadLetter(row, mistakes[row], row_to_json(table, row)))
            continue
        got = (
            table[TEXT_COLUMNS[name]][row].as_py()
            if TEXT_COLUMNS.get(name) in table.column_names
            else None
        )
        said = describe_fault(name, table[name][row].as_py(), got)
        dead.append(DeadLetter(row, said, row_to_json(table, row)))
    leaps = [leap._replace(line=row_to_json(table, leap.event)) for leap in block.leaps]
    return block._replace(dead=dead, leaps=leaps)


def repair_texts(table: pa.Table) -> tuple[pa.Table, dict[str, list[int]]]:
    """Replace texts that are not UTF-8; return the table and the rows replaced, by column.

    Spark passes texts on as they are in the files; the decoder relies on UTF-8.
    """
    unreadable: dict[str, list[int]] = {}
    for at, field in enumerate(table.schema):
        if not (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)):
            continue
        try:
            table.column(at).validate(full=True)
        except pa.ArrowInvalid:
            raw = table.column(at).cast(pa.large_binary()).to_pylist()
            texts = [None if value is None else value.decode("utf-8", "replace") for value in raw]
            unreadable[field.name] = [
                row
                for row, (value, text) in enumerate(zip(raw, texts, strict=True))
                if text is not None and text.encode() != value
            ]
            table = table.set_column(at, field, pa.chunked_array([pa.array(texts, field.type)]))
    return table, unreadable


def read_times(column: pa.ChunkedArray) -> tuple[I64, Bools]:
    """Return the microseconds of timestamps, integers or RFC 3339 texts, and the invalid rows."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.int64())
    if pa.types.is_integer(column.type):
        return to_numpy(column.cast(pa.int64()), 0), to_numpy(pc.is_null(column), True)
    texts = to_strings(column)
    raw, offsets = string_buffers(texts)
    valid, times = slices_to_timestamps(
        read_only(raw), read_only(offsets[:-1].copy()), read_only(offsets[1:].copy())
    )
    for row in np.flatnonzero(~valid).tolist():
        try:
            times[row] = parse_timestamp(texts[row].as_py() or "")
            valid[row] = True
        except InvalidEvent:
            pass
    return times, ~valid


def read_data(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, dict[int, str]]:
    """Return texts as compact JSON, and the errors of invalid ones by row."""
    compact: list[bytes | None] = []
    mistakes = {}
    for row, text in enumerate(column.to_pylist()):
        compact.append(None)
        if text is None:
            continue
        try:
            compact[-1] = compact_data(msgspec.json.decode(text))
        except InvalidEvent as error:
            mistakes[row] = str(error)
        except (msgspec.DecodeError, RecursionError) as error:
            mistakes[row] = f"data: is not JSON: {error}"
    return pa.chunked_array([pa.array(compact, pa.large_binary())]).cast(
        pa.large_string()
    ), mistakes


def describe_fault(name: str, value: Any, got: str | None = None) -> str:
    """Return the message for an invalid value; `got` is its text if it could not be read."""
    if value is None and got is not None and got.startswith("WKB "):
        return f"point: must be a WKB point, got {got.removeprefix('WKB ') or 'nothing'}"
    if value is None and got is not None:
        return f"{name}: must be a number, got {got[:SHOWN]!r}"
    if value is None:
        return f"{name}: is missing, got null"
    if name == "id":
        return f"id must have 1 to 256 characters, got {len(str(value))}"
    if name in ("lon", "lat"):
        most = 180 if name == "lon" else 90
        return f"{name} must be in [-{most}, {most}], got {value}"
    if name == "ts":
        return f"ts: must be a time of the years 1 to 9999 with an offset or Z, got {value}"
    size = len(str(value).encode("utf-8", "replace"))
    most = MOST_TEXT_BYTES if name == "text" else MOST_DATA_BYTES
    return f"{name} must be at most {most} bytes, got {size}"


def to_strings(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cast a column, which may have numbers, to large strings in one chunk."""
    return pa.chunked_array([column.cast(pa.large_string()).combine_chunks()])


def to_numpy(column: pa.Array | pa.ChunkedArray, missing: Any) -> Array:
    """Convert a column to numpy, with `missing` for nulls."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.null_count:
        column = column.fill_null(missing)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def string_buffers(column: pa.ChunkedArray) -> tuple[U8, I64]:
    """Return the bytes and offsets of a large-string column in one chunk."""
    if column.num_chunks == 0 or len(column) == 0:
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    array = column.chunk(0)
    _, offsets, data = array.buffers()
    raw = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return raw, np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]


def row_to_json(table: pa.Table, row: int) -> bytes:
    """Encode a row as JSON, for its dead letter."""
    values = table.slice(int(row), 1).to_pylist()[0]
    for name, unread in TEXT_COLUMNS.items():
        got = values.pop(unread, None)
        values[name] = got if values.get(name) is None else values[name]
    return msgspec.json.encode({name: json_value(value) for name, value in values.items()})


def json_value(value: Any) -> Any:
    """Return a value that JSON can represent."""
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)
