"""An adjustment of the plan in force: its leaves as cells with measured loads, and what moves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.model.arrays import F64, I32
from placewire.plans.allocation import sum_loads
from placewire.plans.boolean.subset import Box, SampleSubset, divide_by_text, take_box, weigh_subset
from placewire.plans.cost.model import LoadModel
from placewire.plans.leaves import NO_SPLIT, Leaves, TextSplit, make_leaves
from placewire.plans.sample.sample import Sample

HALF = np.uint64(32)


class PartLoads(NamedTuple):
    """What each part of a plan's leaves costs and holds: f64[parts] each.

    `load` is what its recent objects cost its worker, `held` how many subscriptions it has.
    """

    load: F64
    held: F64


class Cell(NamedTuple):
    """A leaf with its parts: workers i32, loads and subscriptions f64 of each."""

    box: Box
    split: TextSplit
    worker: I32
    load: F64
    held: F64

    @property
    def total(self) -> float:
        return float(self.load.sum())


class Adjustment(NamedTuple):
    """An adjusted plan: by which way, the workers' loads then, and the subscriptions that move."""

    way: str
    leaves: Leaves
    loads: F64
    moved: float  # subscriptions


def cells_of(leaves: Leaves, loads: PartLoads) -> list[Cell]:
    """A plan's leaves one by one."""
    cells = []
    for leaf in range(leaves.total):
        first, last = leaves.part_offsets[leaf : leaf + 2]
        some = slice(*leaves.term_offsets[leaf : leaf + 2].tolist())
        split = NO_SPLIT
        if last - first > 1:
            split = TextSplit(int(last - first), leaves.terms[some], leaves.term_part[some])
        west, south, east, north = leaves.box[leaf].tolist()
        cells.append(
            Cell(
                (west, south, east, north),
                split,
                leaves.part_worker[first:last],
                loads.load[first:last],
                loads.held[first:last],
            )
        )
    return cells


def leaves_of(cells: list[Cell], like: Leaves) -> Leaves:
    """The inverse of `cells_of`."""
    return make_leaves(
        like.name,
        like.workers,
        like.summary,
        [cell.box for cell in cells],
        [cell.split for cell in cells],
        [int(worker) for cell in cells for worker in cell.worker],
    )


def sum_by_worker(cells: list[Cell], workers: int) -> F64:
    """The load of each worker."""
    return sum_loads(
        np.concatenate([cell.worker for cell in cells]),
        np.concatenate([cell.load for cell in cells]),
        workers,
    )


def weigh_cell(
    sample: Sample, around: SampleSubset, box: Box, split: TextSplit, cost: LoadModel
) -> tuple[F64, F64]:
    """What the parts of a box would cost and hold by the sample; it lies in subset `around`."""
    subset = take_box(sample, around, box)
    subsets = [subset]
    if split.parts > 1:
        subsets = divide_by_text(sample, subset, parts_of_terms(sample, split), split.parts)
    loads = np.array([weigh_subset(sample, part, cost) for part in subsets])
    held = np.array([float(part.subscriptions.size) for part in subsets])
    return loads, held


def reweigh(sample: Sample, looked: F64, posting_work: float) -> Sample:
    """Replace the estimated work of objects by the candidates they look at: looked f64[objects].

    Terms share it in proportion to their estimates. An object that looks at nothing is not sent
    and causes no work.
    """
    pairs = np.diff(sample.term_offsets)
    near = sample.pair_work if sample.pair_work.size else np.zeros(sample.terms.size)
    of_object = np.repeat(np.arange(sample.objects), pairs)
    near = near + 1e-6  # a term that nothing is near may still have a list to look at
    sums = np.bincount(of_object, near, sample.objects)
    each = near * (posting_work * looked / np.maximum(sums, 1e-300))[of_object]
    return sample._replace(
        pair_work=each, object_work=np.where(looked > 0.0, 1.0 + posting_work * looked, 0.0)
    )


def parts_of_terms(sample: Sample, split: TextSplit) -> I32:
    """The part of each term of the lexicon; one that is not listed goes by its hash."""
    part = ((sample.lexicon >> HALF) % np.uint64(split.parts)).astype(np.int32)
    at = np.searchsorted(sample.lexicon, split.terms)
    at = np.minimum(at, max(sample.lexicon.size - 1, 0))
    known = sample.lexicon[at] == split.terms if sample.lexicon.size else np.zeros(0, np.bool_)
    part[at[known]] = split.part[known]
    return part
