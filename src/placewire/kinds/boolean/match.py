"""A worker: objects in cell order against live segments, every match once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kernels.text.hash_table import hashes_to_numbers, terms_to_groups
from placewire.kernels.text.term_sets import objects_to_signatures
from placewire.kinds.boolean.index import BooleanIndex
from placewire.kinds.boolean.kernels.match import DOUBTS, objects_matching_postings
from placewire.kinds.boolean.kernels.postings import ANY_TERM
from placewire.kinds.boolean.scan import scan_rows
from placewire.kinds.candidates import ALL_OF_THEM, Matches
from placewire.model.subscriptions import NEVER_US
from placewire.segments.segment import NONE_DEAD, Segment


class Probe(NamedTuple):
    """A block of objects ready for matching: in cell order, with their pairs grouped by term."""

    group_term: NDArray[np.uint64]
    group_offsets: NDArray[np.int64]
    group_object: NDArray[np.uint32]
    codes: NDArray[np.uint32]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    now_us: NDArray[np.int64]
    term_offsets: NDArray[np.int64]
    terms: NDArray[np.uint64]
    signatures: NDArray[np.uint64]


def make_probe(
    codes: NDArray[np.uint32],
    lon: NDArray[np.float64],
    lat: NDArray[np.float64],
    now_us: NDArray[np.int64],
    term_offsets: NDArray[np.int64],
    terms: NDArray[np.uint64],
    probed: NDArray[np.uint8] = ALL_OF_THEM,
    alone: NDArray[np.uint8] = ALL_OF_THEM,
) -> Probe:
    """Group the (object, term) pairs of objects in cell order; every object has ANY_TERM too.

    A router may leave some pairs to other workers: only those marked in `probed` and `alone` count.
    """
    codes, lon, lat, now_us, term_offsets, terms = map(
        read_only, (codes, lon, lat, now_us, term_offsets, terms)
    )
    _, numbers, distinct = hashes_to_numbers(terms)
    group_term, group_offsets, group_object = terms_to_groups(
        numbers, distinct, term_offsets, read_only(probed), read_only(alone), ANY_TERM
    )
    return Probe(
        group_term=group_term,
        group_offsets=group_offsets,
        group_object=group_object,
        codes=codes,
        lon=lon,
        lat=lat,
        now_us=now_us,
        term_offsets=term_offsets,
        terms=terms,
        signatures=objects_to_signatures(term_offsets, terms),
    )


def match_segment(probe: Probe, segment: Segment, dead: NDArray[np.uint64] = NONE_DEAD) -> Matches:
    """Match a block with one segment."""
    rows = segment.rows
    index: BooleanIndex = segment.index
    longest = int(np.diff(index.cell_offsets).max(initial=0))
    room = max(int(_expected.per_object * probe.codes.size) + 1_024, longest)
    objects, matched = np.empty(room, np.uint32), np.empty(room, np.uint32)
    doubts = max(DOUBTS, longest)
    scratch = np.empty(doubts, np.uint32), np.empty(doubts, np.int64), np.empty(doubts, np.uint8)
    cursor = np.array([0, 0, 0, 0, NEVER_US, 0], np.int64)
    looked = np.zeros(probe.codes.size, np.int64)
    while True:
        objects_matching_postings(
            *probe,
            *index,
            rows.expires_us,
            rows.region_kind,
            rows.box,
            rows.shape_offsets,
            rows.shape,
            rows.literal_offsets,
            rows.literal_term,
            rows.literal_true,
            rows.literal_false,
            rows.literal_cover,
            read_only(dead),
            objects,
            matched,
            *scratch,
            cursor,
            looked,
        )
        if cursor[0] == probe.group_term.size:
            break
        # The room was too small: double it.
        objects, matched = np.append(objects, objects), np.append(matched, matched)
    found = int(cursor[3])
    _expected.learn(found, probe.codes.size)
    return Matches(objects[:found], matched[:found], int(cursor[4]), int(cursor[5]), looked=looked)


class _Expected:
    """How many matches an object has had lately, so that the next block gets enough room."""

    def __init__(self) -> None:
        self.per_object = 16.0

    def learn(self, matches: int, objects: int) -> None:
        if objects >= 1_000:
            self.per_object = 1.3 * matches / objects


_expected = _Expected()


def scan_segment(probe: Probe, segment: Segment, dead: NDArray[np.uint64] = NONE_DEAD) -> Matches:
    """Match a block with one segment by looking at every pair."""
    return Matches(
        *scan_rows(
            probe.lon,
            probe.lat,
            probe.now_us,
            probe.term_offsets,
            probe.terms,
            segment.rows,
            dead,
        )
    )


def match_all(
    probe: Probe, segments: Iterable[tuple[Segment, NDArray[np.uint64]]], scan: bool = False
) -> list[Matches]:
    """Match a block with every segment, by their indexes or by scanning."""
    if probe.codes.size == 0:
        empty = np.empty(0, np.uint32)
        return [Matches(empty, empty, NEVER_US, 0) for _ in segments]
    match = scan_segment if scan else match_segment
    return [match(probe, segment, dead) for segment, dead in segments]
