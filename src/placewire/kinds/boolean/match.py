"""Match blocks of objects in cell order with live segments; find every match once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from placewire.kernels.jit import freeze, read_only
from placewire.kernels.text.hash_table import hashes_to_numbers, terms_to_groups
from placewire.kernels.text.term_sets import objects_to_signatures
from placewire.kinds.boolean.kernels.match import (
    double_buffers,
    make_buffers,
    objects_matching_postings,
    objects_satisfying_rows,
)
from placewire.kinds.boolean.kernels.postings import ANY_TERM, BooleanIndex, predicates_of
from placewire.kinds.boolean.kernels.probes import Cursor, Probe
from placewire.kinds.candidates import ALL_OF_THEM, Matches
from placewire.model.arrays import F64, I64, U8, U32, U64
from placewire.model.subscriptions import NEVER_US
from placewire.segments.segment import NONE_DEAD, Segment


def make_probe(
    codes: U32,
    lon: F64,
    lat: F64,
    now_us: I64,
    term_offsets: I64,
    terms: U64,
    probed: U8 = ALL_OF_THEM,
    alone: U8 = ALL_OF_THEM,
) -> Probe:
    """Group the (object, term) pairs of objects in cell order; every object also has ANY_TERM.

    A router may assign pairs to other workers: only those marked in `probed` and `alone` count.
    """
    codes, lon, lat, now_us, term_offsets, terms = map(
        read_only, (codes, lon, lat, now_us, term_offsets, terms)
    )
    _, numbers, distinct = hashes_to_numbers(terms)
    group_term, group_offsets, group_object = terms_to_groups(
        numbers, distinct, term_offsets, read_only(probed), read_only(alone), ANY_TERM
    )
    return freeze(
        Probe,
        (
            *(group_term, group_offsets, group_object),
            *(codes, lon, lat, now_us, term_offsets, terms),
            objects_to_signatures(term_offsets, terms),
        ),
    )


def match_segment(probe: Probe, segment: Segment, dead: U64 = NONE_DEAD) -> Matches:
    """Match a block with one segment."""
    index: BooleanIndex = segment.index
    rows = predicates_of(segment.rows)
    buffers = make_buffers(int(_expected.per_object * probe.codes.size) + 1_024)
    cursor = Cursor(0, 0, 0, 0, NEVER_US, 0)
    looked = np.zeros(probe.codes.size, np.int64)
    while True:
        cursor = objects_matching_postings(
            probe, index, rows, read_only(dead), buffers, cursor, looked
        )
        if cursor.group == probe.group_term.size:
            break
        buffers = double_buffers(buffers)
    found = cursor.found
    _expected.learn(found, probe.codes.size)
    objects, matched = buffers.object[:found], buffers.row[:found]
    return Matches(objects, matched, cursor.next_expiry_us, cursor.candidates, looked=looked)


class _Expected:
    """The recent number of matches per object, which sizes the buffers for the next block."""

    def __init__(self) -> None:
        self.per_object = 16.0

    def learn(self, matches: int, objects: int) -> None:
        if objects >= 1_000:
            self.per_object = 1.3 * matches / objects


_expected = _Expected()


def scan_segment(probe: Probe, segment: Segment, dead: U64 = NONE_DEAD) -> Matches:
    """Match a block with one segment by testing every pair; tests compare the index with it."""
    rows = predicates_of(segment.rows)
    objects, matched, next_expiry_us = objects_satisfying_rows(probe, rows, read_only(dead))
    return Matches(objects, matched, next_expiry_us, probe.codes.size * segment.rows.total)


def match_all(
    probe: Probe, segments: Iterable[tuple[Segment, U64]], scan: bool = False
) -> list[Matches]:
    """Match a block with every segment, by index or by scanning."""
    if probe.codes.size == 0:
        empty = np.empty(0, np.uint32)
        return [Matches(empty, empty, NEVER_US, 0) for _ in segments]
    match = scan_segment if scan else match_segment
    return [match(probe, segment, dead) for segment, dead in segments]
