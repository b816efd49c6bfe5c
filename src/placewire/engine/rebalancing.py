"""Rebalancing: when the load of a plan's workers drifts apart, go over to another plan.

A decision needs three things. The largest load must stay well above the mean for some batches, the
adjustment must take enough off it, and what it saves must pay for what it moves within some time.
After a change the counts begin anew, and for some batches nothing is decided: so a balanced system
does not swing. The next plan is written and named by one commit and comes into force with the one
after it; in between, workers fetch what they are about to get.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.engine.signals import Signals
from placewire.model.errors import Unusable
from placewire.plan.adjusting import Adjustment, PartLoads, imbalance, sum_loads
from placewire.plan.cost import LoadModel
from placewire.plan.leaves import Leaves
from placewire.plan.sample import Sample
from placewire.plan.sstdadjust import adjust_sstd
from placewire.route.dominant import make_dominant_route
from placewire.route.leafroute import make_tables
from placewire.route.measures import Posted, find_holders, give_parts_workers

Adjust = Callable[[Leaves, PartLoads, Sample, LoadModel], Adjustment | None]
ADJUSTERS: dict[str, Adjust] = {"sstd": adjust_sstd}
REBALANCERS = ("auto", *ADJUSTERS, "off")
HIGH = 1.25  # the largest load, the mean being 1, from which on something is done
PATIENCE = 3  # batches in a row
REST = 6  # batches after a change
LEAST_GAIN = 0.1  # of the largest load
LEAST_OBJECTS = 1_000  # that the counts are of
PAYBACK = 100  # batches in which a change must have paid for itself
MOVE_NS = 300.0  # a subscription that changes its worker: its postings are read from the file


class RebalanceRule(NamedTuple):
    """By what name, and how readily; an `eager` one makes every adjustment that is found."""

    name: str = "auto"
    high: float = HIGH
    patience: int = PATIENCE
    rest: int = REST
    least_objects: int = LEAST_OBJECTS
    eager: bool = False


def read_rebalance(name: str) -> RebalanceRule:
    """The rule of a name; raises Unusable."""
    if name not in REBALANCERS:
        raise Unusable(f"rebalance: must be one of {', '.join(REBALANCERS)}, got {name!r}")
    return RebalanceRule(name)


class Rebalancer:
    """Decides, batch by batch, whether the plan has to be adjusted."""

    def __init__(self, rule: RebalanceRule, signals: Signals) -> None:
        self.rule = rule
        self.signals = signals
        self.strained = 0  # batches in a row
        self.why = ""

    @property
    def active(self) -> bool:
        return self.rule.name != "off"

    def strains(self, leaves: Leaves, cost: LoadModel) -> bool:
        """Whether the workers' loads have been too far apart for long enough."""
        signals = self.signals
        if signals.counts.shape[1:] != (leaves.total, leaves.workers):
            return False
        objects, candidates, _ = signals.counts.sum(axis=1)
        loads = cost.per_object * objects + cost.per_posting * candidates
        few = objects.sum() < self.rule.least_objects
        high = not few and imbalance(loads) > self.rule.high
        self.strained = self.strained + 1 if high else 0
        patient = self.strained >= self.rule.patience and signals.batches > self.rule.rest
        return patient or self.rule.eager

    def decide(
        self,
        leaves: Leaves,
        cost: LoadModel,
        posted: Callable[[], Posted],
        sample: Callable[[], Sample],
    ) -> Adjustment | None:
        """The adjustment to make, if any; what is asked of `posted` and `sample` takes a while."""
        if leaves.workers == 1 or not self.strains(leaves, cost):
            return None
        self.strained = 0
        loads = self.signals.part_loads(leaves, hold_parts(leaves, posted()), cost)
        before = sum_loads(leaves.part_worker, loads.load, leaves.workers)
        names = list(ADJUSTERS) if self.rule.name == "auto" else [self.rule.name]
        found: list[tuple[float, str, Adjustment]] = []
        for name in names:
            adjustment = ADJUSTERS[name](leaves, loads, sample(), cost)
            if adjustment is not None:
                found.append((self.gain(before, adjustment), name, adjustment))
        if not found:
            return None
        gain, name, best = max(found, key=lambda one: one[0])
        small = best.loads.max() > (1.0 - LEAST_GAIN) * before.max()
        if (gain <= 0.0 or small) and not self.rule.eager:
            return None
        self.why = (
            f"{name} {best.way}: the largest load {imbalance(before):.2f} x the mean,"
            f" then {imbalance(best.loads):.2f}; {best.moved:.0f} subscriptions change their worker"
        )
        return best

    def gain(self, before: NDArray[np.float64], adjustment: Adjustment) -> float:
        """What an adjustment saves in its time, less what it costs, in nanoseconds."""
        counted = max(self.signals.fullness, 1.0)
        saved = (float(before.max()) - float(adjustment.loads.max())) / counted
        return PAYBACK * saved - MOVE_NS * adjustment.moved


def hold_parts(leaves: Leaves, posted: Posted) -> NDArray[np.float64]:
    """How many subscriptions each part of a plan has."""
    alone = give_parts_workers(leaves)
    offsets, _ = find_holders(alone, make_dominant_route(alone), make_tables(alone), posted)
    return np.diff(offsets).astype(np.float64)


def parts_that_move(before: Leaves, after: Leaves) -> Sequence[int]:
    """The workers that get something they did not have: to fetch it before the change."""
    same = (
        before.box.shape == after.box.shape
        and np.array_equal(before.box, after.box)
        and np.array_equal(before.part_offsets, after.part_offsets)
    )
    if not same:
        return sorted(set(after.part_worker.tolist()))
    changed = before.part_worker != after.part_worker
    return sorted(set(after.part_worker[changed].tolist()))
