"""Rebalance a plan when the load of its workers drifts apart.

A decision needs three things. The largest load must stay well above the mean for some batches, the
adjustment must take enough off it, and what it saves must pay for what it moves within some time.
After a change the counts are reset, and for some batches nothing is decided, so that a balanced
system does not oscillate. One commit writes and names the next plan, and the following one brings
it into force; in between, workers prefetch what they are about to get.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from placewire.model.arrays import F64
from placewire.model.errors import Unusable
from placewire.plans.allocation import imbalance, sum_loads
from placewire.plans.cost.measures import Posted, find_holders, hold_parts
from placewire.plans.cost.model import LoadModel, Prices
from placewire.plans.leaves import Leaves
from placewire.plans.rebalance.adjustment import Adjustment, PartLoads
from placewire.plans.rebalance.ps2 import SELECTS, Ps2Rule, adjust_ps2
from placewire.plans.rebalance.signals import Signals
from placewire.plans.rebalance.sstd import adjust_sstd
from placewire.plans.rebalance.tornado import BorderLines, adjust_tornado
from placewire.plans.sample.sample import Sample

HIGH = 1.25  # the largest load over the mean; above it the load is uneven
STREAK = 3  # consecutive batches
COOLDOWN = 6  # batches after a change
LEAST_GAIN = 0.1  # of the largest load
LEAST_OBJECTS = 1_000  # that counts must cover
PAYBACK = 100  # batches in which a change must have paid for itself
# A subscription that changes its worker: 116 ns to read its postings and 28 ns more when it is
# matched first, its pages being in memory; 1,400 ns from disk (`python -m bench run drift-cold`).
MOVE_NS = 150.0
PRICES = Prices()
WORSE = 1.25  # times the largest load of a futile decision: decide again above it
STEADY = 0.75  # the least share that each recent batch has of their largest load
MAX_FUTILE = 4  # how many futile decisions in a row double the wait for the next
PERIOD = 32  # batches between two global adjustments


class LoadSource(NamedTuple):
    """What a decision needs besides the signals, each computed once on demand.

    `simulate` gives the workers' loads when the sample is matched by a plan, and `replan` makes a
    new plan from the recent sample.
    """

    posted: Callable[[], Posted]
    sample: Callable[[], Sample]
    replan: Callable[[], Leaves] | None
    simulate: Callable[[Leaves], F64]


class Readings(NamedTuple):
    """What adjusters read; parts that are slow to compute are computed on demand.

    `ask` gives the sums along columns and rows of the leaf of a number, `transfer` is what it
    costs to move a subscription.
    """

    leaves: Leaves
    loads: PartLoads
    cost: LoadModel
    source: LoadSource
    ask: Callable[[int], BorderLines]
    transfer: float


def replan(readings: Readings) -> Adjustment | None:
    """PS2Stream's global adjustment: a new plan from the recent sample."""
    if readings.source.replan is None:
        return None
    after = readings.source.replan()
    moved = count_moved(readings.leaves, after, readings.source.posted())
    # How it divides the load shows in the simulation.
    even = np.full(after.workers, float(readings.loads.load.sum()) / after.workers)
    return Adjustment("new plan", after, even, moved)


def simulate_adjustment(readings: Readings, before: F64, adjustment: Adjustment) -> Adjustment:
    """The adjustment with the loads of a simulation, compared with the plan in force.

    The sample gives the ratio of the two; the amount of work was counted.
    """
    was, then = (
        readings.source.simulate(readings.leaves),
        readings.source.simulate(adjustment.leaves),
    )
    return adjustment._replace(loads=then * (float(before.max()) / max(float(was.max()), 1e-300)))


Adjust = Callable[[Readings], Adjustment | None]
ADJUSTERS: dict[str, Adjust] = {
    "ps2-local": lambda r: adjust_ps2(r.leaves, r.loads, r.source.sample(), r.cost),
    "ps2-global": replan,
    "sstd": lambda r: adjust_sstd(r.leaves, r.loads, r.source.sample(), r.cost),
    "tornado": lambda r: adjust_tornado(r.leaves, r.loads, r.ask, r.transfer),
}


