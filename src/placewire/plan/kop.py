"""Method `kop`, keyword-oriented partition: subscriptions by how frequent their terms are.

The keyword baseline of Tsuruoka et al., *Distributed Spatial-Keyword kNN Monitoring for
Location-aware Pub/Sub* (section 3.1).
"""

from __future__ import annotations

from placewire.plan.assignment import Assignment, Rule, make_assignment, price_counts
from placewire.plan.balls import BallSample
from placewire.plan.census import Meetings, count_terms, find_terms
from placewire.plan.graham import share_heaviest_first


def plan_kop(sample: BallSample, workers: int) -> Assignment:
    """Algorithm 1: the costliest subscription first, each to the worker with the least cost.

    C(s) is the sum of P(lambda) = |O_lambda| / |O_init| over its terms (equation 1).
    """
    census = count_terms(sample)
    meetings = Meetings(census, sample.term_offsets, find_terms(census, sample.terms))
    cost = price_counts(meetings.count_everywhere(), sample.objects)
    return make_assignment(Rule("kop", census), workers, share_heaviest_first(cost, workers), cost)
