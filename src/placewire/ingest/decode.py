"""Decode a block of JSON Lines into validated columns.

Kernels read plain lines, of objects and of changes, without making Python values. The strict
decoder reads every other line; an invalid one becomes a dead letter.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from placewire.ingest.changes import ChangesBuilder, finish_rows, join_changes, plain_changes
from placewire.ingest.queries import read_query
from placewire.kernels.blocks import codes_to_order, slices_to_buffer, times_to_clock
from placewire.kernels.jit import read_only
from placewire.kernels.json.objects import find_lines, scan_objects
from placewire.kernels.json.timestamps import slices_to_timestamps
from placewire.kernels.space.cells import points_to_codes
from placewire.model.arrays import F64, I32, I64, U8, U32, U64, Array
from placewire.model.errors import InvalidEvent
from placewire.model.events import (
    AnyEvent,
    ObjectEvent,
    SubscribeEvent,
    UnsubscribeEvent,
    check_point,
    check_text,
    compact_data,
    decode_event,
)
from placewire.model.settings import Settings
from placewire.model.subscriptions import SubscriptionRows, lengths_to_offsets, no_rows
from placewire.model.times import FAR_PAST_US, parse_timestamp
from placewire.text.analyzer import Analyzer
from placewire.text.words import Lexicon


class ObjectRows(NamedTuple):
    """n objects of one block, in log order; `event` is the position in the block's lines.

    `now_us` is the clock at the object as known from the block alone; earlier blocks may raise it.
    `data` is compact JSON, empty for an object that carries none.
    """

    event: U32
    ts_us: I64
    now_us: I64
    lon: F64
    lat: F64
    id_offsets: I64
    id_bytes: U8
    data_offsets: I64
    data_bytes: U8
    term_offsets: I64
    terms: U64

    @property
    def total(self) -> int:
        return int(self.event.size)

    def columns(self, names: tuple[str, ...]) -> dict[str, Array]:
        """Some of the columns by name."""
        return {name: getattr(self, name) for name in names}


DEFAULTS = Settings()
NO_DATA = np.zeros(1, np.int64), np.empty(0, np.uint8)


class DeadLetter(NamedTuple):
    """An invalid event: its position in the block, what is wrong, the line as received."""

    event: int
    error: str
    line: bytes


class Changes(NamedTuple):
    """Subscribes and unsubscribes of one block in log order; `row` is -1 for an unsubscribe."""

    event: U32
    now_us: I64
    row: I32
    id_hash: U64
    id_offsets: I64
    id_bytes: U8


class Queries(NamedTuple):
    """Queries of one block in log order: their lines, each of which is valid, as a CSR column."""

    event: U32
    now_us: I64
    line_offsets: I64
    line_bytes: U8


class Texts(NamedTuple):
    """The texts of a block's objects, in their order: slices of one buffer."""

    raw: U8
    starts: I64
    ends: I64


class Leap(NamedTuple):
    """An event so far ahead that only the clock of the whole batch can accept or reject it."""

    event: int
    ts_us: int
    now_us: int
    line: bytes


class DecodedBlock(NamedTuple):
    """One block as columns. Objects are in cell order, changes and dead letters in log order."""

    events: int
    objects: ObjectRows
    codes: U32
    texts: Texts
    changes: Changes
    rows: SubscriptionRows
    queries: Queries
    dead: list[DeadLetter]
    leaps: list[Leap]
    first_ts_us: int | None
    last_now_us: int


class ObjectColumns(NamedTuple):
    """Objects before analysis: slices of one buffer, empty for objects without data."""

    raw: U8
    event: U32
    ts_us: I64
    lon: F64
    lat: F64
    id_start: U32
    id_end: U32
    text_start: U32
    text_end: U32
    data_start: U32
    data_end: U32


@contextlib.contextmanager
def pause_gc() -> Iterator[None]:
    """Disable the garbage collector: events have no cycles, and it takes a fifth of the time."""
    usual = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if usual:
            gc.enable()


