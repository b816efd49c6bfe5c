"""Plan `frequency`: one leaf, terms assigned to workers by load; and what text plans share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.plans.boolean.grid import group_by_load
from placewire.plans.boolean.subset import WORLD
from placewire.plans.cost.model import LoadModel
from placewire.plans.leaves import BY_LEAF, Leaves, TextSplit, make_leaves
from placewire.plans.sample.sample import Sample


class TermCounts(NamedTuple):
    """What each term of the lexicon brings to its part: i64[lexicon] twice.

    `objects` counts none for a term under which no subscription is posted: they are dropped.
    `anywhere` subscriptions need no term; they belong to part 0, which then sees every object.
    """

    objects: NDArray[np.int64]
    subscriptions: NDArray[np.int64]
    anywhere: int

    @property
    def posted(self) -> NDArray[np.int64]:
        """The terms under which some subscription is posted."""
        return np.flatnonzero(self.subscriptions)


def plan_frequency(sample: Sample, workers: int, cost: LoadModel) -> Leaves:
    """Heaviest term first, each to the worker with the least load so far."""
    counts = count_terms(sample)
    posted = counts.posted
    loads = cost.of_counts(counts.objects[posted], counts.subscriptions[posted])
    taken = loads_without_terms(sample, counts, workers, cost)
    return list_terms("frequency", sample, workers, posted, group_by_load(loads, taken))


def count_terms(sample: Sample) -> TermCounts:
    """Count the objects and the subscriptions of each term."""
    needs_term = sample.posts >= 0
    subscriptions = np.bincount(sample.posts[needs_term], minlength=sample.lexicon.size)
    objects = np.where(subscriptions > 0, sample.frequency, 0)
    anywhere = int(np.count_nonzero(~needs_term))
    return TermCounts(objects, subscriptions.astype(np.int64), anywhere)


def loads_without_terms(
    sample: Sample, counts: TermCounts, workers: int, cost: LoadModel
) -> NDArray[np.float64]:
    """What the parts carry before any term is theirs: f64[workers], all 0 but perhaps the first."""
    taken = np.zeros(workers)
    if counts.anywhere:
        taken[0] = cost.of_counts(sample.objects, counts.anywhere)
    return taken


def list_terms(
    name: str,
    sample: Sample,
    workers: int,
    posted: NDArray[np.int64],
    part: NDArray[np.int32],
) -> Leaves:
    """One leaf with a part for every worker, all known terms listed; `part` is of those `posted`.

    The others cost nothing yet. Should they be asked for, their objects will be the load: they are
    assigned by frequency.
    """
    part_of_term = np.empty(sample.lexicon.size, np.int32)
    idle = np.ones(sample.lexicon.size, np.bool_)
    idle[posted] = False
    part_of_term[posted] = part
    part_of_term[idle] = group_by_load(sample.frequency[idle].astype(np.float64), np.zeros(workers))
    split = TextSplit(workers, sample.lexicon, part_of_term)
    return make_leaves(name, workers, BY_LEAF, [WORLD], [split], list(range(workers)))
