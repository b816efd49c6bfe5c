"""Changes that only the strict reader understands: regions, expressions and terms to columns."""

from __future__ import annotations

from operator import attrgetter

import numpy as np

from placewire.engine.changecolumns import ChangeColumns
from placewire.model.errors import InvalidEvent
from placewire.model.events import UNSET, SubscribeEvent, compact_data
from placewire.model.expression import COVER_ANY, compile_expression
from placewire.model.regions import NOWHERE_SPECIAL, read_region
from placewire.model.subscriptions import (
    NEVER_US,
    SubscriptionRows,
    lengths_to_offsets,
    no_rows,
)
from placewire.model.times import parse_timestamp
from placewire.text.analyzer import Analyzer
from placewire.text.query import parse_where

KINDS = ("boolean", "nearest", "relevant", "trending")
BOOLEAN_FIELDS = frozenset({"id", "ts", "kind", "expires", "data", "region", "where"})
FOREIGN_FIELDS = tuple(
    name for name in SubscribeEvent.__struct_fields__ if name not in BOOLEAN_FIELDS
)

foreign = attrgetter(*FOREIGN_FIELDS)
UNSET_FIELDS = (UNSET,) * len(FOREIGN_FIELDS)


class ChangesBuilder:
    """Collects the changes of one block; terms are hashed together at the end."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.events: list[int] = []
        self.times: list[int] = []
        self.subscribes: list[bool] = []
        self.begin: list[int] = []
        self.expires: list[int] = []
        self.ids: list[bytes] = []
        self.kinds: list[int] = []
        self.boxes: list[tuple[float, float, float, float]] = []
        self.shapes: list[float] = []
        self.shape_lengths: list[int] = []
        self.modes: list[int] = []
        self.literals: list[int] = []
        self.terms: list[str] = []
        self.on_true: list[int] = []
        self.on_false: list[int] = []
        self.cover: list[int] = []

    def subscribe(self, number: int, ts_us: int, seq: int, event: SubscribeEvent) -> None:
        """Add one subscription; raises InvalidEvent and leaves the builder as it was."""
        check_kind(event)
        if event.region is UNSET and event.where is UNSET:
            raise InvalidEvent(f"subscription {event.id!r}: needs a region or a where, got neither")
        try:
            expires = NEVER_US if event.expires is UNSET else read_expires(event.expires)
            region = NOWHERE_SPECIAL if event.region is UNSET else read_region(event.region)
            if event.data is not UNSET:
                compact_data(event.data)
            if event.where is not UNSET:
                program = compile_expression(parse_where(event.where, self.analyzer.tokens))
        except InvalidEvent as error:
            raise InvalidEvent(f"subscription {event.id!r}: {error}") from None
        if event.where is UNSET:
            self.modes.append(COVER_ANY)
            self.literals.append(0)
        else:
            flags = [0] * len(program.terms)
            for literal in program.cover:
                flags[literal] = 1
            self.modes.append(program.cover_mode)
            self.literals.append(len(flags))
            self.terms += program.terms
            self.on_true += program.on_true
            self.on_false += program.on_false
            self.cover += flags
        self._note(number, ts_us, event.id, True)
        self.begin.append(seq)
        self.expires.append(expires)
        self.kinds.append(region.kind)
        self.boxes.append(region.box)
        self.shapes += region.shape
        self.shape_lengths.append(len(region.shape))

    def unsubscribe(self, number: int, ts_us: int, name: str) -> None:
        """Add a change that makes no row."""
        self._note(number, ts_us, name, False)

    def _note(self, number: int, ts_us: int, name: str, subscribes: bool) -> None:
        self.events.append(number)
        self.times.append(ts_us)
        self.ids.append(name.encode("utf-8"))
        self.subscribes.append(subscribes)

    def finish(self) -> ChangeColumns:
        """All changes as columns."""
        return ChangeColumns(
            np.array(self.events, np.uint32),
            np.array(self.times, np.int64),
            np.array(self.subscribes, np.bool_),
            lengths_to_offsets(np.array([len(name) for name in self.ids], np.int64)),
            np.frombuffer(b"".join(self.ids), np.uint8),
            self._rows(),
        )

    def _rows(self) -> SubscriptionRows:
        """All added subscriptions, without their ids."""
        if not self.begin:
            return no_rows()
        known = {term: number for number, term in enumerate(dict.fromkeys(self.terms))}
        hashes = self.analyzer.hash_terms(list(known))
        numbers = np.fromiter((known[t] for t in self.terms), np.int64, len(self.terms))
        return SubscriptionRows(
            begin_seq=np.array(self.begin, np.int64),
            expires_us=np.array(self.expires, np.int64),
            id_hash=np.zeros(len(self.begin), np.uint64),
            id_offsets=np.zeros(len(self.begin) + 1, np.int64),
            id_bytes=np.empty(0, np.uint8),
            region_kind=np.array(self.kinds, np.uint8),
            box=np.array(self.boxes, np.float64).reshape(-1, 4),
            shape_offsets=lengths_to_offsets(np.array(self.shape_lengths, np.int64)),
            shape=np.array(self.shapes, np.float64),
            cover_mode=np.array(self.modes, np.uint8),
            literal_offsets=lengths_to_offsets(np.array(self.literals, np.int64)),
            literal_term=hashes[numbers] if numbers.size else np.empty(0, np.uint64),
            literal_true=np.array(self.on_true, np.int16),
            literal_false=np.array(self.on_false, np.int16),
            literal_cover=np.array(self.cover, np.uint8),
        )


def read_expires(text: str) -> int:
    """The time at which a subscription expires."""
    try:
        return parse_timestamp(text)
    except InvalidEvent as error:
        raise InvalidEvent(f"expires: {error}") from None


def check_kind(event: SubscribeEvent) -> None:
    """Only boolean subscriptions, with only their own fields."""
    if event.kind != "boolean":
        if event.kind in KINDS:
            raise InvalidEvent(
                f"subscription {event.id!r}: kind {event.kind!r} is not supported yet"
            )
        raise InvalidEvent(
            f"subscription {event.id!r}: kind must be one of {', '.join(KINDS)}, got {event.kind!r}"
        )
    if foreign(event) == UNSET_FIELDS:
        return
    for name in FOREIGN_FIELDS:
        if getattr(event, name) is not UNSET:
            raise InvalidEvent(
                f"subscription {event.id!r}: a boolean subscription has no field {name!r}"
            )