@pause_gc()
def decode_lines(
    raw: U8,
    first_seq: int,
    analyzer: Analyzer,
    now_us: int | None,
    ahead_us: int,
    settings: Settings = DEFAULTS,
    lexicon: Lexicon | None = None,
) -> DecodedBlock:
    """Decode a block of JSON Lines. `now_us` is the clock before the batch, None if unknown."""
    offsets = find_lines(raw)
    plain, slow = scan_objects(raw, offsets)
    dead: list[DeadLetter] = []
    objects: list[tuple[int, int, ObjectEvent, bytes, bytes]] = []
    queries: list[tuple[int, int, bytes]] = []
    builder = ChangesBuilder(analyzer, settings, lexicon)
    reach_m = settings.reach_m if lexicon is None and not analyzer.stems else 0.0
    changes, slow = plain_changes(raw, offsets, slow, first_seq, analyzer, reach_m)
    for event, ts_us, decoded, line in decode_slow(raw, offsets, slow, dead):
        try:
            if isinstance(decoded, ObjectEvent):
                check_point(decoded.lon, decoded.lat)
                text = check_text(decoded.text)
                objects.append((event, ts_us, decoded, text, compact_data(decoded.data)))
            elif isinstance(decoded, SubscribeEvent):
                builder.subscribe(event, ts_us, first_seq + event, decoded)
            elif isinstance(decoded, UnsubscribeEvent):
                builder.unsubscribe(event, ts_us, decoded.id)
            else:
                read_query(decoded, analyzer, settings)
                queries.append((event, ts_us, line))
        except InvalidEvent as error:
            dead.append(DeadLetter(event, str(error), line))
    dead.sort(key=lambda letter: letter.event)
    columns = ObjectColumns(
        raw,
        plain.line,
        plain.ts_us,
        plain.lon,
        plain.lat,
        plain.id_start,
        plain.id_end,
        plain.text_start,
        plain.text_end,
        *2 * (np.zeros(plain.line.size, np.uint32),),
    )
    if objects:
        columns = add_slow_objects(columns, objects)
    changes = join_changes(changes, builder.finish())
    block = finish_block(
        len(offsets) - 1, columns, changes.event, changes.ts_us, analyzer, now_us, ahead_us, queries
    )
    rows, hashes, row = finish_rows(changes, analyzer)
    leaps = [leap._replace(line=line_at(raw, offsets, leap.event)) for leap in block.leaps]
    return block._replace(
        changes=block.changes._replace(
            row=row, id_hash=hashes, id_offsets=changes.id_offsets, id_bytes=changes.id_bytes
        ),
        rows=rows,
        dead=dead,
        leaps=leaps,
    )


def decode_slow(
    raw: U8, offsets: I64, slow: U32, dead: list[DeadLetter]
) -> Iterator[tuple[int, int, AnyEvent, bytes]]:
    """Yield number, time, event and line of each valid line; add the others to `dead`.

    A kernel reads all times at once: one by one they would take as long as the JSON.
    """
    if slow.size == 0:
        return
    whole = raw.tobytes()
    starts, ends = offsets[slow].tolist(), offsets[slow.astype(np.int64) + 1].tolist()
    found: list[tuple[int, AnyEvent, bytes]] = []
    for event, start, end in zip(slow.tolist(), starts, ends, strict=True):
        line = whole[start : end - 1] if whole[end - 1] == 10 else whole[start:end]
        try:
            found.append((event, decode_event(line), line))
        except InvalidEvent as error:
            dead.append(DeadLetter(event, str(error), line))
    stamps = [decoded.ts.encode() for _, decoded, _ in found]
    edges = lengths_to_offsets(np.array([len(stamp) for stamp in stamps], np.int64))
    valid, times = slices_to_timestamps(
        np.frombuffer(b"".join(stamps), np.uint8), edges[:-1], edges[1:]
    )
    for (event, decoded, line), good, ts_us in zip(
        found, valid.tolist(), times.tolist(), strict=True
    ):
        if good:
            yield event, ts_us, decoded, line
            continue
        try:
            yield event, parse_timestamp(decoded.ts), decoded, line
        except InvalidEvent as error:
            dead.append(DeadLetter(event, f"ts: {error}", line))


def line_at(raw: U8, offsets: I64, event: int) -> bytes:
    """Return one line without its newline."""
    line = raw[offsets[event] : offsets[event + 1]].tobytes()
    return line[:-1] if line.endswith(b"\n") else line


