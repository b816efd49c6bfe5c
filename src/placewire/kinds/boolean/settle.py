"""Settle matches of `boolean` subscriptions: drop stale ones, match the batch's own rows.

Workers match with the segments of the last commit. Settling applies the events of the batch, by seq
and by the clock: it drops matches of rejected objects and of rows that ended or expired before an
object, and matches rows that began in the batch.
"""

from __future__ import annotations

import numpy as np

from placewire.ingest.clock import BlockFacts, object_nows
from placewire.kinds.boolean.match import make_probe, match_all
from placewire.kinds.candidates import PieceSummary
from placewire.kinds.shard import MatchedPiece, SettleBatch, Shard, began_before, valid_pairs
from placewire.model.arrays import I64, U32
from placewire.segments.segment import NONE_DEAD, Segment
from placewire.storage.arrays import open_arrays
from placewire.storage.manifest import PieceEntry


def settle_piece(
    shard: Shard, summary: PieceSummary, batch: SettleBatch
) -> PieceEntry | MatchedPiece:
    """Return the valid matches of one block: the written piece if all are valid."""
    piece = summary.piece
    fact = batch.facts[piece.block]
    unchanged = not shard.ends[0].size and not fact.clock.rejected_event.size
    if unchanged and (batch.now_us is None or summary.next_expiry_us > batch.now_us):
        return piece
    stored = open_arrays(batch.state.file(piece.file)).arrays
    objects, rows = stored[f"{piece.prefix}.object"], stored[f"{piece.prefix}.row"]
    expires_us = shard.live.segment.rows.expires_us
    stand = valid_pairs(fact, objects, rows, expires_us, *shard.ends)
    return piece if stand.all() else MatchedPiece(piece.block, objects[stand], rows[stand])


def match_new_rows(
    facts: BlockFacts, segment: Segment, row_end: I64, scan: bool = False
) -> tuple[U32, U32]:
    """Match a block's objects with the batch's own rows: object u32[m], row u32[m]."""
    arrays = facts.arrays
    if arrays["object.event"].size == 0:
        return np.empty(0, np.uint32), np.empty(0, np.uint32)
    probe = make_probe(
        arrays["object.code"],
        arrays["object.lon"],
        arrays["object.lat"],
        object_nows(facts),
        arrays["object.term_offsets"],
        arrays["object.terms"],
    )
    (found,) = match_all(probe, [(segment, NONE_DEAD)], scan)
    stand = began_before(facts, found.object, found.row, segment.rows, row_end)
    return found.object[stand], found.row[stand]
