"""The plan in force: made of a sample, kept in the manifest, changed only between two batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.engine.calibrating import calibrate
from placewire.engine.plannames import PLANS, UNPLANNED, is_file
from placewire.engine.planref import PlanRef, SavedPlan, read_plan, write_plan
from placewire.engine.rebalancing import Rebalancer, Source
from placewire.engine.sampling import Sampler
from placewire.engine.worker import make_probe, match_all
from placewire.kernels.cells import codes_to_points
from placewire.model.errors import Unusable
from placewire.model.subscriptions import SubscriptionRows, concat_rows, take_rows
from placewire.plan.adjusting import reweigh
from placewire.plan.cost import LoadModel, read_cost
from placewire.plan.leaves import Leaves
from placewire.plan.methods import METHODS
from placewire.plan.questions import Questions, add_questions
from placewire.plan.reservoir import Columns, Reservoir
from placewire.plan.sample import make_sample
from placewire.plan.uniform import plan_stripes
from placewire.route.choice import choose_plan, spread_workers
from placewire.route.live import LiveTerms
from placewire.route.measures import Objects, measure_plan, post_rows
from placewire.state.arrays import write_arrays
from placewire.state.asking import read_asked
from placewire.state.layout import StateDir
from placewire.state.livesegment import LiveSegment
from placewire.state.segment import whole_rows

SAMPLE_SUBSCRIPTIONS = 1_000_000
OF_ALL_KINDS = ("qt", "quadtree", "text")  # plans whose cost knows queries and other kinds
CANDIDATES = ("grid", "kdtree", "frequency", "kdt", "agrid", "qt")  # of `auto`, beside `shared`


class NextPlan(NamedTuple):
    """An adjusted plan that one commit has named and the next brings into force."""

    leaves: Leaves | None  # None: objects stay where they are read
    file: str
    why: str


class Planner:
    """Holds the plan, makes it once enough of the log was seen, and keeps what is live under it.

    Until then objects are routed by stripes of the world, or stay where they were read (`auto`).

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
        self.next: NextPlan | None = None  # comes into force with the next commit
        self.changed: int | None = None  # the batch at whose end the plan was adjusted last
        self.cost: LoadModel | None = None  # of the plan, once one was made by it
        self.machines: Callable[[], int] = lambda: 1
        self.version = 0
        self.why = ""
        self.made: int | None = None  # the batch at whose end the plan was made, in this run
        self.leaves: Leaves | None = None
        self.live: LiveTerms | None = None
        self.ref: PlanRef | None = None
        self._known: set[str] = set()  # segments whose terms the live map has
        self.retained: Callable[[], Columns] = Reservoir(1).in_order
        self.wanted_workers = 0  # as somebody asks for by hand
        self.sized = ""  # why there are as many workers as there are, if they were changed
        self.asked = saved.get("asked", "")  # the note that was heeded last, and is not again
        own = saved.get("name") == name
        self.by_hand = saved.get("by_hand", "") if own else ""  # the method asked for by hand
        same = own and saved.get("workers") == workers
        if same and self._resume(saved):
            return
        if name in UNPLANNED:
            self.version = 1
        elif plan is not None:
            self.version = 1
            self._check_named(plan)
            self.cost = plan.cost
            self._adopt(plan.leaves)
        elif name != "auto":
            self._adopt(plan_stripes(workers))

    def _resume(self, saved: dict[str, Any]) -> bool:
        """Go on with what the last commit named, unless there is nothing to go on with."""
        changed = "changed" in saved or "next_why" in saved
        if not changed and self.name not in METHODS and self.name != "auto":
            return False
        self.version = int(saved["version"])
        self.why = saved.get("why", "")
        if "cost" in saved:
            self.cost = read_cost(saved["cost"])
        self.changed = saved.get("changed")
        self.sized = saved.get("sized", "")
        if "file" in saved:
            leaves = read_plan(self.state.file(saved["file"])).leaves
            self._adopt(leaves, saved["file"], saved["live"])
        if "next_why" in saved:
            file = saved.get("next", "")
            later = read_plan(self.state.file(file)).leaves if file else None
            self.next = NextPlan(later, file, saved["next_why"])
        return "file" in saved or changed or self.version > 0

    @property
    def sampling(self) -> bool:
        """Whether all objects of the next batch are wanted for the sample."""
        return self.version == 0

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
        ref = self.ref
        if not ref.file:
            ref = ref._replace(file=self.state.new_name(batch, "plan"))
            write_plan(self.state.file(ref.file), self.leaves, self.key, self.cost)
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

    def next_version(
        self,
        batch: int,
        segments: Sequence[LiveSegment],
        ask_others: Callable[[], Questions | None] = lambda: None,
    ) -> dict[str, Any]:
        """The plan's entry for the manifest: made anew once enough events were seen.

        `ask_others` gives what live subscriptions of other kinds ask.
        """
        if self.version == 0 and self.sampler.enough:
            self.made = batch
            self._plan(segments, ask_others())
        elif self.next is not None:
            self._go_over(batch)
        elif not self._heed(batch, segments) and self.version:
            self._rebalance(batch, segments)
        self._write(batch, segments)
        entry: dict[str, Any] = {
            "name": self.name,
            "workers": self.workers,
            "version": self.version,
            "why": self.why,
        }
        if self.made is not None:
            entry["made"] = self.made
        if self.cost is not None:
            entry["cost"] = self.cost._asdict()
        if self.ref is not None:
            entry |= {"file": self.ref.file, "live": self.ref.live, "method": self.leaves_name}
        if self.changed is not None:
            entry["changed"] = self.changed
        if self.asked:
            entry["asked"] = self.asked
        if self.by_hand:
            entry["by_hand"] = self.by_hand
        if self.sized:
            entry["sized"] = self.sized
        if self.next is not None:
            entry["next_why"] = self.next.why
            if self.next.file:
                entry["next"] = self.next.file
        return entry

    def _heed(self, batch: int, segments: Sequence[LiveSegment]) -> bool:
        """Take up a plan that somebody asks for by hand; gives whether there was one."""
        note = read_asked(self.state)
        if note is None or note.id == self.asked:
            return False
        self.asked = note.id
        self.wanted_workers = note.workers
        why = f"{note.plan}, asked for by hand"
        if note.plan == "shared" or note.plan in METHODS:
            self.by_hand = note.plan
        if note.plan == "shared":
            self.next = NextPlan(None, "", why)
        elif note.plan in METHODS:
            self.cost = self.cost or calibrate().load
            objects = self.sampler.take_recent(self.retained)
            sample = make_sample(*objects, live_rows(segments), self.cost.posting_work)
            leaves = METHODS[note.plan](sample, self.workers, self.cost)
            file = self.state.new_name(batch, "plan")
            write_plan(self.state.file(file), leaves, self.key, self.cost)
            self.next = NextPlan(leaves, file, why)
        return self.next is not None

    def _rebalance(self, batch: int, segments: Sequence[LiveSegment]) -> None:
        """See whether the plan wants adjusting; the adjusted one is for the batch after next."""
        if self.rebalancer is None or not self.rebalancer.active or self.leaves is None:
            return
        cost = self.cost or calibrate().load
        found = self.rebalancer.decide(self.leaves, cost, self.source(segments, cost))
        if found is not None:
            file = self.state.new_name(batch, "plan")
            write_plan(self.state.file(file), found.leaves, self.key, self.cost)
            self.next = NextPlan(found.leaves, file, self.rebalancer.why)

    def source(self, segments: Sequence[LiveSegment], cost: LoadModel) -> Source:
        """What a decision about the plan may ask for, each made once."""
        rows = cache(lambda: live_rows(segments))
        objects = cache(lambda: Objects(*self.sampler.take_recent(self.retained)))
        whole = cache(lambda: make_sample(*objects(), rows(), cost.posting_work))
        method = METHODS.get(self.leaves_name)
        return Source(
            objects,
            cache(lambda: post_rows(rows())),
            cache(lambda: reweigh(whole(), look_up(objects(), segments), cost.posting_work)),
            None if method is None else lambda: method(whole(), self.workers, cost),
        )

    def _go_over(self, batch: int) -> None:
        """Take the adjusted plan into force; what is live under it is kept where it stays right."""
        assert self.next is not None
        leaves, file, why = self.next
        self.version, self.changed, self.why, self.next = self.version + 1, batch, why, None
        if leaves is None:
            self.leaves, self.live, self.ref = None, None, None
            return
        live, known, ref = self.live and self.live.under(leaves), self._known, self.ref
        self._adopt(leaves, file)
        if live is not None and ref is not None:
            self.live, self._known = live, known
            self.ref = PlanRef(self.workers, leaves.summary, file, ref.live)
        if self.rebalancer is not None:
            self.rebalancer.signals.forget(leaves.total, self.workers)

    @property
    def leaves_name(self) -> str:
        return self.leaves.name if self.leaves is not None else self.name

    def _plan(self, segments: Sequence[LiveSegment], others: Questions | None) -> None:
        """Make the plan of what was seen."""
        self.version = 1
        cost, prices, _ = calibrate()
        objects, rows = Objects(*self.sampler.objects.in_order()), live_rows(segments)
        self.cost = cost = cost.in_stream(int(objects.codes.size), rows.total)
        sample = make_sample(*objects, rows, cost.posting_work)
        if self.name in OF_ALL_KINDS:
            for questions in (self.sampler.queries, others):
                if questions is not None and questions.total:
                    sample = add_questions(sample, questions, self.sampler.span_s)
        if self.name != "auto":
            leaves = METHODS[self.name](sample, self.workers, cost)
            self._adopt(leaves)
            self.why = f"{leaves.total} leaves, made of {self.sampler.events} events"
            return
        posted = post_rows(rows)
        choice = choose_plan(
            [METHODS[name](sample, self.workers, cost) for name in CANDIDATES],
            lambda leaves: measure_plan(leaves, objects, posted, sample, cost),
            self.workers,
            prices,
            spread_workers(self.workers, self.machines(), memory_of_machine()),
        )
        self.why = choice.why
        if choice.leaves is not None:
            self._adopt(choice.leaves)


