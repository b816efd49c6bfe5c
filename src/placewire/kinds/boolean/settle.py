"""The merger: settle what the workers could not know, and match the batch's own subscriptions.

Workers match with the segments of the last commit. What happened inside the batch is settled here,
by seq and by the clock: objects whose event the clock refused, rows that ended or expired before
an object, and rows that began in the batch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placewire.ingest.clock import BlockFacts, object_nows, object_seqs
from placewire.kinds.boolean.match import make_probe, match_all
from placewire.segments.changes import NEVER_SEQ
from placewire.segments.segment import NONE_DEAD, Segment


def settle_matches(
    facts: BlockFacts,
    objects: NDArray[np.uint32],
    rows: NDArray[np.uint32],
    expires_us: NDArray[np.int64],
    ended_rows: NDArray[np.int64],
    ended_seqs: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Which matches with committed rows stand."""
    stand = np.ones(objects.size, np.bool_)
    if facts.clock.refused_event.size:
        refused = np.isin(facts.arrays["object.event"], facts.clock.refused_event)
        stand &= ~refused[objects]
    if ended_rows.size:
        at = np.minimum(np.searchsorted(ended_rows, rows), ended_rows.size - 1)
        ends = np.where(ended_rows[at] == rows, ended_seqs[at], NEVER_SEQ)
        stand &= object_seqs(facts)[objects] < ends
    stand &= object_nows(facts)[objects] < expires_us[rows]
    return stand


def match_new_rows(
    facts: BlockFacts, segment: Segment, row_end: NDArray[np.int64], scan: bool = False
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Matches of a block's objects with the batch's own rows: object u32[m], row u32[m]."""
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
    seqs = object_seqs(facts)[found.object]
    stand = (seqs > segment.rows.begin_seq[found.row]) & (seqs < row_end[found.row])
    if facts.clock.refused_event.size:
        refused = np.isin(arrays["object.event"], facts.clock.refused_event)
        stand &= ~refused[found.object]
    return found.object[stand], found.row[stand]
