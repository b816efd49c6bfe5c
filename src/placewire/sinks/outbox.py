"""Read the outbox of a committed batch: results and dead letters as JSON Lines or Arrow tables.

Each row of a table has a stable id.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from placewire.kernels.blocks import slices_to_buffer
from placewire.kernels.jit import freeze, read_only
from placewire.kernels.json.results import (
    UpdateColumns,
    lines_by_seq,
    matches_to_lines,
    matches_to_order,
    updates_to_lines,
)
from placewire.kinds.object_ids import NamedObjects
from placewire.model.subscriptions import concat_offsets
from placewire.segments.segment import open_segment
from placewire.storage.arrays import open_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import BlockEntry, Manifest, PieceEntry

NO_OFFSETS = read_only(np.empty(0, np.int64))
LINES_AT_ONCE = 200_000
NAMES = tuple(f".{name}" for name in NamedObjects._fields[1:])
UPDATE_COLUMNS = (
    *("seq", "scored", "subscription_offsets", "subscription_bytes", "measure"),
    *(f"{way}{name}" for way in ("add", "drop") for name in ("s", *NAMES)),
)
TEXT, INT, FLOAT = pa.string(), pa.int64(), pa.float64()
RANKED = pa.list_(
    pa.struct([("object", TEXT), ("distance_m", FLOAT), ("score", FLOAT), ("data", TEXT)])
)
SCHEMA = pa.schema(
    [
        *[("id", TEXT), ("seq", INT), ("type", TEXT), ("subscription", TEXT), ("query", TEXT)],
        *[("object", TEXT), ("data", TEXT), ("add", RANKED), ("drop", RANKED)],
        *[("objects", RANKED), ("total", INT), ("at", pa.timestamp("us", "UTC"))],
        ("terms", pa.list_(pa.struct([("term", TEXT), ("count", INT)]))),
    ]
)
DEAD_SCHEMA = pa.schema([("seq", INT), ("error", TEXT), ("event", TEXT)])


class ResultLines(NamedTuple):
    """Results of one type as JSON Lines, by seq: the start of each line, and the bytes."""

    seq: NDArray[np.int64]
    starts: NDArray[np.int64]
    text: NDArray[np.uint8]


def ready_lines(stored: dict[str, NDArray[Any]], with_data: bool) -> ResultLines:
    """Return results that are stored as lines."""
    label = "data" if with_data and "data.text" in stored else "plain"
    return ResultLines(stored["seq"], stored[f"{label}.starts"], stored[f"{label}.text"])


def cut_by_ends(lines: ResultLines, ends: list[int]) -> list[ResultLines | None]:
    """Split lines at some seqs, ascending; None where a part is empty."""
    cuts = [0, *np.searchsorted(lines.seq, ends).tolist()]
    return [
        cut_lines(lines, first, last) if first < last else None for first, last in pairwise(cuts)
    ]


def cut_lines(lines: ResultLines, first: int, last: int) -> ResultLines:
    starts = lines.starts[first : last + 1]
    text = lines.text[starts[0] : starts[-1]]
    return ResultLines(lines.seq[first:last], starts - starts[0], text)


def result_lines(state: StateDir, manifest: Manifest, with_data: bool) -> Iterator[memoryview]:
    """Yield the batch's results as JSON Lines in result order, by block.

    At one seq types are in the order of their names: answer, match, report, update.
    """
    by_block: dict[int, list[PieceEntry]] = {}
    for piece in manifest.pieces:
        by_block.setdefault(piece.block, []).append(piece)
    ends = [entry.first_seq for entry in manifest.blocks[1:]] + [manifest.next_seq]
    answers, reports = (
        cut_by_ends(ready_lines(open_arrays(state.file(entry.file)).arrays, with_data), ends)
        if entry is not None
        else [None] * len(ends)
        for entry in (manifest.answers, manifest.reports)
    )
    updates = None
    if manifest.updates is not None:
        updates = open_arrays(state.file(manifest.updates.file)).arrays
        cuts = [0, *np.searchsorted(updates["seq"], ends).tolist()]
    for number, entry in enumerate(manifest.blocks):
        kinds: list[ResultLines] = []
        if (some := answers[number]) is not None:
            kinds.append(some)
        if number in by_block:
            kinds.append(match_lines(state, entry, by_block[number], with_data))
        if (some := reports[number]) is not None:
            kinds.append(some)
        if updates is not None and not kinds:
            for first in range(cuts[number], cuts[number + 1], LINES_AT_ONCE):
                last = min(first + LINES_AT_ONCE, cuts[number + 1])
                yield update_lines(updates, first, last, with_data).text.data
        elif updates is not None and cuts[number] < cuts[number + 1]:
            kinds.append(update_lines(updates, cuts[number], cuts[number + 1], with_data))
        if kinds:
            yield reduce(merge_lines, kinds).text.data


def other_lines(state: StateDir, manifest: Manifest, with_data: bool) -> Iterator[bytes]:
    """Yield the results of a batch other than matches, line by line, each type in order."""
    for entry in (manifest.answers, manifest.reports):
        if entry is not None:
            lines = ready_lines(open_arrays(state.file(entry.file)).arrays, with_data)
            yield from lines.text.tobytes().splitlines()
    if manifest.updates is not None:
        updates = open_arrays(state.file(manifest.updates.file)).arrays
        for first in range(0, updates["seq"].size, LINES_AT_ONCE):
            last = min(first + LINES_AT_ONCE, updates["seq"].size)
            yield from update_lines(updates, first, last, with_data).text.tobytes().splitlines()


def merge_lines(one: ResultLines, other: ResultLines) -> ResultLines:
    """Merge lines by seq; those of `one` first."""
    return ResultLines(*lines_by_seq(*map(read_only, (*one, *other))))


def match_lines(
    state: StateDir, entry: BlockEntry, pieces: list[PieceEntry], with_data: bool
) -> ResultLines:
    """Format a block's matches."""
    block = open_arrays(state.file(entry.file)).arrays
    objects, offsets, ids = gather_matches(state, pieces)
    seqs = read_only(entry.first_seq + block["object.event"].astype(np.int64)[objects])
    data = with_data and "object.data_offsets" in block
    order = matches_to_order(seqs, read_only(offsets), read_only(ids))
    starts, text = matches_to_lines(
        order,
        seqs,
        offsets,
        ids,
        objects,
        block["object.id_offsets"],
        block["object.id_bytes"],
        block["object.data_offsets"] if data else NO_OFFSETS,
        block["object.data_bytes"] if data else block["object.id_bytes"],
    )
    return ResultLines(seqs[order], starts, text)


