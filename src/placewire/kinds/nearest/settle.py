"""Entering: candidates of a batch applied to the results of `nearest` subscriptions, by seq.

The workers filtered by the balls of the last commit; here every candidate meets the result as it
is at its seq. Rows that began in the batch have no balls yet: they meet the batch's objects in
stretches of the log that grow as the balls shrink.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.ingest.clock import BlockFacts, object_nows, object_seqs
from placewire.kernels.jit import read_only
from placewire.kernels.space.circles import radii_to_limits
from placewire.kinds.boolean.settle import settle_matches
from placewire.kinds.nearest.index import Deal
from placewire.kinds.nearest.live_results import LiveResults
from placewire.kinds.nearest.match import NearColumns, NearTarget, Stretches, find_near, scan_near
from placewire.kinds.nearest.results import Entrants, no_neighbours
from placewire.model.subscriptions import SubscriptionRows, lengths_to_offsets
from placewire.segments.live_segment import LiveSegment
from placewire.segments.segment import Segment, make_near_segment
from placewire.storage.arrays import open_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import PieceEntry

Ends = tuple[NDArray[np.int64], NDArray[np.int64]]  # rows and the seqs at which they ended


class Entered(NamedTuple):
    """Objects that entered results of one segment's rows; `dropped` is a seq, or -1.

    `object` counts through all blocks of the batch, in order.
    """

    rows: SubscriptionRows
    row: NDArray[np.uint32]
    seq: NDArray[np.int64]
    object: NDArray[np.int64]
    distance: NDArray[np.float64]
    dropped: NDArray[np.int64]


class _Candidates(NamedTuple):
    """Candidates of one segment's rows, in any order."""

    row: NDArray[np.uint32]
    seq: NDArray[np.int64]
    object: NDArray[np.int64]
    distance: NDArray[np.float64]


def first_objects(facts: Sequence[BlockFacts]) -> NDArray[np.int64]:
    """The number of each block's first object among all of the batch."""
    return lengths_to_offsets(np.array([f.arrays["object.event"].size for f in facts], np.int64))


def enter_candidates(
    state: StateDir,
    facts: Sequence[BlockFacts],
    live: LiveSegment,
    pieces: Sequence[PieceEntry],
    ends: Ends,
) -> Entered | None:
    """Apply what the workers found for the committed rows of one segment."""
    assert live.results is not None
    bases = first_objects(facts)
    found = []
    for piece in pieces:
        fact = facts[piece.block]
        stored = open_arrays(state.file(piece.file)).arrays
        objects, rows, distance = (
            stored[f"{piece.prefix}.{name}"] for name in ("object", "row", "distance")
        )
        stand = settle_matches(fact, objects, rows, live.segment.rows.expires_us, *ends)
        objects = objects[stand].astype(np.int64)
        found.append(
            _Candidates(
                rows[stand], object_seqs(fact)[objects], bases[piece.block] + objects,
                distance[stand],
            )
        )  # fmt: skip
    if not found:
        return None
    together = _Candidates(*(np.concatenate(column) for column in zip(*found, strict=True)))
    return _enter(live.segment.rows, live.results, together)


def _enter(rows: SubscriptionRows, results: LiveResults, found: _Candidates) -> Entered:
    """Put candidates in order and let them enter."""
    first = int(found.seq.min()) if found.seq.size else 0
    since = (found.seq - first).astype(np.uint64)  # a batch has fewer than 2^32 events
    order = np.argsort((found.row.astype(np.uint64) << np.uint64(32)) | since)
    found = _Candidates(
        found.row[order], found.seq[order], found.object[order], found.distance[order]
    )
    entered, dropped = results.enter(Entrants(found.row, found.seq, found.distance))
    return Entered(
        rows,
        found.row[entered],
        found.seq[entered],
        found.object[entered],
        found.distance[entered],
        dropped[entered],
    )


def enter_new_rows(
    facts: Sequence[BlockFacts],
    rows: SubscriptionRows,
    row_end: NDArray[np.int64],
    deal: Deal | None = None,
    scan: bool = False,
) -> tuple[Segment, Entered | None]:
    """Let the batch's objects enter the results of its own rows; gives their segment too."""
    segment = make_near_segment(rows, no_neighbours(rows.k))
    results = LiveResults(segment, [], no_file)
    bases = first_objects(facts)
    parts = []
    first = int(rows.begin_seq.min())
    for fact, base in zip(facts, bases.tolist(), strict=False):
        stretches = Stretches(fact.arrays["object.event"], max(first - fact.first_seq, 0))
        for picked in stretches:
            found = meet_new_rows(fact, base, picked, segment, results, row_end, scan)
            stretches.found(int(found.row.size))
            if found.row.size:
                parts.append(_enter(rows, results, found))
            if results.stale and stretches.left:
                segment = make_near_segment(rows, results.neighbours)
                results.indexed_area = results.area
    segment = make_near_segment(rows, results.neighbours, deal)
    if not parts:
        return segment, None
    return segment, Entered(rows, *(np.concatenate(c) for c in list(zip(*parts, strict=True))[1:]))


def meet_new_rows(
    fact: BlockFacts,
    base: int,
    picked: NDArray[np.int64],
    segment: Segment,
    results: LiveResults,
    row_end: NDArray[np.int64],
    scan: bool,
) -> _Candidates:
    """Candidates among some objects of a block, by the balls as they are."""
    a = fact.arrays
    columns = NearColumns(
        a["object.code"],
        a["object.lon"],
        a["object.lat"],
        object_nows(fact),
        a["object.term_offsets"],
        a["object.terms"],
    )
    target = NearTarget(segment, (0,), read_only(radii_to_limits(results.radius)))
    found = (scan_near if scan else find_near)(columns.probe(picked), target)
    assert found.distance is not None
    objects = picked[found.object]
    seqs = object_seqs(fact)[objects]
    stand = (seqs > segment.rows.begin_seq[found.row]) & (seqs < row_end[found.row])
    if fact.clock.refused_event.size:
        stand &= ~np.isin(a["object.event"], fact.clock.refused_event)[objects]
    return _Candidates(found.row[stand], seqs[stand], base + objects[stand], found.distance[stand])


def no_file(name: str) -> Path:
    raise AssertionError(f"new rows have no deltas, got {name}")
