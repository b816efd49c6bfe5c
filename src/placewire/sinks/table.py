"""Read the outbox of a committed batch as an Arrow table; each row has a stable id."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from placewire.kernels.blocks import slices_to_buffer
from placewire.kernels.jit import read_only
from placewire.kernels.json.results import matches_to_order
from placewire.sinks.outbox import gather_matches, other_lines
from placewire.storage.arrays import open_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import BlockEntry, Manifest, PieceEntry

RANKED = pa.list_(
    pa.struct(
        [
            pa.field("object", pa.string()),
            pa.field("distance_m", pa.float64()),
            pa.field("score", pa.float64()),
            pa.field("data", pa.string()),
        ]
    )
)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("seq", pa.int64()),
        pa.field("type", pa.string()),
        pa.field("subscription", pa.string()),
        pa.field("query", pa.string()),
        pa.field("object", pa.string()),
        pa.field("data", pa.string()),
        pa.field("add", RANKED),
        pa.field("drop", RANKED),
        pa.field("objects", RANKED),
        pa.field("total", pa.int64()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field(
            "terms",
            pa.list_(pa.struct([pa.field("term", pa.string()), pa.field("count", pa.int64())])),
        ),
    ]
)
DEAD_SCHEMA = pa.schema(
    [pa.field("seq", pa.int64()), pa.field("error", pa.string()), pa.field("event", pa.string())]
)


def result_table(state: StateDir, manifest: Manifest, with_data: bool) -> pa.Table:
    """Return the results of a batch in the order of the specification."""
    by_block: dict[int, list[PieceEntry]] = {}
    for piece in manifest.pieces:
        by_block.setdefault(piece.block, []).append(piece)
    parts = [
        match_table(state, manifest.blocks[number], pieces, with_data)
        for number, pieces in sorted(by_block.items())
    ]
    others = [
        other_row(msgspec.json.decode(line)) for line in other_lines(state, manifest, with_data)
    ]
    if others:
        parts.append(pa.Table.from_pylist(others, SCHEMA))
    table = pa.concat_tables(parts) if parts else SCHEMA.empty_table()
    if others:
        # By seq and type; equal rows are in order already.
        order = np.lexsort(
            (pc.rank(table["type"], tiebreaker="dense").to_numpy(), table["seq"].to_numpy())
        )
        table = table.take(order)
    return table


def match_table(
    state: StateDir, entry: BlockEntry, pieces: list[PieceEntry], with_data: bool
) -> pa.Table:
    """Return a block's matches."""
    block = open_arrays(state.file(entry.file)).arrays
    objects, offsets, ids = gather_matches(state, pieces)
    seqs = entry.first_seq + block["object.event"].astype(np.int64)[objects]
    order = matches_to_order(seqs, offsets, ids)
    seqs, objects = seqs[order], objects[order]
    subscription = take_strings(offsets, ids, order)
    columns: dict[str, Any] = {
        "id": pc.binary_join_element_wise(
            pa.array(seqs).cast(pa.string()), pa.scalar("match"), subscription, ":"
        ),
        "seq": pa.array(seqs),
        "type": pa.repeat(pa.scalar("match"), seqs.size),
        "subscription": subscription,
        "object": take_strings(block["object.id_offsets"], block["object.id_bytes"], objects),
    }
    if with_data and "object.data_offsets" in block:
        data = take_strings(block["object.data_offsets"], block["object.data_bytes"], objects)
        columns["data"] = pc.if_else(pc.equal(pc.binary_length(data), 0), None, data)
    return pa.table(
        [
            columns.get(field.name, pa.nulls(seqs.size, field.type)).cast(field.type)
            for field in SCHEMA
        ],
        SCHEMA,
    )


def take_strings(
    offsets: NDArray[np.int64], raw: NDArray[np.uint8], rows: NDArray[Any]
) -> pa.Array:
    """Take strings of a CSR column by row."""
    starts, ends = offsets[:-1][rows], offsets[1:][rows]
    taken_offsets, taken = slices_to_buffer(
        read_only(raw), read_only(starts.astype(np.int64)), read_only(ends.astype(np.int64))
    )
    return pa.LargeStringArray.from_buffers(
        rows.size, pa.py_buffer(taken_offsets), pa.py_buffer(taken)
    ).cast(pa.string())


def other_row(result: dict[str, Any]) -> dict[str, Any]:
    """Convert an update, a report or an answer to a row."""
    row = dict(result)
    name = row.get("subscription", row.get("query"))
    row["id"] = f"{row['seq']}:{row['type']}:{name}"
    if "at" in row:
        row["id"] += f":{row['at']}"
        row["at"] = pa.scalar(row["at"].removesuffix("Z")).cast(pa.timestamp("us")).as_py()
    if "terms" in row:
        row["terms"] = [{"term": term, "count": count} for term, count in row["terms"]]
    for name in ("add", "drop", "objects"):
        for ranked in row.get(name, ()):
            if "data" in ranked:
                ranked["data"] = msgspec.json.encode(ranked["data"]).decode()
    return row


def dead_table(letters: list[dict[str, Any]]) -> pa.Table:
    """Return dead letters as a table."""
    return pa.Table.from_pylist(letters, DEAD_SCHEMA)
