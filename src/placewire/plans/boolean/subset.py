"""The subset of a sample that a node of a plan would get, and how it divides."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.plans.cost.model import LoadModel
from placewire.plans.kernels.parts import (
    cells_overlapping_box,
    points_inside_box,
    rows_to_parts,
    rows_worked_by_part,
    terms_counted,
)
from placewire.plans.sample.sample import SIDE, Sample

Box = tuple[int, int, int, int]

WORLD: Box = (0, 0, SIDE, SIDE)


class SampleSubset(NamedTuple):
    """Objects inside a box of plan cells and the subscriptions that touch it, as sample rows.

    `work` is what the objects cost where that is not all that they cost: in a part by text, their
    terms of other parts are left out.
    """

    box: Box
    objects: NDArray[np.int64]
    subscriptions: NDArray[np.int64]
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
    sample: Sample, subset: SampleSubset, part_of_term: NDArray[np.int32], parts: int
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


def _dot(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    return float(np.dot(one.astype(np.float64), other.astype(np.float64)))


def _thin(rows: NDArray[np.int64]) -> NDArray[np.int64]:
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
