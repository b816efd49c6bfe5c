"""Method `kop`, keyword-oriented partition: subscriptions by how frequent their terms are.

The keyword baseline of Tsuruoka et al., *Distributed Spatial-Keyword kNN Monitoring for
Location-aware Pub/Sub* (section 3.1).
"""

from __future__ import annotations

from collections.abc import Callable

from placewire.plans.boolean.allocation import share_heaviest_first
from placewire.plans.nearest.assignment import (
    Assignment,
    Rule,
    arrays_to_rule,
    make_assignment,
    price_counts,
    release,
    rule_to_arrays,
)
from placewire.plans.nearest.baselines.ps2 import plan_ps2near
from placewire.plans.nearest.baselines.sop import plan_sop
from placewire.plans.nearest.counts import Meetings, count_terms, find_terms
from placewire.plans.nearest.dkm import plan_dkm
from placewire.plans.nearest.new_rows import assign_new
from placewire.plans.nearest.sample import BallSample


def plan_kop(sample: BallSample, workers: int) -> Assignment:
    """Algorithm 1: the costliest subscription first, each to the worker with the least cost.

    C(s) is the sum of P(lambda) = |O_lambda| / |O_init| over its terms (equation 1).
    """
    census = count_terms(sample)
    meetings = Meetings(census, sample.term_offsets, find_terms(census, sample.terms))
    cost = price_counts(meetings.count_everywhere(), sample.objects)
    return make_assignment(Rule("kop", census), workers, share_heaviest_first(cost, workers), cost)


__all__ = [
    "NEAREST_METHODS",
    "Assignment",
    "BallSample",
    "Rule",
    "arrays_to_rule",
    "assign_new",
    "release",
    "rule_to_arrays",
]

NEAREST_METHODS: dict[str, Callable[[BallSample, int], Assignment]] = {
    "kop": plan_kop,
    "sop": plan_sop,
    "dkm": plan_dkm,
    "ps2": plan_ps2near,
}
