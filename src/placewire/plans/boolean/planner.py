"""The planner of leaves: makes the `boolean` plan, saves it in the manifest and changes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from placewire.model.errors import Unusable
from placewire.model.kinds import BOOLEAN, TRENDING
from placewire.plans.boolean.methods import METHODS, make_plan
from placewire.plans.boolean.space_methods import plan_stripes
from placewire.plans.cost.model import LoadModel, calibrate, read_cost
from placewire.plans.leaves import Leaves
from placewire.plans.names import UNPLANNED, named_plan
from placewire.plans.rebalance.change import NextPlan, PlanChanger, PreviousPlan, read_previous
from placewire.plans.rebalance.rebalancer import Rebalancer
from placewire.plans.route.leaf_route import PlanRef, SavedPlan, read_plan, write_plan
from placewire.plans.route.live_terms import LiveTerms
from placewire.plans.sample.questions import ask_trending
from placewire.plans.sample.sampler import Sampler
from placewire.segments.live import LiveSegments
from placewire.segments.live_segment import LiveSegment
from placewire.storage.arrays import write_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import LeafPlanEntry, NextPlanEntry


class LeafPlanner:
    """Makes the plan once enough of the log was sampled, and tracks the terms live under it.

    While it is `pending`, objects are routed by stripes of the world, or matched in place (`auto`).
    Versions increase by one with each plan, whatever its method and number of workers.

    `machines` counts the machines that the workers run on. It is called when `auto` chooses,
    because the machines of a cluster join one by one.
    """

    kind = BOOLEAN

    def __init__(
        self,
        state: StateDir,
        name: str,
        workers: int | None,
        saved: LeafPlanEntry,
        key: tuple[int, int],
        sampler: Sampler,
        rebalancer: Rebalancer | None = None,
    ) -> None:
        plan = named_plan(name)
        if workers is None:
            workers = 1 if plan is None else plan.leaves.workers
        self.state = state
        self.name = name
        self.workers = workers
        self.key = key
        self.sampler = sampler
        self.rebalancer = rebalancer
        self.changer = PlanChanger(state, workers, key, sampler, rebalancer)
        self.next: NextPlan | None = None  # comes into force with the next commit
        self.previous: PreviousPlan | None = None
        self.changed: int | None = None  # the batch at whose end the plan was adjusted last
        self.cost: LoadModel | None = None  # of the plan, once one was made by it
        self.machines: Callable[[], int] = lambda: 1
        self.version = saved.version + 1
        self.pending = True
        self.why = ""
        self.made: int | None = None  # the batch at whose end the plan was made, in this run
        self.leaves: Leaves | None = None
        self.live: LiveTerms | None = None
        self.ref: PlanRef | None = None
        self._known: set[str] = set()  # segments whose terms the live map has
        self.wanted_workers = 0  # as requested
        self.sized = ""  # why the number of workers was changed
        self.asked = saved.asked  # the id of the request that was handled last
        own = saved.name == name
        self.by_hand = saved.by_hand if own else ""  # the requested method
        same = own and saved.workers == workers
        if same and self._resume(saved):
            return
        self._start(None if self.by_hand else plan)

    def _start(self, plan: SavedPlan | None) -> None:
        """Start without a sample."""
        name = self.method
        if name in UNPLANNED:
            self.pending = False
        elif plan is not None:
            self.pending = False
            self._check_named(plan)
            self.cost = plan.cost
            self._adopt(plan.leaves)
        elif name != "auto":
            self._adopt(plan_stripes(self.workers))
        if not self.pending:
            self.version = max(self.version, 1)

    def _resume(self, saved: LeafPlanEntry) -> bool:
        """Resume from the last commit; returns whether there was a plan to resume."""
        self.version = saved.version
        self.sized = saved.sized
        self.wanted_workers = saved.wanted_workers
        to_come = saved.next if saved.next is not None and saved.next.workers is None else None
        changed = saved.changed is not None or to_come is not None
        if not changed and self.name not in METHODS and self.name != "auto":
            return False
        self.pending = saved.waits
        self.why = saved.why
        if saved.cost is not None:
            self.cost = read_cost(saved.cost)
        self.changed = saved.changed
        if saved.file:
            leaves = read_plan(self.state.file(saved.file)).leaves
            self._adopt(leaves, saved.file, saved.live)
        if saved.previous is not None:
            self.previous = read_previous(self.state, self.workers, saved.previous)
        if to_come is not None:
            file = to_come.file
            later = read_plan(self.state.file(file)).leaves if file else None
            self.next = NextPlan(later, file, to_come.why, to_come.keeps_previous)
        return bool(saved.file) or changed or not self.pending

    @property
    def method(self) -> str:
        """The plan's name, or the requested method."""
        return self.by_hand or self.name

    @property
    def sampling(self) -> bool:
        """Whether all objects of the next batch are wanted for the sample."""
        return self.pending

    @property
    def waiting(self) -> bool:
        """Whether the plan is still to be made."""
        return self.pending

    def _check_named(self, plan: SavedPlan) -> None:
        """Reject a plan file that does not fit this state."""
        if plan.leaves.workers != self.workers:
            raise Unusable(
                f"plan {self.name}: was made for {plan.leaves.workers} workers, got {self.workers}"
            )
        if plan.key != self.key:
            raise Unusable(
                f"plan {self.name}: its terms have another key than those of state"
                f" {self.state.root}; it needs a new state, or one that began with it"
            )

    def _adopt(self, leaves: Leaves, file: str = "", live: str = "") -> None:
        """Put a plan in force; its files are written with the next commit if it has none."""
        self.leaves = leaves
        self.live = LiveTerms(leaves)
        self._known = set()
        self.ref = PlanRef(self.workers, leaves.summary, file, live)

    def route(self, batch: int, segments: Sequence[LiveSegment]) -> PlanRef | None:
        """The route of the next batch; None if objects are matched in place."""
        if self.ref is not None and not self.ref.live:
            # A plan that no commit has named yet: a log's first batch, or another plan than before.
            self._write(batch, segments)
        return self.ref

    def _write(self, batch: int, segments: Sequence[LiveSegment]) -> None:
        """Write the plan and its live terms, where they changed."""
        if self.ref is None or self.leaves is None or self.live is None:
            return
        self._write_plan(batch)
        ref, segments = self.ref, self.own(segments)
        names = {live.name for live in segments}
        fresh = [live for live in segments if live.name not in self._known]
        if fresh or not ref.live:
            if not self._known or self.live.crowded:
                self.live.rebuild(live.segment.rows for live in segments)
            else:
                for live in fresh:
                    self.live.add(live.segment.rows)
                if self.live.crowded:
                    self.live.rebuild(live.segment.rows for live in segments)
            self._known = names
            ref = ref._replace(live=self.state.new_name(batch, "live"))
            write_arrays(self.state.file(ref.live), self.live.tables._asdict())
        self.ref = ref

    def own(self, segments: Sequence[LiveSegment]) -> Sequence[LiveSegment]:
        """Those of the segments that use the plan in force."""
        older = self.previous.segments if self.previous is not None else ()
        return [live for live in segments if live.name not in older]

    def _write_plan(self, batch: int) -> None:
        """Write the plan itself, if it has no file yet."""
        if self.ref is not None and self.leaves is not None and not self.ref.file:
            self.ref = self.ref._replace(file=self.state.new_name(batch, "plan"))
            write_plan(self.state.file(self.ref.file), self.leaves, self.key, self.cost)

    def prepare(self, batch: int, live: LiveSegments) -> str:
        """Make the plan before it is in force; returns its file, if it has leaves."""
        if self.pending and self.sampler.enough:
            self._plan(batch, live)
        self._write_plan(batch)
        return "" if self.ref is None else self.ref.file

    def next_version(self, batch: int, live: LiveSegments) -> LeafPlanEntry:
        """Make or change the plan if it is time; returns its manifest entry."""
        segments = live.of_kind(self.kind)
        if self.pending and self.sampler.enough:
            self.version += 1
            self._plan(batch, live)
        elif self.next is not None:
            self._switch_plan(batch, segments)
        else:
            self._find_next(batch, segments)
        self._end_previous(segments)
        self._write(batch, segments)
        return self._entry(segments)

    def _end_previous(self, segments: Sequence[LiveSegment]) -> None:
        """Drop the previous plan once few subscriptions use it."""
        if self.previous is None:
            return
        self.previous = self.previous.without_removed(segments)
        if self.previous.is_nearly_empty(segments):
            self.previous = None
            self._forget_counts()

    def _find_next(self, batch: int, segments: Sequence[LiveSegment]) -> None:
        """Find the next plan, if one is requested or the loads have drifted."""
        note = self.changer.read_request(self.asked)
        if note is not None:
            self.asked, self.wanted_workers = note.id, note.workers
            if note.plan in METHODS:
                self.cost = self.cost or calibrate().load
            self.next = self.changer.plan_requested(note.plan, batch, segments, self.cost)
            if self.next is not None:
                self.by_hand = note.plan
                return
        if not self.pending and self.leaves is not None and self.previous is None:
            self.next = self.changer.adjust(self.leaves, batch, segments, self.cost)

    def _entry(self, segments: Sequence[LiveSegment]) -> LeafPlanEntry:
        """Return the plan's entry for the manifest."""
        later = self.next
        return LeafPlanEntry(
            name=self.name,
            workers=self.workers,
            version=self.version,
            why=self.why,
            method=self.leaves_name if self.ref is not None else "",
            file=self.ref.file if self.ref is not None else "",
            live=self.ref.live if self.ref is not None else "",
            waits=self.pending,
            made=self.made,
            changed=self.changed,
            cost=self.cost._asdict() if self.cost is not None else None,
            asked=self.asked,
            by_hand=self.by_hand,
            sized=self.sized,
            wanted_workers=self.wanted_workers,
            previous=self.previous.entry(segments) if self.previous is not None else None,
            next=None
            if later is None
            else NextPlanEntry(why=later.why, file=later.file, keeps_previous=later.dual),
        )

    def _switch_plan(self, batch: int, segments: Sequence[LiveSegment]) -> None:
        """Switch to the next plan; live terms are kept where they stay valid."""
        assert self.next is not None
        leaves, file, why, dual = self.next
        if dual:  # the previous plan gets no new segments, and needs all existing ones
            self._write(batch, segments)
        version = self.version
        self.previous = None
        self.version, self.changed, self.why, self.next = self.version + 1, batch, why, None
        self.pending = False
        if leaves is None:
            self.leaves, self.live, self.ref = None, None, None
            return
        live, known, ref = self.live and self.live.move_to(leaves), self._known, self.ref
        if dual and ref is not None and self.leaves is not None:
            names = frozenset(one.name for one in segments)
            self.previous, live = PreviousPlan(ref, self.leaves, version, names), None
        self._adopt(leaves, file)
        if live is not None and ref is not None:
            self.live, self._known = live, known
            self.ref = PlanRef(self.workers, leaves.summary, file, ref.live)
        self._forget_counts()

    def _forget_counts(self) -> None:
        """Reset the counts by leaf."""
        if self.rebalancer is not None and self.leaves is not None:
            self.rebalancer.signals.forget(self.leaves.total, self.workers)

    @property
    def leaves_name(self) -> str:
        return self.leaves.name if self.leaves is not None else self.name

    def _plan(self, batch: int, live: LiveSegments) -> None:
        """Make the plan from the sample."""
        self.pending, self.made = False, batch
        found = make_plan(
            self.method,
            self.workers,
            self.sampler,
            live.of_kind(self.kind),
            ask_trending(live.of_kind(TRENDING)),
            self.machines,
        )
        self.cost, self.why = found.cost, found.why
        if found.leaves is not None:
            self._adopt(found.leaves)
