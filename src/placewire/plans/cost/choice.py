"""Choose a plan by cost: score candidates measured on a sample, and explain the choice.

The score is the time of the busiest worker in nanoseconds per object. It includes routing and
shuffling, the objects, postings and inserts that reach a worker, and page faults of an index that
exceeds a machine's memory. PS2Stream's load is what its plans minimise; it charges an object for
every subscription of its worker, which an index by place and term does not, so it does not decide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.plans.cost.measures import Measures, PlanWork
from placewire.plans.cost.model import Prices
from placewire.plans.leaves import Leaves

BYTES_A_SUBSCRIPTION = 220.0


class Score(NamedTuple):
    """What a candidate costs, in nanoseconds an object of the busiest worker."""

    name: str
    total: float
    route: float
    shuffle: float
    match: float
    insert: float
    memory: float

    def explain(self) -> str:
        """The parts in words, the largest first."""
        parts = {k: v for k, v in self._asdict().items() if k not in ("name", "total") and v >= 0.5}
        shown = sorted(parts.items(), key=lambda part: -part[1])
        return ", ".join(f"{name} {value:.0f}" for name, value in shown)


class Machines(NamedTuple):
    """What the workers run on: how many of them share a machine, and its memory for the index."""

    workers_each: int
    memory_bytes: float


def spread_workers(workers: int, machines: int, memory_bytes: float) -> Machines:
    """Workers spread evenly over so many machines, each with so much memory for the index."""
    return Machines(-(-workers // machines), memory_bytes)


def score_plan(
    measures: Measures | PlanWork,
    prices: Prices,
    machines: Machines,
    bytes_each: float = BYTES_A_SUBSCRIPTION,
) -> Score:
    """Score a plan that routes, with subscriptions of `bytes_each`."""
    objects = max(measures.objects, 1)
    workers = measures.sent.size
    inserts = prices.inserts / max(measures.subscriptions, 1)
    return score_parts(
        measures.name,
        route=measures.route_ns / workers,
        shuffle=prices.shuffle * float(measures.sent.sum()) / objects / workers,
        match=(prices.probe * measures.sent + prices.candidate * measures.candidates) / objects,
        insert=prices.insert * inserts * measures.held,
        share=float(measures.sent.max(initial=0)) / objects,
        held=machines.workers_each * float(measures.held.max(initial=0)),
        bytes_each=bytes_each,
        prices=prices,
        machines=machines,
    )


def score_shared(
    measures: Measures | PlanWork,
    workers: int,
    prices: Prices,
    machines: Machines,
    bytes_each: float = BYTES_A_SUBSCRIPTION,
) -> Score:
    """Score matching where objects are read; takes the measures of any plan that drops none.

    Every worker gets an even part of the objects and all machines hold all subscriptions, each
    once: its processes map the same files. A subscription is indexed once and read by all.
    """
    met = prices.candidate * float(measures.candidates.sum()) / max(measures.objects, 1)
    return score_parts(
        "shared",
        route=0.0,
        shuffle=0.0,
        match=np.array([(prices.probe + met) / workers]),
        insert=np.array([prices.insert * prices.inserts / workers]),
        share=1.0 / workers,
        held=float(measures.subscriptions),
        bytes_each=bytes_each,
        prices=prices,
        machines=machines,
    )


def score_parts(
    name: str,
    *,
    route: float,
    shuffle: float,
    match: NDArray[np.floating[Any]],
    insert: NDArray[np.floating[Any]],
    share: float,
    held: float,
    bytes_each: float,
    prices: Prices,
    machines: Machines,
) -> Score:
    """Put the parts together for the busiest worker.

    `share` is the part of all objects that one worker gets at most, `held` the subscriptions that
    a machine holds.
    """
    busiest = int(np.argmax(match + insert))
    beyond = max(0.0, 1.0 - machines.memory_bytes / max(held * bytes_each, 1.0))
    memory = prices.fault * beyond * share
    parts = (route, shuffle, float(match[busiest]), float(insert[busiest]), memory)
    return Score(name, sum(parts), *parts)


class Choice(NamedTuple):
    """The chosen plan, None for `shared`, and the scores of all."""

    leaves: Leaves | None
    scores: list[Score]

    @property
    def why(self) -> str:
        return explain_scores(self.scores)


def explain_scores(scores: list[Score], note: str = "") -> str:
    """The cheapest plan, a note, and the next one, in words."""
    best, *others = sorted(scores, key=lambda score: score.total)
    text = f"{best.name}: {best.total:.0f} ns an object ({best.explain()}){note}"
    if others:
        text += f"; next {others[0].name}: {others[0].total:.0f} ({others[0].explain()})"
    return text


def choose_plan(
    candidates: list[Leaves],
    measure: Callable[[Leaves], Measures],
    workers: int,
    prices: Prices,
    machines: Machines,
) -> Choice:
    """Score `shared` and every candidate; the cheapest wins, `shared` where they are even."""
    measured = [measure(leaves) for leaves in candidates]
    whole = max(measured, key=lambda m: int(m.candidates.sum()))
    scores = [score_shared(whole, workers, prices, machines)]
    scores += [score_plan(m, prices, machines) for m in measured]
    best = min(range(len(scores)), key=lambda k: scores[k].total)
    return Choice(None if best == 0 else candidates[best - 1], scores)


class PlanChoice(NamedTuple):
    """The name of the plan to use, and why."""

    name: str
    why: str


def choose_partition(
    shared: PlanWork,
    candidates: list[PlanWork],
    workers: int,
    prices: Prices,
    machines: Machines,
    bytes_each: float,
    note: str = "",
) -> PlanChoice:
    """Score `shared` and plans that partition rows of `bytes_each`; the cheapest wins."""
    scores = [score_shared(shared, workers, prices, machines, bytes_each)]
    scores += [score_plan(work, prices, machines, bytes_each) for work in candidates]
    best = min(scores, key=lambda score: score.total)
    return PlanChoice(best.name, explain_scores(scores, note))
