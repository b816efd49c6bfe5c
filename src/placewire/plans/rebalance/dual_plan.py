"""Keep the previous plan for existing subscriptions until few of them are left.

This is how PS2Stream switches to a new plan. A segment uses the plan under which it was written; a
merged segment is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from placewire.plans.leaves import Leaves
from placewire.plans.ref import PlanRef, PreviousRef, read_plan
from placewire.segments.live_segment import LiveSegment
from placewire.storage.layout import StateDir
from placewire.storage.manifest import PreviousPlanEntry

FEW = 0.1  # of all live subscriptions: below it the previous plan is dropped


class PreviousPlan(NamedTuple):
    """The previous plan, and the names of the segments that still use it."""

    plan: PlanRef
    leaves: Leaves
    version: int
    segments: frozenset[str]

    @property
    def ref(self) -> PreviousRef:
        return PreviousRef(self.plan, tuple(sorted(self.segments)))

    def select(self, segments: Sequence[LiveSegment]) -> list[LiveSegment]:
        """Those of the segments that use the previous plan."""
        return [live for live in segments if live.name in self.segments]

    def is_nearly_empty(self, segments: Sequence[LiveSegment]) -> bool:
        """Whether few subscriptions still use the previous plan."""
        older, all_in_all = (
            sum(map(count_live, some)) for some in (self.select(segments), segments)
        )
        return older <= FEW * all_in_all

    def without_removed(self, segments: Sequence[LiveSegment]) -> PreviousPlan:
        """The previous plan without segments that no longer exist."""
        return self._replace(segments=frozenset(live.name for live in self.select(segments)))

    def entry(self, segments: Sequence[LiveSegment]) -> PreviousPlanEntry:
        """Return the plan's entry for the manifest."""
        return PreviousPlanEntry(
            method=self.leaves.name,
            version=self.version,
            file=self.plan.file,
            live=self.plan.live,
            segments=sorted(self.segments),
            subscriptions=sum(map(count_live, self.select(segments))),
        )


def read_previous(state: StateDir, workers: int, entry: PreviousPlanEntry) -> PreviousPlan:
    """Read the previous plan of a manifest entry."""
    leaves = read_plan(state.file(entry.file)).leaves
    plan = PlanRef(workers, leaves.summary, entry.file, entry.live)
    return PreviousPlan(plan, leaves, entry.version, frozenset(entry.segments))


def count_live(live: LiveSegment) -> int:
    return live.segment.rows.total - live.ended
