"""Resizing: another number of workers is prepared with one commit and takes over with the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from placewire.batch.settle import Settler
from placewire.plans.boolean.planner import named_plan
from placewire.plans.planners import Planners
from placewire.plans.rebalance.elastic import Elastic, WorkerRange
from placewire.plans.sample.sampler import Columns
from placewire.segments.live import LiveSegments
from placewire.storage.manifest import Manifest


class Resizer:
    """Changes the number of workers, as somebody asks for by hand or, within a range, the load."""

    def __init__(self, workers: int | WorkerRange | None, plan: str) -> None:
        self.elastic: Elastic | None = None
        self.given: int | None = None
        if isinstance(workers, WorkerRange):
            self.elastic = Elastic(workers, plan)
        else:
            self.given = workers

    def opening(self, saved: dict[str, Any]) -> int | None:
        """With how many workers to begin; None: as the plan has it."""
        return self.given if self.elastic is None else self.elastic.opening(saved)

    def wanted(self, planners: Planners) -> tuple[int, str]:
        """How many workers there should be, and why if they are others."""
        asked = planners.boolean.wanted_workers
        if asked:
            self.elastic = None  # who asks by hand knows better than the load
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
    ) -> dict[str, Any]:
        """Prepare for another number of workers, if that is wanted, as from the next commit on.

        Gives what the manifest says of it. The sample is kept, so that the plans are there at once.
        """
        wanted, why = self.wanted(planners)
        fixed = not planners.boolean.by_hand and named_plan(planners.names.boolean) is not None
        if wanted == planners.workers or fixed:
            planners.boolean.wanted_workers = 0
            return {}
        planners.boolean.next = None
        planners.successor = successor = planners.resized(wanted, why, latest)
        successor.refill(latest, retained)
        said = successor.prepare(batch, live, now_us)
        return said if planners.boolean.wanted_workers == 0 else said | {"wanted_workers": wanted}

    def go_over(
        self, batch: int, planners: Planners, live: LiveSegments, settler: Settler
    ) -> Planners:
        """Let the workers take over that were prepared with the last commit, if there are any.

        Gives the planners in force from now on.
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
