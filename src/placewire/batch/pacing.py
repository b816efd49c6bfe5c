"""Pacing: how many events the next batch should have, for `nearest` and `relevant` ones' sake."""

from __future__ import annotations

from collections.abc import Sequence

from placewire.plans.messages import BlockSummary, PieceSummary
from placewire.segments.live_segment import LiveSegment

MANY_NEAREST = 50_000
FIRST_ROWS = 2_000
LEAST_SLID = 4_000  # events of a batch that a small window slides through
MOST_LOOKED = 1e9  # postings of `nearest` rows that a batch may look at, some seconds of a core


class Pacer:
    """Remembers how many postings of `nearest` rows an object met in the last batch."""

    def __init__(self) -> None:
        self.looked_an_object: float | None = None

    def cap_rows(self, rows: int, near: Sequence[LiveSegment]) -> int:
        """How many of the `rows` events that a batch may have the next should have with objects.

        Many `nearest` subscriptions without results want all that has their terms: a short batch
        lets their balls shrink, and their index follow, before the next one.
        """
        if sum(live.segment.rows.total for live in near) < MANY_NEAREST:
            return rows
        if self.looked_an_object is None:
            return min(rows, FIRST_ROWS)
        return min(rows, max(FIRST_ROWS, int(MOST_LOOKED / max(self.looked_an_object, 1.0))))

    def cap_sliding(self, rows: int, window: float) -> int:
        """The same for `relevant` subscriptions and a window of so many objects.

        In a batch that is longer than the window everything leaves it, every result runs short and
        is searched for, and what came since is searched through for it: a batch as long as the
        window is up to 12 times as fast (130,000 events, window of 3,000).
        """
        return min(rows, max(LEAST_SLID, int(window)))

    def note_looked(
        self,
        near: Sequence[LiveSegment],
        blocks: Sequence[BlockSummary],
        pieces: Sequence[PieceSummary],
    ) -> None:
        """Take a batch in."""
        results = {live.name: live.results for live in near}
        objects = sum(block.objects for block in blocks)
        looked = 0
        for piece in pieces:
            found = results.get(piece.piece.segment)
            if found is not None:
                looked += piece.candidates
                found.note_looked(piece.candidates, piece.passed)
        if near and objects:
            self.looked_an_object = looked / objects
