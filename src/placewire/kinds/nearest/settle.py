"""Apply the candidates of a batch to the results of `nearest` subscriptions, in order of seq.

Workers filtered by the circles of the last commit; settling compares every candidate with the
result as of its seq. Rows that began in the batch have no circles yet: they are matched with the
batch's objects in chunks of the log that grow as the circles shrink.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from placewire.ingest.clock import BlockFacts, object_nows, object_seqs
from placewire.kernels.jit import read_only
from placewire.kernels.space.circles import radii_to_limits
from placewire.kinds.candidates import ObjectBlock, Target
from placewire.kinds.nearest.index import RowPartition
from placewire.kinds.nearest.match import LogChunks, find_near, probe_some, scan_near
from placewire.kinds.nearest.results import NearestEntrants, NearestResults, no_neighbours
from placewire.kinds.nearest.rows import nearest_columns
from placewire.kinds.object_ids import ResultObjectFiles, read_batch_objects, take_texts
from placewire.kinds.shard import Changed, SettleBatch, Shard, began_before, read_candidates
from placewire.model.arrays import F64, I64, U32
from placewire.model.subscriptions import (
    SubscriptionRows,
    concat_columns,
    lengths_to_offsets,
    take_columns,
)
from placewire.segments.segment import Segment, make_segment


class Entered(NamedTuple):
    """Objects that entered results of one segment's rows; `dropped` is a seq, or -1.

    `object` is numbered through all blocks of the batch, in order.
    """

    rows: SubscriptionRows
    row: U32
    seq: I64
    object: I64
    distance: F64
    dropped: I64


class _Candidates(NamedTuple):
    """Candidates of one segment's rows, in any order."""

    row: U32
    seq: I64
    object: I64
    distance: F64


def first_objects(facts: Sequence[BlockFacts]) -> I64:
    """Return the number of each block's first object among all objects of the batch."""
    return lengths_to_offsets(np.array([f.arrays["object.event"].size for f in facts], np.int64))


def enter_candidates(shard: Shard, batch: SettleBatch) -> Entered | None:
    """Apply the workers' candidates to the committed rows of one shard."""
    bases = first_objects(batch.facts)
    found = []
    for candidate in read_candidates(shard, batch):
        assert candidate.measure is not None
        objects = candidate.objects.astype(np.int64)
        found.append(
            _Candidates(
                candidate.rows,
                object_seqs(batch.facts[candidate.block])[objects],
                bases[candidate.block] + objects,
                candidate.measure,
            )
        )
    if not found:
        return None
    return _enter(shard.live.segment.rows, shard.live.results, concat_columns(found))


def _enter(rows: SubscriptionRows, results: NearestResults, found: _Candidates) -> Entered:
    """Sort candidates and apply them."""
    first = int(found.seq.min()) if found.seq.size else 0
    since = (found.seq - first).astype(np.uint64)  # a batch has fewer than 2^32 events
    order = np.argsort((found.row.astype(np.uint64) << np.uint64(32)) | since)
    found = take_columns(found, order)
    entered, dropped = results.enter(NearestEntrants(found.row, found.seq, found.distance))
    return Entered(rows, *take_columns(found, entered), dropped[entered])


def enter_new_rows(
    kind: int,
    facts: Sequence[BlockFacts],
    rows: SubscriptionRows,
    row_end: I64,
    deal: RowPartition | None = None,
    scan: bool = False,
) -> tuple[Segment, Entered | None]:
    """Apply the batch's objects to rows that began in it; return their segment too."""
    segment = make_segment(kind, rows, no_neighbours(rows.k))
    results = NearestResults(
        segment.held, segment.index.radius, nearest_columns(rows).within_m, (), no_file
    )
    bases = first_objects(facts)
    parts = []
    first = int(rows.begin_seq.min())
    for fact, base in zip(facts, bases.tolist(), strict=False):
        chunks = LogChunks(fact.arrays["object.event"], max(first - fact.first_seq, 0))
        for picked in chunks:
            found = meet_new_rows(fact, base, picked, segment, results, row_end, scan)
            chunks.found(int(found.row.size))
            if found.row.size:
                parts.append(_enter(rows, results, found))
            if results.stale and chunks.left:
                segment = make_segment(kind, rows, results.neighbours)
                results.indexed_area = results.area
    segment = make_segment(kind, rows, results.neighbours, deal)
    if not parts:
        return segment, None
    return segment, Entered(rows, *(np.concatenate(c) for c in list(zip(*parts, strict=True))[1:]))


def meet_new_rows(
    fact: BlockFacts,
    base: int,
    picked: I64,
    segment: Segment,
    results: NearestResults,
    row_end: I64,
    scan: bool,
) -> _Candidates:
    """Find candidates among some objects of a block, by the current circles."""
    a = fact.arrays
    block = ObjectBlock(
        a["object.code"],
        a["object.lon"],
        a["object.lat"],
        object_nows(fact),
        a["object.term_offsets"],
        a["object.terms"],
    )
    target = Target(segment, thresholds=read_only(radii_to_limits(read_only(results.radius))))
    found = (scan_near if scan else find_near)(probe_some(block, picked), target)
    assert found.measure is not None
    objects = picked[found.object]
    stand = began_before(fact, objects, found.row, segment.rows, row_end)
    seqs = object_seqs(fact)[objects]
    return _Candidates(found.row[stand], seqs[stand], base + objects[stand], found.measure[stand])


def no_file(name: str) -> Path:
    raise AssertionError(f"new rows have no deltas, got {name}")


def name_entrants(
    batch: int,
    facts: Sequence[BlockFacts],
    entered: Sequence[Entered],
    result_objects: ResultObjectFiles,
) -> list[Changed]:
    """The updates of a batch, and store the ids of objects that entered for later updates."""
    entered = [part for part in entered if part.row.size]
    if not entered:
        return []
    names = read_batch_objects(facts)
    newcomers = np.unique(np.concatenate([part.object for part in entered]))
    result_objects.add(batch, names.take(newcomers[np.argsort(names.seq[newcomers])]))
    return [
        Changed(
            part.seq,
            *take_texts(part.rows.id_offsets, part.rows.id_bytes, part.row),
            False,
            np.arange(part.row.size + 1),
            names.take(part.object),
            part.distance,
            lengths_to_offsets((part.dropped >= 0).astype(np.int64)),
            result_objects.find(part.dropped[part.dropped >= 0]),
        )
        for part in entered
    ]
