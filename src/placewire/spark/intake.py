"""Write the partitions of a DataFrame as intake blocks; the driver fixes their order."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from functools import partial, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark import TaskContext
from pyspark.sql import DataFrame

from placewire.ingest.sources import join_lines
from placewire.spark.columns import CHANGE, OBJECT
from placewire.storage.intake import Intake, IntakeBlock
from placewire.storage.layout import StateDir

WRITTEN = "partition int, number int, payload binary"
MAX_SHOWN_BYTES = 32  # of a value that is not a point
NESTED = ("region", "where", "data")
MARKS = (b'"region":"', b'"data":"', b'"where":"{')  # as Spark writes them, without a space


def write_blocks(frame: DataFrame, root: str, rows: int) -> list[IntakeBlock]:
    """Write a frame of the intake schema as blocks of at most `rows` rows, in partition order."""
    table = frame.mapInArrow(partial(write_partition, root, rows), WRITTEN).toArrow()
    found = sorted(
        zip(*(table[name].to_pylist() for name in ("partition", "number", "payload")), strict=True)
    )
    return [msgspec.msgpack.decode(payload, type=IntakeBlock) for _, _, payload in found]


def write_partition(
    root: str, rows: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write the blocks of one partition; yields a description of each."""
    intake = Intake(StateDir.at(root))
    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    for number, table in enumerate(cut_tables(batches, rows)):
        block = msgspec.msgpack.encode(write_block(intake, table))
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([partition], pa.int32()),
                pa.array([number], pa.int32()),
                pa.array([block], pa.binary()),
            ],
            names=["partition", "number", "payload"],
        )


def cut_tables(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """Cut the rows of a partition into tables of one role and at most `rows` rows."""
    held: list[pa.RecordBatch] = []
    count = 0

    def flush() -> pa.Table:
        nonlocal count
        table, count = pa.Table.from_batches(held), 0
        held.clear()
        return table

    for batch in batches:
        role = batch.column(0).to_numpy()
        edges = [0, *(np.flatnonzero(np.diff(role)) + 1).tolist(), batch.num_rows]
        for first, last in pairwise(edges):
            at = first
            while at < last:
                if held and (count >= rows or held[-1].column(0)[0] != batch.column(0)[at]):
                    yield flush()
                some = min(last - at, rows - count)
                held.append(batch.slice(at, some))
                count, at = count + some, at + some
    if held:
        yield flush()


def write_block(intake: Intake, table: pa.Table) -> IntakeBlock:
    """Write one block: objects as columns, changes and events as lines."""
    role = table["role"][0].as_py()
    if role == OBJECT:
        columns = object_columns(table)
        return intake.write_block("arrow", table.num_rows, partial(write_arrow, columns))
    lines = table["line"].combine_chunks().cast(pa.large_binary()).fill_null(b"")
    text = join_lines(write_changes(lines) if role == CHANGE else lines)
    return intake.write_block("jsonl", table.num_rows, partial(write_text, text))


def write_text(text: pa.Buffer, path: Path) -> None:
    with open(path, "wb") as file:
        file.write(text)
        file.write(b"\n")


def write_arrow(columns: pa.Table, path: Path) -> None:
    """Write columns as an Arrow file that can be mapped."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, columns.schema) as writer:
        writer.write_table(columns)


def object_columns(table: pa.Table) -> pa.Table:
    """Select the columns of an object block."""
    by_number = table["ts_us"].null_count < table.num_rows
    lon, lat = table["lon"], table["lat"]
    wrong = {name: table[name] for name in ("lon_text", "lat_text")}
    if table["wkb"].null_count < table.num_rows:
        lon, lat = read_points(table["wkb"])
        wrong = {"lon_text": describe_non_points(table["wkb"], lon)}
    columns = {
        "id": table["id"],
        "ts": table["ts_us"] if by_number else table["ts_text"],
        "lon": lon,
        "lat": lat,
        "text": table["text"],
    }
    others = {"data": table["data"], "data_text": table["data_text"], **wrong}
    columns |= {name: other for name, other in others.items() if other.null_count < len(other)}
    return pa.table(columns)


def read_points(column: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """Read longitudes and latitudes of WKB and EWKB points; null for other values."""
    values = column.combine_chunks().cast(pa.large_binary())
    if isinstance(values, pa.ChunkedArray):
        values = values.chunk(0)
    sizes = np.asarray(pc.binary_length(values).fill_null(0), np.int64)
    _, offsets, data = values.buffers()
    raw = np.frombuffer(data or b"", np.uint8)
    starts = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values)]
    lon, lat = np.full(sizes.size, np.nan), np.full(sizes.size, np.nan)
    for order, header, dtype in (
        (1, b"\x01\x01\x00\x00\x00", "<f8"),
        (0, b"\x00\x00\x00\x00\x01", ">f8"),
        (1, b"\x01\x01\x00\x00\x20", "<f8"),
        (0, b"\x00\x20\x00\x00\x01", ">f8"),
    ):
        skip = 9 if 0x20 in header else 5  # EWKB includes an SRID
        here = np.flatnonzero(sizes == skip + 16)
        here = here[raw[starts[here]] == order] if here.size else here
        here = here[(gather(raw, starts[here], 5) == np.frombuffer(header, np.uint8)).all(axis=1)]
        both = gather(raw, starts[here] + skip, 16).copy().view(dtype).astype(np.float64)
        lon[here], lat[here] = both[:, 0], both[:, 1]
    return (pa.array(axis, from_pandas=True) for axis in (lon, lat))  # type: ignore[return-value]


def describe_non_points(wkb: pa.ChunkedArray, lon: pa.Array) -> pa.Array:
    """Describe values that are not points, null for points."""
    shown: list[str | None] = [None] * len(lon)
    for row in np.flatnonzero(np.asarray(lon.is_null())).tolist():
        value = wkb[row].as_py()
        if value is not None:
            more = "..." if len(value) > MAX_SHOWN_BYTES else ""
            shown[row] = f"WKB {value[:MAX_SHOWN_BYTES].hex()}{more}"
    return pa.array(shown, pa.string())


def gather(raw: NDArray[np.uint8], starts: NDArray[np.int64], size: int) -> NDArray[np.uint8]:
    """Gather `size` bytes from each start, u8[n, size]."""
    taken: NDArray[np.uint8] = raw[starts[:, None] + np.arange(size)]
    return taken


def write_changes(lines: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Embed JSON in the strings of subscription events."""
    marked = reduce(pc.or_, (pc.match_substring(lines, mark) for mark in MARKS))
    changed = [write_change(line) for line in lines.filter(marked).to_pylist()]
    return pc.replace_with_mask(lines, marked, pa.array(changed, pa.large_binary()))


def write_change(line: bytes) -> bytes:
    """Embed JSON in one event; decoding rejects lines that are not JSON."""
    try:
        event: dict[str, Any] = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return line
    for name in NESTED:
        value = event.get(name)
        if isinstance(value, str) and (name != "where" or value.startswith("{")):
            with contextlib.suppress(msgspec.DecodeError, RecursionError):
                # Embedded verbatim if it is JSON; otherwise decoding rejects the string.
                msgspec.json.decode(value)
                event[name] = msgspec.Raw(value.encode())
    return msgspec.json.encode(event)
