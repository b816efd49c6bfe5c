"""The choice of a plan for `relevant` subscriptions: the papers' rule, refined by cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kinds.relevant.index import TermPartition
from placewire.model.subscriptions import SubscriptionRows, take_rows, take_slices
from placewire.plans.cost.choice import BYTES_A_SUBSCRIPTION, Machines, Prices, Score, score_parts
from placewire.plans.relevant.methods import RelevantSample, plan_relevant
from placewire.plans.route.term_route import LiveLiterals, TermRoute

SAMPLED_ROWS = 50_000
SAMPLED_OBJECTS = 2_000
# With k = 20: 52 places of 14 bytes in the buffer, 160 bytes of index, and the row itself.
BYTES_A_RELEVANT = 1_200.0


class RelevantChoice(NamedTuple):
    """The name of the plan to take, and why."""

    name: str
    why: str


def choose_relevant(
    sample: RelevantSample, workers: int, prices: Prices, machines: Machines
) -> RelevantChoice:
    """Hold `shared` against the plans that fit: by words for short texts, by place for long ones.

    An object goes to as many workers as it has terms, if these are fewer than the workers; if not,
    words save no messages and their copies only cost.
    """
    terms = float(np.diff(sample.term_offsets).mean()) if sample.lon.size else 0.0
    names = ("prefix", "location") if terms < workers else ("location", "hash")
    sample = thinned(sample)
    meetings = count_meetings(sample)
    scores = [score_undealt(sample, meetings, workers, prices, machines)]
    for name in names:
        scores.append(score_dealt(name, sample, meetings, workers, prices, machines))
    best, *others = sorted(scores, key=lambda score: score.total)
    why = (
        f"{best.name}: {best.total:.0f} ns an object ({best.explain()});"
        f" {terms:.1f} terms an object, {workers} workers"
    )
    if others:
        why += f"; next {others[0].name}: {others[0].total:.0f} ({others[0].explain()})"
    return RelevantChoice(best.name, why)


def thinned(sample: RelevantSample) -> RelevantSample:
    """An even choice of the rows and the objects."""
    rows = np.arange(0, sample.rows.total, max(1, -(-sample.rows.total // SAMPLED_ROWS)))
    chosen = np.arange(0, sample.lon.size, max(1, -(-sample.lon.size // SAMPLED_OBJECTS)))
    offsets, at = take_slices(sample.term_offsets, chosen)
    return RelevantSample(
        take_rows(sample.rows, rows),
        sample.theta[rows],
        sample.lon[chosen],
        sample.lat[chosen],
        offsets,
        sample.terms[at],
    )


def count_meetings(sample: RelevantSample) -> NDArray[np.float64]:
    """How many objects of the sample meet each literal of the rows."""
    terms, counts = np.unique(sample.terms, return_counts=True)
    wanted = sample.rows.literal_term
    if terms.size == 0:
        return np.zeros(wanted.size)
    at = np.minimum(np.searchsorted(terms, wanted), terms.size - 1)
    return np.where(terms[at] == wanted, counts[at], 0).astype(np.float64)


def score_dealt(
    name: str,
    sample: RelevantSample,
    meetings: NDArray[np.float64],
    workers: int,
    prices: Prices,
    machines: Machines,
) -> Score:
    """What a plan costs that deals the sample's postings out."""
    objects = max(sample.lon.size, 1)
    owner = plan_relevant(name, sample, workers).deal(sample.rows, sample.theta)
    live = LiveLiterals(workers)
    live.rebuild([(sample.rows, TermPartition(workers, owner))])
    sent = np.zeros(workers)
    codes = np.zeros(sample.lon.size, np.uint32)
    for share in TermRoute(workers, live.words).cut(codes, sample.term_offsets, sample.terms):
        sent[share.worker] = share.objects.size
    posted = owner >= 0
    met = np.bincount(owner[posted], meetings[posted], workers)
    held = np.bincount(owner[posted], minlength=workers) * rows_a_literal(sample.rows)
    return score_parts(
        name,
        route=prices.probe / workers,
        shuffle=prices.shuffle * float(sent.sum()) / objects / workers,
        match=(prices.probe * sent + prices.candidate * met) / objects,
        insert=prices.insert * prices.inserts * held / max(sample.rows.total, 1),
        share=float(sent.max(initial=0)) / objects,
        held=machines.workers_each * relevant_as_others(float(held.max(initial=0))),
        prices=prices,
        machines=machines,
    )


def score_undealt(
    sample: RelevantSample,
    meetings: NDArray[np.float64],
    workers: int,
    prices: Prices,
    machines: Machines,
) -> Score:
    """What matching where objects are read costs."""
    each = prices.candidate * float(meetings.sum()) / max(sample.lon.size, 1)
    return score_parts(
        "shared",
        route=0.0,
        shuffle=0.0,
        match=np.array([(prices.probe + each) / workers]),
        insert=np.array([prices.insert * prices.inserts / workers]),
        share=1.0 / workers,
        held=relevant_as_others(float(sample.rows.total)),
        prices=prices,
        machines=machines,
    )


def rows_a_literal(rows: SubscriptionRows) -> float:
    """How much of a row a posting stands for."""
    return rows.total / max(rows.literal_term.size, 1)


def relevant_as_others(rows: float) -> float:
    """How many boolean subscriptions take the memory of so many `relevant` ones."""
    return rows * BYTES_A_RELEVANT / BYTES_A_SUBSCRIPTION
