"""Change the number of workers: prepare with one commit, switch with the next.

`Elastic` chooses the number by the load of recent batches; a user may request one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from placewire.batch.settle import Settler
from placewire.model.errors import Unusable
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.names import named_plan
from placewire.plans.planners import Planners
from placewire.segments.live import LiveSegments
from placewire.storage.manifest import Manifest, NextPlanEntry, WorkersEntry
from placewire.storage.runtime_files import MOST_WORKERS

BUSY_S = 0.5  # seconds of matching per worker and batch above which workers are added
AIM_S = 0.25  # seconds per worker and batch to aim for
IDLE_S = 0.1  # below which workers are removed: a batch without matching takes about as long
STREAK = 3  # consecutive batches
COOLDOWN = 6  # batches after a change


class WorkerRange(NamedTuple):
    """The least and the most workers."""

    least: int
    most: int

    def clip(self, workers: int) -> int:
        return min(max(workers, self.least), self.most)


def read_workers(given: int | str) -> WorkerRange:
    """A number of workers, or a range as `2..8`; raises Unusable."""
    found = re.fullmatch(r"(\d{1,9})(?:\.\.(\d{1,9}))?", str(given).strip(), re.ASCII)
    if found is not None:
        least = int(found[1])
        most = int(found[2] or least)
        if 1 <= least <= most <= MOST_WORKERS:
            return WorkerRange(least, most)
    raise Unusable(
        f"workers: must be a whole number, 1..{MOST_WORKERS}, or a range of them as 2..8,"
        f" got {given}"
    )


class ElasticRule(NamedTuple):
    """When workers are added and retired."""

    busy_s: float = BUSY_S
    aim_s: float = AIM_S
    idle_s: float = IDLE_S
    streak: int = STREAK
    cooldown: int = COOLDOWN


USUAL_ELASTIC = ElasticRule()


class Elastic:
    """Decides after each batch how many workers there should be."""

    def __init__(
        self, span: WorkerRange, plan: str = "auto", rule: ElasticRule = USUAL_ELASTIC
    ) -> None:
        saved = named_plan(plan)
        if saved is not None:
            raise Unusable(
                f"workers: a saved plan has its own, {saved.leaves.workers},"
                f" got {span.least}..{span.most}"
            )
        self.span = span
        self.rule = rule
        self.since = -1  # the batch after which the number was changed last
        self.why = ""

    def opening(self, former: int) -> int:
        """Return the number of workers to start with: the former one, within the range."""
        return self.span.clip(former)

    def wanted(self, history: Sequence[WorkersEntry], workers: int) -> int:
        """The number of workers to continue with, by the work of recent batches."""
        rule = self.rule
        batches: dict[int, float] = {}
        for entry in history:
            if entry.batch > self.since and len(entry.busy_s) == workers:
                batches[entry.batch] = batches.get(entry.batch, 0.0) + sum(entry.busy_s)
        last = list(batches.items())[-rule.streak :]
        if len(last) < rule.streak or last[-1][0] - self.since <= rule.cooldown:
            return workers
        sums = sorted(seconds for _, seconds in last)
        wanted = self.span.clip(math.ceil(sums[len(sums) // 2] / rule.aim_s))
        busy = wanted > workers and sums[0] / workers > rule.busy_s
        idle = wanted < workers and sums[-1] / workers < rule.idle_s
        if not busy and not idle:
            return workers
        each = sums[len(sums) // 2] / workers
        self.why = f"workers {workers} to {wanted}: each had {each:.3g} s to do in a batch"
        return wanted


class Resizer:
    """Changes the number of workers on request or, within a range, by load."""

    def __init__(self, workers: int | WorkerRange | None, plan: str) -> None:
        self.elastic: Elastic | None = None
        self.given: int | None = None
        if isinstance(workers, WorkerRange):
            self.elastic = Elastic(workers, plan)
        else:
            self.given = workers

    def initial_workers(self, former: int) -> int | None:
        """Return the number of workers to start with; None leaves it to the plan.

        `former` is that of the last commit, 0 in a new state.
        """
        return self.given if self.elastic is None else self.elastic.opening(former)

    def wanted(self, planners: Planners) -> tuple[int, str]:
        """Return the wanted number of workers, and the reason if it differs."""
        asked = planners.leaf.wanted_workers
        if asked:
            self.elastic = None  # a request overrides the load
            return asked, f"workers {planners.workers} to {asked}: requested"
        if self.elastic is None:
            return planners.workers, ""
        wanted = self.elastic.wanted(planners.signals.history, planners.workers)
        return wanted, self.elastic.why

    def prepare(
        self,
        batch: int,
        now_us: int,
        planners: Planners,
        live: LiveSegments,
        latest: Manifest,
        retained: Callable[[int], Objects],
    ) -> NextPlanEntry | None:
        """Prepare another number of workers for the next commit, if one is wanted.

        Returns its entry for the manifest. The sample is kept, so that plans are ready at once.
        """
        wanted, why = self.wanted(planners)
        fixed = not planners.leaf.by_hand and named_plan(planners.names.leaf) is not None
        if wanted == planners.workers or fixed:
            planners.leaf.wanted_workers = 0
            return None
        planners.leaf.next = None
        planners.successor = successor = planners.resized(wanted, why, latest)
        successor.refill(latest, retained)
        return successor.prepare(batch, live, now_us)

    def switch(
        self, batch: int, planners: Planners, live: LiveSegments, settler: Settler
    ) -> Planners:
        """Switch to the workers that the last commit prepared, if any.

        Returns the planners in force from now on.
        """
        successor = planners.successor
        if successor is None:
            return planners
        successor.signals.history = planners.signals.history
        live.partition = successor.partition
        settler.release, settler.scans = successor.release, successor.scans
        live.swap_rewrites()
        successor.assign_rest(batch, live)
        if self.elastic is not None:
            self.elastic.since = batch
        return successor
