"""SSTD's cost model: statistics of the queries of each cell, and the workload they make.

There are six kinds of queries: range, nearest and trending ones, each answered once (snapshot) or
standing (continuous).
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from placewire.model.arrays import F64, I32, I64, Bools
from placewire.plans.boolean.subset import quarter_box, take_box, whole_sample
from placewire.plans.cost.model import Rows
from placewire.plans.kernels.parts import rows_to_histograms, terms_counted
from placewire.plans.sample.questions import traits_of
from placewire.plans.sample.sample import CRQ, KINDS, LONGEST, SKQ, SRQ, Sample

LIVES = 32  # classes of duration: class i ends at 2^i


class CellStatistics(NamedTuple):
    """The objects of one cell, which came in `span`, and its rows of `total` in the whole sample.

    By kind: `lengths` i64[6, LONGEST + 1] counts rows by their number of keywords, `lives` and
    `lived` (i64 and f64[6, LIVES]) count rows and sum durations by class of duration. Keywords of
    kind k are keyword_offsets[k]:keyword_offsets[k + 1], ascending, with their number of rows.
    """

    objects: int
    span: float
    total: int
    lengths: I64
    lives: I64
    lived: F64
    keyword_offsets: I64
    keywords: I32
    keyword_counts: I64

    @property
    def rate(self) -> float:
        """The objects that arrive in a unit of time: E_obj."""
        return self.objects / self.span

    @property
    def kinds(self) -> I64:
        """i64[6]: the rows of each kind."""
        return self.lengths.sum(axis=1)

    @property
    def durations(self) -> F64:
        """f64[6]: the mean duration of each kind, 0 where there are no rows."""
        return self.lived.sum(axis=1) / np.maximum(self.kinds, 1)

    @property
    def chances(self) -> F64:
        """f64[6, LONGEST + 1]: how probable each number of keywords is in a row of a kind."""
        return self.lengths / np.maximum(self.kinds, 1)[:, None]

    def keywords_of(self, kind: int) -> tuple[I32, I64]:
        """The keywords of the rows of a kind and how many rows have each."""
        of_kind = slice(*self.keyword_offsets[kind : kind + 2])
        return self.keywords[of_kind], self.keyword_counts[of_kind]


def describe_cell(sample: Sample, objects: Rows, subscriptions: Rows) -> CellStatistics:
    """The statistics of some objects and rows of a sample."""
    traits = traits_of(sample)
    shape = (KINDS, LONGEST + 1, LIVES)
    lengths, lives, lived = rows_to_histograms(
        subscriptions, traits.kind, traits.length, traits.duration, shape
    )
    kind = traits.kind[subscriptions]
    found = [np.empty(0, np.int64)] * KINDS
    counts = list(found)
    for k in np.flatnonzero(lengths.any(axis=1)):
        of_kind = terms_counted(
            traits.keyword_offsets, traits.keywords, subscriptions[kind == k], sample.lexicon.size
        )
        found[k] = np.flatnonzero(of_kind)
        counts[k] = of_kind[found[k]]
    return CellStatistics(
        objects=int(objects.size),
        span=traits.span,
        total=sample.subscriptions,
        lengths=lengths,
        lives=lives,
        lived=lived,
        keyword_offsets=np.cumsum([0, *(terms.size for terms in found)], dtype=np.int64),
        keywords=np.concatenate(found).astype(np.int32),
        keyword_counts=np.concatenate(counts),
    )


class SstdCost(NamedTuple):
    """The workload of a part under a random query (equation 2 of SSTD).

    The constants weigh the kinds: what one object costs one query that looks at it. SSTD has them
    all equal.
    """

    per_srq: float = 1.0
    per_skq: float = 1.0
    per_stq: float = 1.0
    per_crq: float = 1.0
    per_ckq: float = 1.0
    per_ctq: float = 1.0
    name: str = "sstd"

    @property
    def by_part(self) -> bool:
        return True

    def weigh_kinds(self, cell: CellStatistics) -> F64:
        """f64[6]: the workload of one object of the cell, were all keywords there.

        A snapshot query looks at the objects that are there, a continuous one at those that arrive
        in its life.
        """
        touching = cell.kinds / max(cell.total, 1)
        looks = np.ones(KINDS)
        looks[CRQ:] = cell.durations[CRQ:] / cell.span
        return np.array(self[:KINDS]) * touching * looks

    def weigh_cell(self, cell: CellStatistics, present: Bools) -> float:
        """The workload of a cell whose objects have the terms `present` bool[lexicon]."""
        weights = self.weigh_kinds(cell) * cover_keywords(cell, present)
        return float(cell.objects * weights.sum())

    def cost(
        self, sample: Sample, objects: Rows, subscriptions: Rows, postings: float = 0.0
    ) -> float:
        cell = describe_cell(sample, objects, subscriptions)
        size = sample.lexicon.size
        counts = terms_counted(sample.term_offsets, sample.terms, objects, size)
        return self.weigh_cell(cell, counts > 0)


SSTD = SstdCost()


def cover_keywords(cell: CellStatistics, present: Bools) -> F64:
    """f64[6]: how probably all keywords of a query are among the terms present (equation 1).

    Each keyword is there with the same chance, independently. It is 1 for kinds that do not ask:
    trending queries have no keywords, continuous ones wait for objects to come.
    """
    chance = np.ones(KINDS)
    for kind in (SRQ, SKQ):
        if not cell.lengths[kind].any():
            continue
        keywords, counts = cell.keywords_of(kind)
        share = counts[present[keywords]].sum() / max(counts.sum(), 1)
        chance[kind] = (cell.chances[kind] * share ** np.arange(LONGEST + 1)).sum()
    return chance


class Statistics(NamedTuple):
    """A quadtree of cells, the first of them the world.

    `box` i32[cells, 4] as in a plan; the four children of a cell follow one another from
    `first_child`, -1 where there are none.
    """

    box: I32
    first_child: I32
    cells: list[CellStatistics]

    @property
    def objects(self) -> I64:
        """i64[cells]: the objects of each cell."""
        return np.array([cell.objects for cell in self.cells], np.int64)

    @property
    def probabilities(self) -> F64:
        """f64[cells, 6]: how probable it is that a query of a kind touches a cell."""
        touching = np.array([cell.kinds for cell in self.cells])
        return touching / np.maximum(touching[0], 1)


def gather_statistics(sample: Sample, *, capacity: int = 4096, most: int = 1024) -> Statistics:
    """Build the tree, always quartering the fullest cell.

    It ends when no cell has more than `capacity` objects and rows, or with `most` cells.
    """
    sample = sample._replace(traits=traits_of(sample))
    whole = whole_sample(sample)
    boxes, first_child = [whole.box], [-1]
    cells = [describe_cell(sample, whole.objects, whole.subscriptions)]
    heap = [(-(whole.objects.size + whole.subscriptions.size), 0, whole)]
    while heap and len(cells) + 4 <= most:
        fullness, at, subset = heapq.heappop(heap)
        if -fullness <= capacity:
            break
        if subset.box[2] - subset.box[0] == 1:
            continue
        first_child[at] = len(cells)
        for box in quarter_box(subset.box):
            part = take_box(sample, subset, box)
            heapq.heappush(heap, (-(part.objects.size + part.subscriptions.size), len(cells), part))
            boxes.append(box)
            first_child.append(-1)
            cells.append(describe_cell(sample, part.objects, part.subscriptions))
    return Statistics(np.array(boxes, np.int32), np.array(first_child, np.int32), cells)
