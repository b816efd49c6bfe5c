"""What the planners of `nearest` and `relevant` subscriptions have in common.

Both deal subscriptions out to workers by a rule that a method makes of a sample, and both wait for
the first subscription of their kind before they plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
from numpy.typing import NDArray

from placewire.model.subscriptions import BOOLEAN
from placewire.plans.names import UNPLANNED
from placewire.plans.rebalance.rebalancer import Rebalancer
from placewire.plans.sample.sampler import FEW, Sampler
from placewire.storage.layout import StateDir
from placewire.storage.manifest import RowPlanEntry

MOST_RESTS = 64


class DealingPlanner:
    """The plan's name, method and version; `methods` are those that deal out."""

    methods: Collection[str] = ()
    kind = BOOLEAN

    def __init__(self, state: StateDir, name: str, workers: int, sampler: Sampler) -> None:
        self.state = state
        self.name = name
        self.workers = workers
        self.sampler = sampler
        self.machines: Callable[[], int] = lambda: 1
        self.asked = False  # whether there are subscriptions of the kind
        self.why = ""
        self.made: int | None = None  # the batch at whose end the plan was made, in this run
        self.method = "shared" if name == "auto" else name
        self.version = 1 if name in UNPLANNED else 0
        self.waits = name not in UNPLANNED  # for a sample, and a subscription of the kind
        self.rule_file = ""
        self.rebalancer: Rebalancer | None = None
        self.rests = 1  # how many times as long to wait before the next time

    def goes_on(self, saved: RowPlanEntry) -> bool:
        """Take over the plan that the last commit named, if it is this one.

        Versions go on from the last in any case.
        """
        if saved.name != self.name or saved.workers != self.workers:
            stays = saved.name == self.name and self.name in UNPLANNED
            self.version = max(self.version, saved.version + (not stays))
            return False
        self.version, self.waits = saved.version, saved.waits
        self.method, self.why = saved.method, saved.why
        self.rule_file = saved.rule
        return True

    @property
    def sampling(self) -> bool:
        """Whether all objects of the next batch are wanted for the sample.

        `auto` asks for it once there is a subscription of the kind; any other plan from the start,
        and once the sample is full it waits for the first such subscription.
        """
        wanted = self.asked or self.name != "auto"
        return self.waits and wanted and not self.sampler.enough

    @property
    def deals(self) -> bool:
        """Whether subscriptions are dealt out."""
        return self.method in self.methods

    def drifted(self) -> NDArray[np.float64] | None:
        """What the workers cost, if that has been far from even for a while.

        Then subscriptions are dealt out anew. Each time the next has to wait twice as long.
        """
        if self.rebalancer is None or not self.rebalancer.active or not self.deals:
            return None
        planned = not self.waits and self.workers > 1
        known = self.sampler.objects.seen >= FEW or self.rebalancer.rule.eager
        if not planned or not known:
            return None
        since = -1 if self.made is None else self.made
        counted = self.rebalancer.strains_kind(self.kind, since, self.rests, self.workers)
        if counted is not None:
            self.rests = min(2 * self.rests, MOST_RESTS)
        return counted

    def entry(self) -> RowPlanEntry:
        """Return the plan's entry for the manifest, without what is a kind's own."""
        return RowPlanEntry(
            name=self.name,
            method=self.method,
            workers=self.workers,
            version=self.version,
            why=self.why,
            waits=self.waits,
            made=self.made,
            rule=self.rule_file,
        )