def update_lines(
    updates: dict[str, NDArray[Any]], first: int, last: int, with_data: bool
) -> ResultLines:
    """Format a range of a batch's updates."""
    columns = freeze(UpdateColumns, (updates[name] for name in UPDATE_COLUMNS))
    starts, text = updates_to_lines(first, last, with_data, columns)
    return ResultLines(updates["seq"][first:last], starts, text)


def gather_matches(
    state: StateDir, pieces: list[PieceEntry]
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint8]]:
    """Gather the objects of a block's matches and their subscription ids (offsets, bytes)."""
    objects, offsets, ids = [], [], []
    for piece in pieces:
        stored = open_arrays(state.file(piece.file)).arrays
        rows = open_segment(state.file(piece.segment)).rows
        picked = stored[f"{piece.prefix}.row"]
        starts, ends = rows.id_offsets[:-1][picked], rows.id_offsets[1:][picked]
        some_offsets, some_bytes = slices_to_buffer(
            rows.id_bytes, read_only(starts), read_only(ends)
        )
        objects.append(stored[f"{piece.prefix}.object"])
        offsets.append(some_offsets)
        ids.append(some_bytes)
    return np.concatenate(objects), concat_offsets(offsets), np.concatenate(ids)


def dead_letters(state: StateDir, manifest: Manifest) -> list[dict[str, Any]]:
    """Return the batch's dead letters by seq."""
    letters: list[dict[str, Any]] = []
    for entry in manifest.blocks:
        if entry.dead:
            letters += read_letters(open_arrays(state.file(entry.file)).arrays, entry.first_seq)
    if manifest.late_dead is not None:
        letters += read_letters(open_arrays(state.file(manifest.late_dead)).arrays, 0)
        letters.sort(key=lambda letter: int(letter["seq"]))
    return letters


def read_letters(arrays: dict[str, NDArray[Any]], first_seq: int) -> list[dict[str, Any]]:
    """Read the dead letters of one file."""
    errors, lines = arrays["dead.error_bytes"].tobytes(), arrays["dead.line_bytes"].tobytes()
    error_at, line_at = arrays["dead.error_offsets"].tolist(), arrays["dead.line_offsets"].tolist()
    return [
        {
            "seq": first_seq + event,
            "error": errors[error_at[i] : error_at[i + 1]].decode("utf-8", "replace"),
            "event": lines[line_at[i] : line_at[i + 1]].decode("utf-8", "replace"),
        }
        for i, event in enumerate(arrays["dead.event"].tolist())
    ]


def dead_letter_lines(state: StateDir, manifest: Manifest) -> bytes:
    """Format the batch's dead letters as JSON Lines."""
    return b"".join(msgspec.json.encode(x) + b"\n" for x in dead_letters(state, manifest))


def result_table(state: StateDir, manifest: Manifest, with_data: bool) -> pa.Table:
    """Return the results of a batch in result order."""
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
    seqs = read_only(entry.first_seq + block["object.event"].astype(np.int64)[objects])
    order = matches_to_order(seqs, read_only(offsets), read_only(ids))
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
    return pa.Table.from_pylist(letters, DEAD_SCHEMA)