def named_plan(name: str) -> SavedPlan | None:
    """The plan of the file `name`, if that is one and not a method's name."""
    return read_plan(Path(name)) if name not in PLANS["boolean"] and is_file(name) else None


def look_up(objects: Objects, segments: Sequence[LiveSegment]) -> NDArray[np.float64]:
    """How many candidates each object looks at in the live segments, at the middle of its cell."""
    lon, lat = codes_to_points(objects.codes)
    probe = make_probe(objects.codes, lon, lat, np.zeros(lon.size, np.int64), *objects[1:])
    looked = np.zeros(lon.size)
    for found in match_all(probe, [(live.segment, live.dead) for live in segments]):
        if found.looked is not None:
            looked += found.looked
    return looked


def memory_of_machine() -> float:
    """Half of this machine's memory, in bytes: what an index may take."""
    return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def live_rows(
    segments: Sequence[LiveSegment], most: int = SAMPLE_SUBSCRIPTIONS
) -> SubscriptionRows:
    """The live subscriptions, or an even choice of them."""
    total = sum(live.segment.rows.total - live.ended for live in segments)
    step = max(1, -(-total // most))
    parts = []
    for live in segments:
        rows = whole_rows(live.segment)
        alive = np.arange(rows.total)
        if live.ended:
            bits = np.unpackbits(live.dead.view(np.uint8), bitorder="little")[: rows.total]
            alive = np.flatnonzero(bits == 0)
        parts.append(
            take_rows(rows, alive[::step]) if alive.size < rows.total or step > 1 else rows
        )
    return concat_rows(parts)
