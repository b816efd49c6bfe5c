"""The boolean plan in force: made from a sample, saved in the manifest, changed between batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from placewire.model.errors import Unusable
from placewire.plans.boolean.grid import plan_stripes
from placewire.plans.boolean.methods import METHODS, make_plan
from placewire.plans.cost.calibrate import calibrate
from placewire.plans.cost.model import LoadModel, read_cost
from placewire.plans.leaves import Leaves
from placewire.plans.names import PLANS, UNPLANNED, is_file
from placewire.plans.rebalance.change import NextPlan, PlanChanger
from placewire.plans.rebalance.dual_plan import PreviousPlan, read_previous
from placewire.plans.rebalance.rebalancer import Rebalancer
from placewire.plans.ref import PlanRef, SavedPlan, read_plan, write_plan
from placewire.plans.route.live_terms import LiveTerms
from placewire.plans.sample.questions import Questions
from placewire.plans.sample.sampler import Sampler
from placewire.segments.live_segment import LiveSegment
from placewire.storage.arrays import write_arrays
from placewire.storage.layout import StateDir

AskOthers = Callable[[], Questions | None]  # what live subscriptions of other kinds ask


class Planner:
    """Keeps the plan, makes it once enough of the log was sampled, and tracks what is live.

    While it is `pending`, objects are routed by stripes of the world, or stay where they were
    read (`auto`). Each plan that comes into force has a version one higher than the last, whatever
    its method and however many workers it has.

    `machines` says on how many machines the workers run, each like this one; it is asked when
    `auto` chooses, since the machines of a cluster come one after another.
    """

    def __init__(
        self,
        state: StateDir,
        name: str,
        workers: int | None,
        saved: dict[str, Any],
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
        self.version = int(saved.get("version", -1)) + 1
        self.pending = True
        self.why = ""
        self.made: int | None = None  # the batch at whose end the plan was made, in this run
        self.leaves: Leaves | None = None
        self.live: LiveTerms | None = None
        self.ref: PlanRef | None = None
        self._known: set[str] = set()  # segments whose terms the live map has
        self.wanted_workers = 0  # as requested
        self.sized = ""  # why the number of workers was changed
        self.asked = saved.get("asked", "")  # the id of the request that was handled last
        own = saved.get("name") == name
        self.by_hand = saved.get("by_hand", "") if own else ""  # the requested method
        same = own and saved.get("workers") == workers
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

    def _resume(self, saved: dict[str, Any]) -> bool:
        """Resume from the last commit; returns whether there was a plan to resume."""
        self.version = int(saved.get("version", 0))
        self.sized = saved.get("sized", "")
        self.wanted_workers = int(saved.get("wanted_workers", 0))
        to_come = "next_why" in saved and "next_workers" not in saved
        changed = "changed" in saved or to_come
        if not changed and self.name not in METHODS and self.name != "auto":
            return False
        self.pending = bool(saved.get("waits", self.version == 0))
        self.why = saved.get("why", "")
        if "cost" in saved:
            self.cost = read_cost(saved["cost"])
        self.changed = saved.get("changed")
        if "file" in saved:
            leaves = read_plan(self.state.file(saved["file"])).leaves
            self._adopt(leaves, saved["file"], saved["live"])
        if "beside" in saved:
            self.previous = read_previous(self.state, self.workers, saved["beside"])
        if to_come:
            file = saved.get("next", "")
            later = read_plan(self.state.file(file)).leaves if file else None
            self.next = NextPlan(later, file, saved["next_why"], "next_beside" in saved)
        return "file" in saved or changed or not self.pending

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
        """Refuse a plan from a file that does not fit this state."""
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
        """Take a plan into force; its files are written at the next commit if it has none."""
        self.leaves = leaves
        self.live = LiveTerms(leaves)
        self._known = set()
        self.ref = PlanRef(self.workers, leaves.summary, file, live)

    def route(self, batch: int, segments: Sequence[LiveSegment]) -> PlanRef | None:
        """The route of the next batch; None when objects stay where they are read."""
        if self.ref is not None and not self.ref.live:
            # A plan that no commit has named yet: a log's first batch, or another plan than before.
            self._write(batch, segments)
        return self.ref

    def _write(self, batch: int, segments: Sequence[LiveSegment]) -> None:
        """Write what has changed of the plan and of what is live under it."""
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

    def prepare(self, batch: int, segments: Sequence[LiveSegment], ask_others: AskOthers) -> str:
        """Make the plan before it is in force; gives its file, if it cuts."""
        if self.pending and self.sampler.enough:
            self._plan(batch, segments, ask_others())
        self._write_plan(batch)
        return "" if self.ref is None else self.ref.file

    def next_version(
        self,
        batch: int,
        segments: Sequence[LiveSegment],
        ask_others: AskOthers = lambda: None,
    ) -> dict[str, Any]:
        """Make or change the plan if it is time; returns its manifest entry."""
        if self.pending and self.sampler.enough:
            self.version += 1
            self._plan(batch, segments, ask_others())
        elif self.next is not None:
            self._switch_plan(batch, segments)
        else:
            self._find_next(batch, segments)
        self._end_previous(segments)
        self._write(batch, segments)
        entry = self._entry()
        return entry if self.previous is None else entry | {"beside": self.previous.entry(segments)}

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

    def _entry(self) -> dict[str, Any]:
        """What the manifest says of the plan."""
        entry: dict[str, Any] = {
            "name": self.name,
            "workers": self.workers,
            "version": self.version,
            "why": self.why,
        }
        if self.pending:
            entry["waits"] = True
        if self.made is not None:
            entry["made"] = self.made
        if self.cost is not None:
            entry["cost"] = self.cost._asdict()
        if self.ref is not None:
            entry |= {"file": self.ref.file, "live": self.ref.live, "method": self.leaves_name}
        if self.changed is not None:
            entry["changed"] = self.changed
        for key in ("asked", "by_hand", "sized", "wanted_workers"):
            if getattr(self, key):
                entry[key] = getattr(self, key)
        if self.next is not None:
            entry["next_why"] = self.next.why
            if self.next.file:
                entry["next"] = self.next.file
            if self.next.dual:
                entry["next_beside"] = True
        return entry

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

    def _plan(self, batch: int, segments: Sequence[LiveSegment], others: Questions | None) -> None:
        """Make the plan of what was seen."""
        self.pending, self.made = False, batch
        found = make_plan(self.method, self.workers, self.sampler, segments, others, self.machines)
        self.cost, self.why = found.cost, found.why
        if found.leaves is not None:
            self._adopt(found.leaves)


def named_plan(name: str) -> SavedPlan | None:
    """The plan of the file `name`, if that is one and not a method's name."""
    return read_plan(Path(name)) if name not in PLANS["boolean"] and is_file(name) else None
