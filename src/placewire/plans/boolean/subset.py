"""The subset of a sample that a node of a plan gets, and cuts by space or by text of even load."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from placewire.model.arrays import F64, I32, I64, Array
from placewire.plans.allocation import share_costs
from placewire.plans.cost.model import LoadModel
from placewire.plans.kernels.parts import (
    cells_overlapping_box,
    points_inside_box,
    rows_counted_by_part,
    rows_to_parts,
    rows_worked_by_part,
    spans_along_axis,
    terms_counted,
    terms_worked,
)
from placewire.plans.leaves import TextSplit
from placewire.plans.sample.sample import SIDE, Sample

Box = tuple[int, int, int, int]
WORLD: Box = (0, 0, SIDE, SIDE)


class SampleSubset(NamedTuple):
    """Objects inside a box of plan cells and the subscriptions that touch it, as sample rows.

    `work` is what the objects cost where that is not all that they cost: in a part by text, their
    terms of other parts are left out.
    """

    box: Box
    objects: I64
    subscriptions: I64
    work: float | None = None


def whole_sample(sample: Sample) -> SampleSubset:
    """The whole sample as a subset."""
    return SampleSubset(WORLD, np.arange(sample.objects), np.arange(sample.subscriptions))


def measure_subset(sample: Sample, subset: SampleSubset) -> float:
    """What the objects of a subset cost, an object with nothing near it costing 1."""
    if subset.work is not None:
        return subset.work
    if sample.object_work.size == 0:
        return float(subset.objects.size)
    return float(sample.object_work[subset.objects].sum())


def weigh_subset(sample: Sample, subset: SampleSubset, cost: LoadModel) -> float:
    """The load of a worker that has the subset and nothing else."""
    return cost.of_counts(measure_subset(sample, subset), float(subset.subscriptions.size))


def take_box(sample: Sample, subset: SampleSubset, box: Box) -> SampleSubset:
    """The part of a subset that lies in a smaller box."""
    edges = np.array(box, np.int32)
    return SampleSubset(
        box,
        points_inside_box(sample.object_column, sample.object_row, subset.objects, edges),
        cells_overlapping_box(sample.cell, subset.subscriptions, edges),
    )


def halve_box(box: Box, axis: int, at: int) -> tuple[Box, Box]:
    """The two sides of a cut between columns (axis 0) or rows (axis 1), before cell `at`."""
    low, high = list(box), list(box)
    low[axis + 2] = at
    high[axis] = at
    return (low[0], low[1], low[2], low[3]), (high[0], high[1], high[2], high[3])


def divide_by_text(
    sample: Sample, subset: SampleSubset, part_of_term: I32, parts: int
) -> list[SampleSubset]:
    """A subset cut by text: i32[lexicon] gives each term's part.

    Objects count where they have a term that a subscription of the subset is posted under;
    subscriptions that need no term belong to part 0, which then gets every object.
    """
    posted = terms_counted(
        sample.post_offsets, sample.posts, subset.subscriptions, sample.lexicon.size
    )
    live = np.where(posted > 0, part_of_term, -1).astype(np.int32)
    object_offsets, objects = rows_to_parts(
        sample.term_offsets, sample.terms, subset.objects, live, parts, -1
    )
    row_offsets, rows = rows_to_parts(
        sample.post_offsets, sample.posts, subset.subscriptions, part_of_term, parts, 0
    )
    work: list[float | None] = [None] * parts
    if sample.pair_work.size:
        work = rows_worked_by_part(
            sample.term_offsets, sample.terms, sample.pair_work, subset.objects, live, parts
        ).tolist()
    divided = [
        SampleSubset(
            subset.box,
            objects[object_offsets[p] : object_offsets[p + 1]],
            rows[row_offsets[p] : row_offsets[p + 1]],
            work[p],
        )
        for p in range(parts)
    ]
    if needs_no_term(sample, subset):
        more = float(subset.objects.size - divided[0].objects.size)
        seen = divided[0].work
        divided[0] = divided[0]._replace(
            objects=subset.objects, work=None if seen is None else seen + more
        )
    return divided


def needs_no_term(sample: Sample, subset: SampleSubset) -> bool:
    """Whether some subscription of the subset is satisfied without any term."""
    first = sample.posts[sample.post_offsets[:-1][subset.subscriptions]]
    return bool((first < 0).any())


MOST_ROWS = 50_000  # of each side are compared: an angle needs no more
NOTHING_TO_COMPARE = 1.0


def text_similarity(sample: Sample, subset: SampleSubset) -> float:
    """The cosine between the term counts of objects and the post counts of subscriptions.

    Posts stand for keywords: they are the terms by which a text split would send a subscription.
    A subset without objects or without posts says nothing for text: it is as similar as can be.
    Of a large subset rows at even steps are counted.
    """
    size = sample.lexicon.size
    objects = terms_counted(sample.term_offsets, sample.terms, _thin(subset.objects), size)
    posts = terms_counted(sample.post_offsets, sample.posts, _thin(subset.subscriptions), size)
    lengths = math.sqrt(_dot(objects, objects) * _dot(posts, posts))
    return _dot(objects, posts) / lengths if lengths > 0.0 else NOTHING_TO_COMPARE


def _dot(one: I64, other: I64) -> float:
    return float(np.dot(one.astype(np.float64), other.astype(np.float64)))


def _thin(rows: I64) -> I64:
    return rows[:: -(-rows.size // MOST_ROWS) or 1]


def quarter_box(box: Box) -> list[Box]:
    """The four equal squares of a square of plan cells, more than one wide."""
    west, south, east, north = box
    column, row = (west + east) // 2, (south + north) // 2
    return [
        (west, south, column, row),
        (column, south, east, row),
        (west, row, column, north),
        (column, row, east, north),
    ]


class Cut(NamedTuple):
    """A cut before column (axis 0) or row (axis 1) `at`; `worst` is its heavier side's load.

    Where the sides are to be cut again into several parts, it is the load of one such part.
    """

    axis: int
    at: int
    worst: float


class Running(NamedTuple):
    """What of a subset lies before each of the lines between the cells of an axis: [length + 1].

    `objects` is what they cost; `begun` and `ended` count the subscriptions whose first and whose
    last cell inside the box is before the line.
    """

    objects: Array
    begun: I64
    ended: I64


class Sides(NamedTuple):
    """The loads below and above every cut of an axis, f64[length - 1] both, and of the whole.

    All are of the same running sums: a side that has everything weighs what the whole does.
    """

    low: F64
    high: F64
    whole: float


def run_along(sample: Sample, subset: SampleSubset, axis: int) -> Running:
    """Run along an axis of a subset's box."""
    first, end = subset.box[axis], subset.box[axis + 2]
    places = (sample.object_column, sample.object_row)[axis][subset.objects] - first
    work = sample.object_work[subset.objects] if sample.object_work.size else None
    begins, ends = spans_along_axis(
        sample.cell, subset.subscriptions, np.array(subset.box, np.int32), axis
    )
    return Running(*map(_running, (np.bincount(places, work, end - first), begins, ends)))


