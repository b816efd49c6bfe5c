"""Two plans side by side: an older one for the subscriptions that there were, until few are left.

This is how PS2Stream goes over to a plan that was made anew. Segments go by the plan in whose time
they came; one that others were merged into is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from placewire.plans.leaves import Leaves
from placewire.plans.ref import BesideRef, PlanRef, read_plan
from placewire.segments.live_segment import LiveSegment
from placewire.storage.layout import StateDir
from placewire.storage.manifest import PreviousPlanEntry

FEW = 0.1  # of all live subscriptions: then the older plan is given up


class Beside(NamedTuple):
    """An older plan, and the names of the segments that go by it."""

    plan: PlanRef
    leaves: Leaves
    version: int
    segments: frozenset[str]

    @property
    def ref(self) -> BesideRef:
        return BesideRef(self.plan, tuple(sorted(self.segments)))

    def among(self, segments: Sequence[LiveSegment]) -> list[LiveSegment]:
        """Which of these go by the older plan."""
        return [live for live in segments if live.name in self.segments]

    def few_left(self, segments: Sequence[LiveSegment]) -> bool:
        """Whether the older plan has become a matter of few subscriptions."""
        older, all_in_all = (
            sum(map(count_live, some)) for some in (self.among(segments), segments)
        )
        return older <= FEW * all_in_all

    def without_gone(self, segments: Sequence[LiveSegment]) -> Beside:
        """The same, less the segments that are there no more."""
        return self._replace(segments=frozenset(live.name for live in self.among(segments)))

    def entry(self, segments: Sequence[LiveSegment]) -> PreviousPlanEntry:
        """Return the plan's entry for the manifest."""
        return PreviousPlanEntry(
            method=self.leaves.name,
            version=self.version,
            file=self.plan.file,
            live=self.plan.live,
            segments=sorted(self.segments),
            subscriptions=sum(map(count_live, self.among(segments))),
        )


def read_beside(state: StateDir, workers: int, entry: PreviousPlanEntry) -> Beside:
    """Read the older plan of a manifest."""
    leaves = read_plan(state.file(entry.file)).leaves
    plan = PlanRef(workers, leaves.summary, entry.file, entry.live)
    return Beside(plan, leaves, entry.version, frozenset(entry.segments))


def count_live(live: LiveSegment) -> int:
    return live.segment.rows.total - live.ended
