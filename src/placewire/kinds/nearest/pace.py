"""Cap batches for `nearest` subscriptions: short ones while results are still empty."""

from __future__ import annotations

from collections.abc import Sequence

from placewire.kinds.candidates import PieceSummary
from placewire.model.kinds import KindMemory
from placewire.segments.live_segment import LiveSegment

MANY_NEAREST = 50_000
FIRST_ROWS = 2_000
MOST_LOOKED = 1e9  # postings of `nearest` rows that a batch may look at, some seconds of a core


class Pacer(KindMemory):
    """Remembers how many postings of `nearest` rows an object met in the last batch."""

    def __init__(self) -> None:
        self.looked_an_object: float | None = None

    def cap_batch(self, rows: int, live: Sequence[LiveSegment], window: float) -> int:
        """How many of `rows` events the next batch should have.

        Many subscriptions without results want all that has their terms: a short batch lets their
        circles shrink, and their index follow, before the next one.
        """
        if sum(one.segment.rows.total for one in live) < MANY_NEAREST:
            return rows
        if self.looked_an_object is None:
            return min(rows, FIRST_ROWS)
        return min(rows, max(FIRST_ROWS, int(MOST_LOOKED / max(self.looked_an_object, 1.0))))

    def note_matched(
        self, live: Sequence[LiveSegment], objects: int, pieces: Sequence[PieceSummary]
    ) -> None:
        """Record how many postings the objects of a batch met."""
        results = {one.name: one.results for one in live}
        looked = 0
        for piece in pieces:
            found = results.get(piece.piece.segment)
            if found is not None:
                looked += piece.candidates
                found.note_looked(piece.candidates, piece.passed)
        if live and objects:
            self.looked_an_object = looked / objects
