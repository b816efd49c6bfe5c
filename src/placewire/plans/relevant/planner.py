"""The plan of `relevant` subscriptions: which worker has which of their postings.

A plan is made once enough of the log was seen; until then rows are dealt out by the hash of their
id. A row whose threshold sinks is indexed anew, and dealt out anew with it: that is when a loose
prefix grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.space.cells import codes_to_points
from placewire.kinds.relevant.index import TermPartition
from placewire.model.subscriptions import RELEVANT, SubscriptionRows, concat_rows, take_rows
from placewire.plans.boolean.methods import memory_of_machine
from placewire.plans.cost.calibrate import calibrate
from placewire.plans.cost.choice import spread_workers
from placewire.plans.ref import RelevantRef
from placewire.plans.relevant.choice import choose_relevant
from placewire.plans.relevant.level import level_rule
from placewire.plans.relevant.methods import (
    RELEVANT_METHODS,
    RelevantRule,
    RelevantSample,
    arrays_to_rule,
    plan_relevant,
    rule_to_arrays,
)
from placewire.plans.route.term_route import LiveLiterals
from placewire.plans.row_planner import DealingPlanner
from placewire.plans.sample.sampler import Sampler
from placewire.segments.compaction import divide_by
from placewire.segments.live import LiveSegments
from placewire.segments.live_segment import LiveSegment
from placewire.segments.segment import whole_rows
from placewire.storage.arrays import open_arrays, write_arrays
from placewire.storage.layout import StateDir


class RelevantPlanner(DealingPlanner):
    """Deals postings out, and keeps the map of the terms that each worker has."""

    methods = RELEVANT_METHODS
    kind = RELEVANT

    def __init__(
        self,
        state: StateDir,
        name: str,
        workers: int,
        saved: dict[str, Any],
        sampler: Sampler,
    ) -> None:
        super().__init__(state, name, workers, sampler)
        self.rule: RelevantRule | None = None
        self.terms = LiveLiterals(workers)
        self.terms_file = ""
        self._known: set[str] = set()  # segments whose postings the map has
        self.sent = self.objects = 0  # objects to workers, and objects
        if self.goes_on(saved):
            self.sent, self.objects = saved.get("sent", 0), saved.get("objects", 0)
            if self.rule_file:
                arrays = open_arrays(state.file(self.rule_file)).arrays
                self.rule = arrays_to_rule(self.method, arrays)

    def deal(self, rows: SubscriptionRows, theta: NDArray[np.int32]) -> TermPartition | None:
        """Who gets the postings of rows; None when nothing is dealt out."""
        if not self.deals:
            return None
        if self.rule is None:
            by_hash = (rows.id_hash % np.uint64(self.workers)).astype(np.int32)
            return TermPartition(self.workers, np.repeat(by_hash, np.diff(rows.literal_offsets)))
        return TermPartition(self.workers, self.rule.deal(rows, theta), self.rule.often(rows))

    def route(self, batch: int, segments: Sequence[LiveSegment]) -> RelevantRef | None:
        """The route of the next batch; None when objects stay where they are read."""
        if not self.deals or not segments:
            return None
        fresh = [live for live in segments if live.name not in self._known]
        if fresh and self._known and not self.terms.crowded:
            for live in fresh:
                self.terms.add(live.segment.rows, dealt_of(live))
        if not self._known or self.terms.crowded:
            self.terms.rebuild((live.segment.rows, dealt_of(live)) for live in segments)
        if fresh or not self.terms_file:
            self.terms_file = self.state.new_name(batch, "terms")
            write_arrays(self.state.file(self.terms_file), {"words": self.terms.words})
        self._known = {live.name for live in segments}
        return RelevantRef(self.workers, self.state.name, self.terms_file)

    def count_sent(self, sent: int, objects: int) -> None:
        """Note how many objects were sent to workers, of how many."""
        if self.deals and self.terms_file:
            self.sent += sent
            self.objects += objects

    def forget_map(self) -> None:
        """Segments were dealt out anew: the map of terms has to be made anew, too."""
        self._known = set()

    def _deal_anew(
        self, batch: int, live: LiveSegments, some: Sequence[LiveSegment], ahead: bool = False
    ) -> None:
        """Write segments again, dealt out as the rule has it now."""
        live.hand_over(batch, some, divide_by(lambda one, rows, held: self.deal(rows, held.theta)))
        if not ahead:
            live.swap_rewrites((RELEVANT,))
            self.forget_map()

    def deal_rest(self, batch: int, live: LiveSegments) -> None:
        """RowPartition out what came for another number of workers while the plan was still to
        come."""
        if self.rule is None:
            return
        live.wait()
        rest = [one for one in live.of_kind(RELEVANT) if dealt_of(one).parts != self.workers]
        if rest:
            self._deal_anew(batch, live, rest)

    def prepare(self, batch: int, live: LiveSegments, now_us: int) -> None:
        """Make the plan before it is in force."""
        self.asked = bool(live.of_kind(RELEVANT))
        if self.asked and self.waits and self.sampler.enough:
            self._plan(batch, live, now_us, ahead=True)

    def next_version(self, batch: int, live: LiveSegments, now_us: int) -> dict[str, Any]:
        """The plan's entry for the manifest: made once enough was seen, and then dealt anew."""
        self.asked = bool(live.of_kind(RELEVANT))
        first = self.waits and self.sampler.enough
        counted = self.drifted() if self.asked and self.method != "hash" else None
        if self.asked and (first or counted is not None):
            self._plan(batch, live, now_us, counted, ahead=counted is not None)
        elif self.deals and any(
            one.segment.index.partition is None for one in live.of_kind(RELEVANT)
        ):
            # They come from a run under another plan.
            live.wait()
            self._deal_anew(batch, live, live.of_kind(RELEVANT))
        entry = self.entry()
        if self.objects:
            entry |= {"sent": self.sent, "objects": self.objects}
        if self.terms_file:
            entry["terms"] = self.terms_file
        return entry

    def _plan(
        self,
        batch: int,
        live: LiveSegments,
        now_us: int,
        counted: NDArray[np.float64] | None = None,
        ahead: bool = False,
    ) -> None:
        """Make the plan of what was seen, or level it by what the workers were counted to do.

        Made `ahead` it comes into force with the next commit.
        """
        live.wait()
        found = live.of_kind(RELEVANT)
        if not found:  # the merge has left none
            return
        chooses = self.name == "auto" and self.waits
        # One that is made before its workers come has had its version from the start.
        self.version += not (ahead and self.waits)
        self.waits, self.made = False, batch
        rows = concat_rows([whole_rows(one.segment) for one in found])
        theta = np.concatenate([one.results.buffers.theta for one in found])
        ended = np.concatenate([one.ended_mask() for one in found])
        alive = np.flatnonzero(~ended & (rows.expires_us > now_us))
        codes, term_offsets, terms = self.sampler.objects.in_order()
        lon, lat = codes_to_points(codes)
        sample = RelevantSample(take_rows(rows, alive), theta[alive], lon, lat, term_offsets, terms)
        if chooses:
            self.method, self.why = choose_relevant(
                sample,
                self.workers,
                calibrate().prices,
                spread_workers(self.workers, self.machines(), memory_of_machine()),
            )
            if not self.deals:
                return
        way = "dealt out"
        if counted is None or self.rule is None:
            self.rule = plan_relevant(self.method, sample, self.workers)
        else:
            words, frequency = np.unique(terms, return_counts=True)
            rule = self.rule._replace(terms=words, frequency=frequency)
            former = self.rule.deal(sample.rows, sample.theta)
            self.rule = level_rule(rule, sample.rows, sample.theta, counted)
            moved = self.rule.deal(sample.rows, sample.theta) != former
            way = f"levelled, {int(moved.sum())} postings handed over"
        self.rule_file = self.state.new_name(batch, "rule")
        write_arrays(self.state.file(self.rule_file), rule_to_arrays(self.rule))
        self._deal_anew(batch, live, found, ahead)
        if not chooses:
            copies = copies_of(sample.rows, self.rule.deal(sample.rows, sample.theta))
            self.why = (
                f"{alive.size} subscriptions {way} by {self.sampler.source},"
                f" each to {copies:.2f} workers"
            )


def dealt_of(live: LiveSegment) -> TermPartition:
    """How a segment's postings are dealt out; if they are not, the first worker has them all."""
    if live.segment.index.partition is not None:
        dealt: TermPartition = live.segment.index.partition
        return dealt
    return TermPartition(1, np.zeros(live.segment.rows.literal_term.size, np.int32))


def copies_of(rows: SubscriptionRows, owner: NDArray[np.int32]) -> float:
    """At how many workers a row has a posting, in the mean."""
    row = np.repeat(np.arange(rows.total), np.diff(rows.literal_offsets))
    posted = owner >= 0
    pairs = np.unique(row[posted] * (int(owner.max(initial=0)) + 1) + owner[posted])
    return float(pairs.size) / max(rows.total, 1)
