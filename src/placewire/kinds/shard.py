"""Input and output of settling: a batch, its shards of rows, and their results.

A shard is the unit that is settled independently: rows of one kind with their results, candidates
and ends. Today it is a whole live segment, settled by the process that writes the state.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from placewire.ingest.clock import Advances, BlockFacts, object_nows, object_seqs
from placewire.kinds.candidates import PieceSummary
from placewire.kinds.object_ids import NamedObjects, ResultObjectFiles
from placewire.model.arrays import F64, I64, U8, U32, Array, Bools
from placewire.model.kinds import Partition, RowResults
from placewire.model.subscriptions import SubscriptionRows
from placewire.objects.window import SlidingWindow
from placewire.segments.changes import NEVER_SEQ
from placewire.segments.live import LiveSegments
from placewire.segments.live_segment import LiveSegment
from placewire.segments.segment import Segment
from placewire.storage.arrays import open_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import PieceEntry, StoreEntry

Ends = tuple[I64, I64]  # rows, ascending, and their end seqs
Spread = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


def work_here(work: Callable[[Any], Any], portions: Sequence[Any]) -> list[Any]:
    """Process portions in this process; on Spark they are spread over tasks."""
    return [work(portion) for portion in portions]


class Shard(NamedTuple):
    """Committed rows of one kind, their candidates, and the rows that end in the batch."""

    live: LiveSegment
    pieces: Sequence[PieceSummary]
    ends: Ends

    def end_seqs(self) -> I64:
        """Return the seq at which each row ends, NEVER_SEQ if it does not."""
        seqs = np.full(self.live.segment.rows.total, NEVER_SEQ)
        seqs[self.ends[0]] = self.ends[1]
        return seqs


@dataclass
class SettleBatch:
    """One batch as its shards see it."""

    number: int
    state: StateDir
    facts: list[BlockFacts]
    block_ends: list[int]  # the seq after each block
    now_us: int | None  # after the batch
    advances: Advances
    first_seq: int
    store: Sequence[StoreEntry]
    window: SlidingWindow
    live: LiveSegments
    ids: ResultObjectFiles
    scans: frozenset[int]  # kinds that match by scanning
    partition: Partition
    spread: Spread = work_here
    begun: dict[int, Any] = field(default_factory=dict)  # by kind: state shared by its shards

    @property
    def last_seq(self) -> int:
        return max((end - 1 for end in self.block_ends), default=self.first_seq)


class AdmittedRows(NamedTuple):
    """Rows that began in a batch: their segment, settled matches and updates, and results."""

    segment: Segment
    updates: Any = None
    results: RowResults | None = None


class MatchedPiece(NamedTuple):
    """Final matches of one block with one segment that are not yet in a file."""

    block: int
    objects: U32
    rows: U32


class Changed(NamedTuple):
    """Updates of subscriptions: the subscription, its event, and the objects added and dropped.

    Subscriptions are given by their ids; `adds` and `drops` are CSR columns of named objects.
    `measure` has one entry per added object: a score if `scored`, else a distance.
    """

    seq: I64
    id_offsets: I64
    id_bytes: U8
    scored: bool
    add_offsets: I64
    added: NamedObjects
    measure: F64
    drop_offsets: I64
    dropped: NamedObjects


class Reports(NamedTuple):
    """Reports as concatenated JSON lines, with their sort keys."""

    seq: I64
    subscription: list[str]
    at_us: I64
    starts: I64
    text: U8


class KindResults(NamedTuple):
    """A kind's results of one batch: matches, updates and reports.

    `pieces` are matches in files; `matched` are matches to write, each with its segment.
    """

    pieces: Sequence[PieceEntry] = ()
    matched: Sequence[tuple[str, MatchedPiece]] = ()
    changed: Sequence[Changed] = ()
    reports: Sequence[Reports] = ()


def valid_pairs(
    facts: BlockFacts, objects: U32, rows: U32, expires_us: I64, ended_rows: I64, ended_seqs: I64
) -> Bools:
    """Mark pairs of an accepted object and a committed row that was live at that event."""
    valid = np.ones(objects.size, np.bool_)
    if facts.clock.rejected_event.size:
        rejected = np.isin(facts.arrays["object.event"], facts.clock.rejected_event)
        valid &= ~rejected[objects]
    if ended_rows.size:
        at = np.minimum(np.searchsorted(ended_rows, rows), ended_rows.size - 1)
        ends = np.where(ended_rows[at] == rows, ended_seqs[at], NEVER_SEQ)
        valid &= object_seqs(facts)[objects] < ends
    valid &= object_nows(facts)[objects] < expires_us[rows]
    return valid


class Candidate(NamedTuple):
    """The valid candidates of one block for a shard."""

    block: int
    objects: U32
    rows: U32
    measure: Array | None


def read_candidates(shard: Shard, batch: SettleBatch) -> list[Candidate]:
    """Return a shard's candidates by block, without rejected objects and ended rows."""
    found = []
    for summary in shard.pieces:
        piece = summary.piece
        if piece.matches == 0:
            continue
        stored = open_arrays(batch.state.file(piece.file)).arrays
        objects, rows = stored[f"{piece.prefix}.object"], stored[f"{piece.prefix}.row"]
        measure = stored.get(f"{piece.prefix}.measure")
        expires_us = shard.live.segment.rows.expires_us
        valid = valid_pairs(batch.facts[piece.block], objects, rows, expires_us, *shard.ends)
        found.append(
            Candidate(
                piece.block,
                objects[valid],
                rows[valid],
                None if measure is None else measure[valid],
            )
        )
    return found


def began_before(
    fact: BlockFacts,
    objects: NDArray[np.integer[Any]],
    rows: U32,
    of: SubscriptionRows,
    row_end: I64,
) -> Bools:
    """Mark pairs of an accepted object and a row of the same batch that was live at that event."""
    seqs = object_seqs(fact)[objects]
    valid: Bools = (seqs > of.begin_seq[rows]) & (seqs < row_end[rows])
    if fact.clock.rejected_event.size:
        valid &= ~np.isin(fact.arrays["object.event"], fact.clock.rejected_event)[objects]
    return valid


T = TypeVar("T")


def run_in_portions(
    work: Callable[[int, int], list[T]], rows: int, min_rows: int, per_thread: int = 1
) -> list[T]:
    """Call `work(first, last)` on one thread per core, each with at least `min_rows` rows.

    Each thread gets `per_thread` portions. Returns the results in row order.
    """
    threads = max(1, min(os.cpu_count() or 1, rows // min_rows))
    if threads == 1:
        return work(0, rows)
    cuts = np.linspace(0, rows, per_thread * threads + 1).astype(np.int64).tolist()
    with ThreadPoolExecutor(threads) as pool:
        return list(chain.from_iterable(pool.map(work, cuts[:-1], cuts[1:])))