def select_by(name: str) -> Adjust:
    """PS2Stream's local adjustment whose second phase selects cells by another algorithm."""
    return lambda r: adjust_ps2(r.leaves, r.loads, r.source.sample(), r.cost, Ps2Rule(select=name))


# Asked for by name only: `auto` has the usual ones.
OTHERS = {f"ps2-local:{name}": select_by(name) for name in SELECTS}
REBALANCERS = ("auto", *ADJUSTERS, *OTHERS, "off")


class RebalanceRule(NamedTuple):
    """Which adjusters to use and how readily; an `eager` rule makes every adjustment found.

    With `dual` the plan in force is kept for existing subscriptions.
    """

    name: str = "auto"
    high: float = HIGH
    streak: int = STREAK
    cooldown: int = COOLDOWN
    least_objects: int = LEAST_OBJECTS
    eager: bool = False
    dual: bool = False


def read_rebalance(name: str) -> RebalanceRule:
    """The rule of a name; raises Unusable."""
    if name not in REBALANCERS:
        raise Unusable(f"rebalance: must be one of {', '.join(REBALANCERS)}, got {name!r}")
    return RebalanceRule(name, dual=name == "ps2-global")


class Rebalancer:
    """Decides, batch by batch, whether the plan has to be adjusted."""

    def __init__(self, rule: RebalanceRule, signals: Signals) -> None:
        self.rule = rule
        self.signals = signals
        self.uneven_batches = 0  # batches in a row
        self.futile = 0  # decisions in a row that found nothing worth doing
        self.worst = 0.0  # the largest load at the last of them, the mean being 1
        self.why = ""

    @property
    def active(self) -> bool:
        return self.rule.name != "off"

    def detect_row_drift(self, kind: int, since: int, backoff: int, workers: int) -> F64 | None:
        """The cost of each worker for a kind, if it has been uneven since batch `since`.

        `backoff` multiplies the usual cooldown.
        """
        rule = self.rule
        entries = [
            e
            for e in self.signals.history
            if e.kind == kind and e.batch > since and len(e.objects) == workers
        ]
        last = entries[-rule.streak :]
        loads = [
            PRICES.probe * np.array(entry.objects, float)
            + PRICES.candidate * np.array(entry.candidates, float)
            for entry in last
        ]
        counted: F64 = np.sum(loads, axis=0) if loads else np.zeros(workers)
        if rule.eager:
            return counted if entries else None
        if not last or len(last) < rule.streak or last[-1].batch - since <= backoff * rule.cooldown:
            return None
        if sum(sum(entry.objects) for entry in last) < rule.least_objects:
            return None
        # A burst of new subscriptions costs much until they have results: that passes by itself.
        largest = [one.max() for one in loads]
        steady = min(largest) >= STEADY * max(largest)
        uneven = all(imbalance(one) > rule.high for one in loads)
        return counted if steady and uneven else None

    def wants_lines(self, leaves: Leaves) -> bool:
        """Whether workers have to sum up along columns and rows, for shifts of their borders.

        That costs more than counting by leaf, and is wanted once the loads have drifted apart.
        """
        boxes = leaves.part_worker.size == leaves.total <= leaves.workers
        now = self.uneven_batches > 0 or self.rule.eager
        return self.rule.name in ("auto", "tornado") and boxes and now

    def has_drifted(self, leaves: Leaves, cost: LoadModel) -> bool:
        """Whether the workers' loads have been too far apart for long enough."""
        signals = self.signals
        if signals.counts.shape[1:] != (leaves.total, leaves.workers):
            return False
        objects, candidates = signals.counts[:2].sum(axis=1)
        loads = cost.per_object * objects + cost.per_posting * candidates
        few = objects.sum() < self.rule.least_objects
        uneven = imbalance(loads)
        high = not few and uneven > self.rule.high
        self.uneven_batches = self.uneven_batches + 1 if high else 0
        if not high or uneven > WORSE * self.worst or signals.batches == 1:
            self.futile = 0  # level, or another plan, or something new has come
        streak = self.rule.streak << min(self.futile, MAX_FUTILE)
        due_to_drift = self.uneven_batches >= streak and signals.batches > self.rule.cooldown
        due = self.rule.name == "ps2-global" and signals.batches % PERIOD == 0 and not few
        return due_to_drift or due or self.rule.eager

    def decide(self, leaves: Leaves, cost: LoadModel, source: LoadSource) -> Adjustment | None:
        """The adjustment to make, if any."""
        if leaves.workers == 1 or not self.has_drifted(leaves, cost):
            return None
        readings = self.read(leaves, cost, source)
        before = sum_loads(leaves.part_worker, readings.loads.load, leaves.workers)
        self.uneven_batches, self.futile, self.worst = 0, self.futile + 1, imbalance(before)
        names = list(ADJUSTERS) if self.rule.name == "auto" else [self.rule.name]
        found: list[tuple[float, str, Adjustment]] = []
        for name in names:
            adjustment = (ADJUSTERS | OTHERS)[name](readings)
            if adjustment is not None:
                adjustment = simulate_adjustment(readings, before, adjustment)
                found.append((self.gain(before, adjustment), name, adjustment))
        if not found:
            return None
        found.sort(key=lambda one: -one[0])
        gain, name, best = found[0]
        small = best.loads.max() > (1.0 - LEAST_GAIN) * before.max()
        if (gain <= 0.0 or small) and not self.rule.eager:
            return None
        self.why = (
            f"{name} {best.way}: the largest load {imbalance(before):.2f} x the mean,"
            f" then {imbalance(best.loads):.2f}; {best.moved:.0f} subscriptions change their worker"
            f"; {self.saved(before, best) / 1e6:.2g} ms saved in a batch"
            f" for {MOVE_NS * best.moved / 1e6:.2g} ms once"
        )
        self.futile = 0
        if len(found) > 1:
            other = found[1]
            self.why += f"; next {other[1]} {other[2].way}: {imbalance(other[2].loads):.2f}"
        return best

    def read(self, leaves: Leaves, cost: LoadModel, source: LoadSource) -> Readings:
        """What adjustments of a plan are found by."""
        return Readings(
            leaves,
            self.signals.part_loads(leaves, hold_parts(leaves, source.posted()), cost),
            cost,
            source._replace(simulate=remember(source.simulate)),
            lambda leaf: self.signals.ask_lines(int(leaves.part_worker[leaf])),
            MOVE_NS * self.signals.fullness / PAYBACK,
        )

    def gain(self, before: F64, adjustment: Adjustment) -> float:
        """What an adjustment saves in its time, less what it costs, in nanoseconds."""
        return PAYBACK * self.saved(before, adjustment) - MOVE_NS * adjustment.moved

    def saved(self, before: F64, adjustment: Adjustment) -> float:
        """What an adjustment takes off the largest load of a batch, in nanoseconds."""
        counted = max(self.signals.fullness, 1.0)
        return (float(before.max()) - float(adjustment.loads.max())) / counted


def remember(simulate: Callable[[Leaves], F64]) -> Callable[[Leaves], F64]:
    """Simulate each plan only once."""
    known: dict[int, tuple[Leaves, F64]] = {}

    def ask(leaves: Leaves) -> F64:
        if id(leaves) not in known:
            known[id(leaves)] = leaves, simulate(leaves)
        return known[id(leaves)][1]

    return ask


def count_moved(before: Leaves, after: Leaves, posted: Posted) -> float:
    """Count the subscriptions that move to workers that did not have them."""
    pairs = []
    for leaves in (before, after):
        offsets, rows = find_holders(leaves, posted)
        worker = np.repeat(np.arange(leaves.workers), np.diff(offsets))
        pairs.append(worker * posted.rows.total + rows)
    return float(np.setdiff1d(pairs[1], pairs[0]).size)
