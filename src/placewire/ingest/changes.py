"""Turn subscribe and unsubscribe events into columns, in plain and in strict form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from placewire.ingest.fields import FieldReader, check_kind, read_expires
from placewire.kernels.blocks import slices_to_buffer
from placewire.kernels.jit import read_only
from placewire.kernels.json.changes import PlainChanges, PlainNumbers, scan_changes
from placewire.kernels.text.siphash import slices_hash
from placewire.model.arrays import I32, I64, U8, U32, U64, Bools
from placewire.model.errors import InvalidEvent
from placewire.model.events import UNSET, SubscribeEvent, compact_data
from placewire.model.expression import Program
from placewire.model.kinds import kind_named, kind_numbered
from placewire.model.regions import CIRCLE, EVERYWHERE, WORLD, Region, circle_bounds
from placewire.model.settings import Settings
from placewire.model.subscriptions import (
    NEVER_US,
    PER_LITERAL,
    SubscriptionRows,
    concat_offsets,
    concat_rows,
    lengths_to_offsets,
    make_own,
    no_rows,
    take_rows,
    take_slices,
)
from placewire.text.analyzer import Analyzer
from placewire.text.words import Lexicon

DEFAULTS = Settings()


class RowFields(NamedTuple):
    """The values of a row that a kind reads from a subscription event.

    `own` has the values of the kind's columns by name: a number, or a list with one per literal.
    """

    k: int
    region: Region
    program: Program
    own: Mapping[str, Any] = {}


class ChangesBuilder:
    """Collects the changes of one block; terms are hashed together at the end."""

    def __init__(
        self, analyzer: Analyzer, settings: Settings = DEFAULTS, lexicon: Lexicon | None = None
    ) -> None:
        self.analyzer = analyzer
        self.reader = FieldReader(analyzer, settings, lexicon)
        self.events: list[int] = []
        self.times: list[int] = []
        self.subscribes: list[bool] = []
        self.kinds: list[int] = []
        self.ks: list[int] = []
        self.begin: list[int] = []
        self.expires: list[int] = []
        self.ids: list[bytes] = []
        self.regions: list[int] = []
        self.boxes: list[tuple[float, float, float, float]] = []
        self.shapes: list[float] = []
        self.shape_lengths: list[int] = []
        self.modes: list[int] = []
        self.literals: list[int] = []
        self.terms: list[str] = []
        self.on_true: list[int] = []
        self.on_false: list[int] = []
        self.cover: list[int] = []
        self.own: dict[int, dict[str, list[Any]]] = {}

    def subscribe(self, number: int, ts_us: int, seq: int, event: SubscribeEvent) -> None:
        """Add one subscription; raises InvalidEvent and leaves the builder unchanged."""
        try:
            check_kind(event)
            expires = NEVER_US if event.expires is UNSET else read_expires(event.expires)
            if event.data is not UNSET:
                compact_data(event.data)
            kind = kind_named(event.kind)
            k, region, program, own = kind.decode(event, ts_us, self.reader)
        except InvalidEvent as error:
            raise InvalidEvent(f"subscription {event.id!r}: {error}") from None
        flags = [0] * len(program.terms)
        for literal in program.cover:
            flags[literal] = 1
        self.modes.append(program.cover_mode)
        self.literals.append(len(flags))
        self.terms += program.terms
        self.on_true += program.on_true
        self.on_false += program.on_false
        self.cover += flags
        self._add_change(number, ts_us, event.id, True)
        self.kinds.append(kind.number)
        self.ks.append(k)
        self.begin.append(seq)
        self.expires.append(expires)
        self.regions.append(region.kind)
        self.boxes.append(region.box)
        self.shapes += region.shape
        self.shape_lengths.append(len(region.shape))
        for name, value in own.items():
            column = self.own.setdefault(kind.number, {}).setdefault(name, [])
            column += value if name.startswith(PER_LITERAL) else (value,)

    def unsubscribe(self, number: int, ts_us: int, name: str) -> None:
        """Add the end of a subscription."""
        self._add_change(number, ts_us, name, False)

    def _add_change(self, number: int, ts_us: int, name: str, subscribes: bool) -> None:
        self.events.append(number)
        self.times.append(ts_us)
        self.ids.append(name.encode("utf-8"))
        self.subscribes.append(subscribes)

    def finish(self) -> ChangeColumns:
        """Return all changes as columns."""
        return ChangeColumns(
            np.array(self.events, np.uint32),
            np.array(self.times, np.int64),
            np.array(self.subscribes, np.bool_),
            lengths_to_offsets(np.array([len(name) for name in self.ids], np.int64)),
            np.frombuffer(b"".join(self.ids), np.uint8),
            self._rows(),
        )

    def _rows(self) -> SubscriptionRows:
        """Return the rows of all added subscriptions, without their ids."""
        if not self.begin:
            return no_rows()
        known = {term: number for number, term in enumerate(dict.fromkeys(self.terms))}
        hashes = self.analyzer.hash_terms(list(known))
        numbers = np.fromiter((known[t] for t in self.terms), np.int64, len(self.terms))
        terms = hashes[numbers] if numbers.size else np.empty(0, np.uint64)
        return SubscriptionRows(
            kind=np.array(self.kinds, np.uint8),
            k=np.array(self.ks, np.uint16),
            begin_seq=np.array(self.begin, np.int64),
            expires_us=np.array(self.expires, np.int64),
            id_hash=np.zeros(len(self.begin), np.uint64),
            id_offsets=np.zeros(len(self.begin) + 1, np.int64),
            id_bytes=np.empty(0, np.uint8),
            region_kind=np.array(self.regions, np.uint8),
            box=np.array(self.boxes, np.float64).reshape(-1, 4),
            shape_offsets=lengths_to_offsets(np.array(self.shape_lengths, np.int64)),
            shape=np.array(self.shapes, np.float64),
            cover_mode=np.array(self.modes, np.uint8),
            literal_offsets=lengths_to_offsets(np.array(self.literals, np.int64)),
            literal_term=terms,
            literal_true=np.array(self.on_true, np.int16),
            literal_false=np.array(self.on_false, np.int16),
            literal_cover=np.array(self.cover, np.uint8),
            own={kind: make_own(kind, values) for kind, values in self.own.items()},
        )


class ChangeColumns(NamedTuple):
    """Changes in log order; `rows` has the rows of those that subscribe, in the same order.

    The ids of the rows are empty until `finish_rows` fills them in.
    """

    event: U32
    ts_us: I64
    subscribes: Bools
    id_offsets: I64
    id_bytes: U8
    rows: SubscriptionRows


def plain_changes(
    raw: U8, offsets: I64, lines: U32, first_seq: int, analyzer: Analyzer, reach_m: float
) -> tuple[ChangeColumns, U32]:
    """Read the plain changes among `lines`; return them and the other lines.

    `reach_m` is the default reach of kinds that weigh their terms. 0 leaves these to the strict
    decoder, which is needed with a lexicon, because here every idf is 1, and with stems, because
    terms must be in order.
    """
    found, slow = scan_changes(
        raw, offsets, lines, analyzer.k0, analyzer.k1, analyzer.term_map(), reach_m
    )
    id_offsets, id_bytes = slices_to_buffer(
        read_only(raw), read_only(found.id_start), read_only(found.id_end)
    )
    box = found.region
    circles = found.region_kind == CIRCLE
    shape = box[circles, :3].reshape(-1)
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
        shape_offsets=lengths_to_offsets(3 * circles.astype(np.int64)),
        shape=shape,
        cover_mode=found.cover_mode,
        literal_offsets=found.literal_offsets,
        literal_term=found.literal_term,
        literal_true=found.literal_true,
        literal_false=found.literal_false,
        literal_cover=np.ones(found.literal_term.size, np.uint8),
        own=_read_own(found),
    )
    return ChangeColumns(
        found.line, found.ts_us, found.subscribes, id_offsets, id_bytes, rows
    ), slow


def _read_own(found: PlainChanges) -> dict[int, Any]:
    """Return the own columns of each kind among the rows."""
    own = {}
    for number in np.flatnonzero(np.bincount(found.kind)).tolist():
        kind = kind_numbered(number)
        if kind.own_columns:
            of_kind = found.kind == number
            numbers = PlainNumbers(*np.ascontiguousarray(found.numbers[of_kind].T))
            own[number] = kind.read_plain(numbers, np.diff(found.literal_offsets)[of_kind])
    return own


def join_changes(one: ChangeColumns, other: ChangeColumns) -> ChangeColumns:
    """Merge two sets of changes in log order."""
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


def finish_rows(changes: ChangeColumns, analyzer: Analyzer) -> tuple[SubscriptionRows, U64, I32]:
    """Return rows with ids, the hashes of all changes' ids, and the row of each change or -1."""
    hashes = slices_hash(
        read_only(changes.id_bytes),
        read_only(changes.id_offsets[:-1]),
        read_only(changes.id_offsets[1:]),
        analyzer.k0,
        analyzer.k1,
    )
    added = np.flatnonzero(changes.subscribes)
    id_offsets, positions = take_slices(changes.id_offsets, added)
    rows = changes.rows._replace(
        id_hash=hashes[added], id_offsets=id_offsets, id_bytes=changes.id_bytes[positions]
    )
    numbers = np.where(changes.subscribes, np.cumsum(changes.subscribes) - 1, -1)
    return rows, hashes, numbers.astype(np.int32)