def add_slow_objects(
    plain: ObjectColumns, slow: list[tuple[int, int, ObjectEvent, bytes, bytes]]
) -> ObjectColumns:
    """Add objects that the strict decoder has read, in log order."""
    extra = bytearray()
    edges = np.empty((len(slow), 4), np.uint32)
    for i, (_, _, decoded, text, data) in enumerate(slow):
        edges[i, 0] = plain.raw.size + len(extra)
        for at, part in enumerate((decoded.id.encode("utf-8"), text, data), 1):
            extra += part
            edges[i, at] = plain.raw.size + len(extra)
    events = np.concatenate([plain.event, np.array([s[0] for s in slow], np.uint32)])
    order = np.argsort(events, kind="stable")

    def both(old: Array, new: Array) -> Array:
        return np.concatenate([old, new])[order]

    return ObjectColumns(
        raw=np.concatenate([plain.raw, np.frombuffer(bytes(extra), np.uint8)]),
        event=events[order],
        ts_us=both(plain.ts_us, np.array([s[1] for s in slow], np.int64)),
        lon=both(plain.lon, np.array([s[2].lon for s in slow], np.float64)),
        lat=both(plain.lat, np.array([s[2].lat for s in slow], np.float64)),
        id_start=both(plain.id_start, edges[:, 0]),
        id_end=both(plain.id_end, edges[:, 1]),
        text_start=both(plain.text_start, edges[:, 1]),
        text_end=both(plain.text_end, edges[:, 2]),
        data_start=both(plain.data_start, edges[:, 2]),
        data_end=both(plain.data_end, edges[:, 3]),
    )


def finish_block(
    events: int,
    columns: ObjectColumns,
    change_event: U32,
    change_ts: I64,
    analyzer: Analyzer,
    now_us: int | None,
    ahead_us: int,
    queries: Sequence[tuple[int, int, bytes]] = (),
) -> DecodedBlock:
    """Run the block's clock, sort the objects by cell and analyse their texts."""
    event, ts = columns.event, columns.ts_us
    query_event = np.array([query[0] for query in queries], np.uint32)
    if change_event.size or query_event.size:
        event = np.concatenate([event, change_event, query_event])
        order = np.argsort(event, kind="stable")
        query_ts = np.array([query[1] for query in queries], np.int64)
        event, ts = event[order], np.concatenate([ts, change_ts, query_ts])[order]
    # Without a clock every event is accepted; the coordinator checks them against the first event.
    start = FAR_PAST_US if now_us is None else now_us
    nows, leaping = times_to_clock(
        ts, start, np.iinfo(np.int64).max if now_us is None else ahead_us
    )
    leaps = [Leap(int(event[i]), int(ts[i]), int(nows[i]), b"") for i in np.flatnonzero(leaping)]
    nows_of_objects, nows_of_changes, nows_of_queries = nows, nows[:0], nows[:0]
    if change_event.size or query_event.size:
        nows_of_objects = nows[np.searchsorted(event, columns.event)]
        nows_of_changes = nows[np.searchsorted(event, change_event)]
        nows_of_queries = nows[np.searchsorted(event, query_event)]
    codes = points_to_codes(read_only(columns.lon), read_only(columns.lat))
    order = codes_to_order(read_only(codes))
    id_offsets, id_bytes = slices_to_buffer(
        read_only(columns.raw),
        read_only(columns.id_start[order].astype(np.int64)),
        read_only(columns.id_end[order].astype(np.int64)),
    )
    texts = Texts(
        columns.raw,
        columns.text_start[order].astype(np.int64),
        columns.text_end[order].astype(np.int64),
    )
    terms = analyzer.analyse(*texts)
    events_in_order = columns.event[order]
    data_offsets, data_bytes = NO_DATA
    if (columns.data_end > columns.data_start).any():
        data_offsets, data_bytes = slices_to_buffer(
            read_only(columns.raw),
            read_only(columns.data_start[order].astype(np.int64)),
            read_only(columns.data_end[order].astype(np.int64)),
        )
    return DecodedBlock(
        events=events,
        objects=ObjectRows(
            event=events_in_order,
            ts_us=columns.ts_us[order],
            now_us=nows_of_objects[order],
            lon=columns.lon[order],
            lat=columns.lat[order],
            id_offsets=id_offsets,
            id_bytes=id_bytes,
            data_offsets=data_offsets,
            data_bytes=data_bytes,
            term_offsets=terms.offsets,
            terms=terms.hashes,
        ),
        codes=codes[order],
        texts=texts,
        changes=Changes(
            change_event,
            nows_of_changes,
            np.empty(0, np.int32),
            np.empty(0, np.uint64),
            np.zeros(1, np.int64),
            np.empty(0, np.uint8),
        ),
        rows=no_rows(),
        queries=Queries(
            query_event,
            nows_of_queries,
            lengths_to_offsets(np.array([len(query[2]) for query in queries], np.int64)),
            np.frombuffer(b"".join(query[2] for query in queries), np.uint8),
        ),
        dead=[],
        leaps=leaps,
        first_ts_us=int(ts[0]) if ts.size else None,
        last_now_us=int(nows[-1]) if ts.size else start,
    )
