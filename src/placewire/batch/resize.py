"""Change the number of workers: prepare with one commit, switch with the next."""

from __future__ import annotations

from collections.abc import Callable

from placewire.batch.settle import Settler
from placewire.plans.names import named_plan
from placewire.plans.planners import Planners
from placewire.plans.rebalance.elastic import Elastic, WorkerRange
from placewire.plans.sample.sampler import Columns
from placewire.segments.live import LiveSegments
from placewire.storage.manifest import Manifest, NextPlanEntry


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
            return asked, f"workers {planners.workers} to {asked}: asked for by hand"
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
        retained: Callable[[int], Columns],
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
