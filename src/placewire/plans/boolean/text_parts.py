"""Cutting a subset by text: its terms in parts of even load."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.plans.boolean.subset import SampleSubset, weigh_subset
from placewire.plans.cost.model import LoadModel
from placewire.plans.kernels.parts import (
    rows_counted_by_part,
    rows_worked_by_part,
    terms_counted,
    terms_worked,
    weights_to_parts,
)
from placewire.plans.leaves import TextSplit
from placewire.plans.sample.sample import Sample


class WeighedTerms(NamedTuple):
    """The terms that the subscriptions of a subset are posted under, heaviest first.

    `terms` i64[t] are positions in the lexicon; `of_none` is the load of the subscriptions that
    need no term and of the objects they draw, all of it in part 0.
    """

    terms: NDArray[np.int64]
    weights: NDArray[np.float64]
    of_none: float

    def most_parts(self) -> int:
        """Into how many parts these terms can be cut with something in each."""
        return max(1, self.terms.size + (self.of_none > 0.0))


def weigh_terms(
    sample: Sample,
    subset: SampleSubset,
    cost: LoadModel,
    within: NDArray[np.int64] | None = None,
) -> WeighedTerms:
    """Weigh each posted term (of those `within`, or of all) as if it were a separate part."""
    size = sample.lexicon.size
    if sample.pair_work.size:
        objects = terms_worked(
            sample.term_offsets, sample.terms, sample.pair_work, subset.objects, size
        )
    else:
        objects = terms_counted(sample.term_offsets, sample.terms, subset.objects, size)
    posts = terms_counted(sample.post_offsets, sample.posts, subset.subscriptions, size)
    if within is not None:
        kept = np.zeros(size, np.bool_)
        kept[within] = True
        posts[~kept] = 0
    terms = np.flatnonzero(posts)
    weights = cost.of_counts(objects[terms], posts[terms])
    order = np.argsort(-weights, kind="stable")
    free = _count_free(sample, subset)
    of_none = cost.of_counts(subset.objects.size, free) if free else 0.0
    return WeighedTerms(terms[order], weights[order], of_none)


def share_terms(sample: Sample, weighed: WeighedTerms, parts: int) -> NDArray[np.int32]:
    """The part of each term of the lexicon, -1 for one that is not posted: i32[lexicon].

    Heaviest first, each to the part with least weight so far.
    """
    loads = np.zeros(parts)
    loads[0] = weighed.of_none
    part_of_term = np.full(sample.lexicon.size, -1, np.int32)
    part_of_term[weighed.terms] = weights_to_parts(weighed.weights, loads)
    return part_of_term


def cut_terms(
    sample: Sample, subset: SampleSubset, parts: int, cost: LoadModel
) -> NDArray[np.int32]:
    """A subset's posted terms in `parts` parts of even load: the part of each, else -1."""
    return share_terms(sample, weigh_terms(sample, subset, cost), parts)


def price_text(
    sample: Sample, subset: SampleSubset, weighed: WeighedTerms, most: int, cost: LoadModel
) -> NDArray[np.float64]:
    """The loads in all of a subset cut by text in 1 .. `most` parts: f64[most].

    Infinite where there are not so many parts, or the heaviest is no lighter than the subset.
    """
    whole = weigh_subset(sample, subset, cost)
    prices = np.full(most, np.inf)
    prices[0] = whole
    for parts in range(2, min(most, weighed.most_parts()) + 1):
        part_of_term = share_terms(sample, weighed, parts)
        objects = rows_counted_by_part(
            sample.term_offsets, sample.terms, subset.objects, part_of_term, parts
        )
        if weighed.of_none > 0.0:
            objects[0] = subset.objects.size
        if sample.pair_work.size:
            objects = objects + rows_worked_by_part(
                sample.term_offsets,
                sample.terms,
                sample.pair_work,
                subset.objects,
                part_of_term,
                parts,
            )
            objects -= rows_counted_by_part(
                sample.term_offsets, sample.terms, subset.objects, part_of_term, parts
            )
        subscriptions = rows_counted_by_part(
            sample.post_offsets, sample.posts, subset.subscriptions, part_of_term, parts
        )
        loads = cost.of_counts(objects, subscriptions)
        if loads.max() < whole:
            prices[parts - 1] = loads.sum()
    return prices


def split_by_parts(sample: Sample, part_of_term: NDArray[np.int32], parts: int) -> TextSplit:
    """The same for a leaf; terms without a part are not listed."""
    listed = np.flatnonzero(part_of_term >= 0)
    return TextSplit(parts, sample.lexicon[listed], part_of_term[listed])


def _count_free(sample: Sample, subset: SampleSubset) -> int:
    """How many subscriptions of a subset need no term."""
    rows = subset.subscriptions
    posted = sample.post_offsets[rows] < sample.post_offsets[rows + 1]
    return int((sample.posts[sample.post_offsets[rows[posted]]] < 0).sum())
