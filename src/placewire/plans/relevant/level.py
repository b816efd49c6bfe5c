"""Levelling a rule of `relevant` subscriptions by what its workers were seen to have to do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placewire.kinds.relevant.rows import read_points
from placewire.model.subscriptions import SubscriptionRows
from placewire.plans.rebalance.adjustment import sum_loads
from placewire.plans.rebalance.handover import hand_over, scale_costs
from placewire.plans.relevant.methods import NOT_POSTED, RelevantRule, TermParts, frequencies_of
from placewire.plans.relevant.parts import PointTree, grow_point_tree

NO_OBJECTS = np.empty((0, 2))


def level_rule(
    rule: RelevantRule,
    rows: SubscriptionRows,
    theta: NDArray[np.int32],
    counted: NDArray[np.float64],
) -> RelevantRule:
    """The rule with its cuts moved so that workers cost the same; `counted` is what they cost now.

    A posting is looked at by every object with its term. What a worker cost is shared out among its
    postings in that proportion; places are then cut anew, and terms handed over.
    """
    if rule.name == "hash":
        return rule
    owner = rule.deal(rows, theta)
    posted = np.flatnonzero(owner != NOT_POSTED)
    often = frequencies_of(rows, rule.terms, rule.frequency)
    cost = np.zeros(owner.size)
    cost[posted] = scale_costs(owner[posted], often[posted] + 1.0, counted)
    row = np.repeat(np.arange(rows.total), np.diff(rows.literal_offsets))
    points = np.stack(read_points(rows), axis=1)

    def cut_places(here: NDArray[np.bool_], leaves: int) -> PointTree:
        costs = sum_loads(row[here], cost[here], rows.total)
        some = np.flatnonzero(costs)
        return grow_point_tree(points[some], NO_OBJECTS, leaves, costs[some])

    everything = cost > 0.0
    if rule.name == "location":
        return rule._replace(trees=(cut_places(everything, rule.workers),))
    if rule.name in ("keyword", "prefix"):
        return rule._replace(words=(level_words(rule.words[0], rows.literal_term, cost),))
    if rule.name == "location+prefix":
        tree = cut_places(everything, rule.first)
        leaf = tree.leaves_of(points[:, 0], points[:, 1])[row]
        words = tuple(
            level_words(parts, rows.literal_term, np.where(leaf == number, cost, 0.0))
            for number, parts in enumerate(rule.words)
        )
        return rule._replace(trees=(tree,), words=words)
    whole = level_words(rule.words[0], rows.literal_term, cost)
    part = whole.of(rows.literal_term)
    trees = tuple(
        cut_places(everything & (part == number), rule.second) for number in range(rule.first)
    )
    return rule._replace(trees=trees, words=(whole,))


def level_words(
    former: TermParts, literals: NDArray[np.uint64], cost: NDArray[np.float64]
) -> TermParts:
    """Parts of terms that cost the same, by the cost of each literal; few terms change theirs."""
    posted = cost > 0.0
    terms, at = np.unique(np.concatenate([former.terms, literals[posted]]), return_inverse=True)
    costs = sum_loads(at[former.terms.size :], cost[posted], terms.size)
    return TermParts(terms, hand_over(former.of(terms), costs, former.parts), former.parts)