def _running(counts: Array) -> Array:
    return np.concatenate([[0], np.cumsum(counts)])


def loads_of_halves(sample: Sample, subset: SampleSubset, axis: int, cost: LoadModel) -> Sides:
    """What every cut between two cells of an axis would leave on its sides."""
    objects, begun, ended = run_along(sample, subset, axis)
    return Sides(
        cost.of_counts(objects[1:-1], begun[1:-1]),
        cost.of_counts(objects[-1] - objects[1:-1], ended[-1] - ended[1:-1]),
        cost.of_counts(float(objects[-1]), float(begun[-1])),
    )


def find_cut(
    sample: Sample, subset: SampleSubset, cost: LoadModel, axis: int, low_share: float = 0.5
) -> Cut | None:
    """The cut across an axis that best gives the low side its share of the load.

    None if no cut leaves both sides lighter than the whole. Of equal cuts, as in an empty region,
    the middle one is taken.
    """
    low, high, whole = loads_of_halves(sample, subset, axis, cost)
    worst = np.maximum(low / low_share, high / (1.0 - low_share))
    worst[np.maximum(low, high) >= whole] = np.inf
    if not np.isfinite(worst).any():
        return None
    best = np.flatnonzero(worst == worst.min())
    at = best[best.size // 2]
    return Cut(axis, int(subset.box[axis] + at + 1), float(worst[at]))


def find_best_cut(
    sample: Sample, subset: SampleSubset, cost: LoadModel, low_share: float = 0.5
) -> Cut | None:
    """The cut of either axis whose heavier side comes out lighter.

    That is the one that balances better, repeats fewer subscriptions, or both.
    """
    cuts = [find_cut(sample, subset, cost, axis, low_share) for axis in (0, 1)]
    return min((cut for cut in cuts if cut is not None), key=lambda cut: cut.worst, default=None)


def make_cut(sample: Sample, subset: SampleSubset, cut: Cut) -> tuple[SampleSubset, SampleSubset]:
    """The two sides of a cut."""
    low, high = halve_box(subset.box, cut.axis, cut.at)
    return take_box(sample, subset, low), take_box(sample, subset, high)


def cut_space(
    sample: Sample, subset: SampleSubset, parts: int, cost: LoadModel
) -> list[SampleSubset]:
    """A subset in `parts` boxes, or in fewer where no further cut would lighten anything."""
    if parts == 1:
        return [subset]
    low_parts = parts // 2
    cut = find_best_cut(sample, subset, cost, low_parts / parts)
    if cut is None:
        return [subset]
    low, high = make_cut(sample, subset, cut)
    lows = cut_space(sample, low, low_parts, cost)
    # What the low side could not be cut into is left to the high one.
    return lows + cut_space(sample, high, parts - len(lows), cost)


def price_space(sample: Sample, subset: SampleSubset, most: int, cost: LoadModel) -> F64:
    """About the loads in all of a subset cut by space in 1 .. `most` parts: f64[most].

    Infinite where there are not so many parts. Found in one go, by halving the heaviest box again
    and again; `cut_space` gives every part the same share instead, for nearly the same sum.
    """
    prices = np.full(most, np.inf)
    boxes = [subset]
    loads = [weigh_subset(sample, subset, cost)]
    solid = 0.0  # the load of the boxes that turned out to have no cut
    for parts in range(1, most + 1):
        prices[parts - 1] = solid + sum(loads)
        cut = None
        while parts < most and boxes and cut is None:
            at = int(np.argmax(loads))
            heaviest, load = boxes.pop(at), loads.pop(at)
            cut = find_best_cut(sample, heaviest, cost)
            solid += load if cut is None else 0.0
        if cut is None:
            break
        sides = make_cut(sample, heaviest, cut)
        boxes += sides
        loads += [weigh_subset(sample, side, cost) for side in sides]
    return prices


class WeighedTerms(NamedTuple):
    """The terms that the subscriptions of a subset are posted under, heaviest first.

    `terms` i64[t] are positions in the lexicon; `of_none` is the load of the subscriptions that
    need no term and of the objects they draw, all of it in part 0.
    """

    terms: I64
    weights: F64
    of_none: float

    def most_parts(self) -> int:
        """Into how many parts these terms can be cut with something in each."""
        return max(1, self.terms.size + (self.of_none > 0.0))


def weigh_terms(
    sample: Sample, subset: SampleSubset, cost: LoadModel, within: I64 | None = None
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


def share_terms(sample: Sample, weighed: WeighedTerms, parts: int) -> I32:
    """The part of each term of the lexicon, -1 for one that is not posted: i32[lexicon].

    Heaviest first, each to the part with least weight so far.
    """
    loads = np.zeros(parts)
    loads[0] = weighed.of_none
    part_of_term = np.full(sample.lexicon.size, -1, np.int32)
    part_of_term[weighed.terms] = share_costs(weighed.weights, loads)[0]
    return part_of_term


def cut_terms(sample: Sample, subset: SampleSubset, parts: int, cost: LoadModel) -> I32:
    """A subset's posted terms in `parts` parts of even load: the part of each, else -1."""
    return share_terms(sample, weigh_terms(sample, subset, cost), parts)


def price_text(
    sample: Sample, subset: SampleSubset, weighed: WeighedTerms, most: int, cost: LoadModel
) -> F64:
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


def split_by_parts(sample: Sample, part_of_term: I32, parts: int) -> TextSplit:
    """The parts of terms as a split of a leaf; terms without a part are not listed."""
    listed = np.flatnonzero(part_of_term >= 0)
    return TextSplit(parts, sample.lexicon[listed], part_of_term[listed])


def _count_free(sample: Sample, subset: SampleSubset) -> int:
    """How many subscriptions of a subset need no term."""
    rows = subset.subscriptions
    posted = sample.post_offsets[rows] < sample.post_offsets[rows + 1]
    return int((sample.posts[sample.post_offsets[rows[posted]]] < 0).sum())
