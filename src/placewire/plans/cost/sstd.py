"""SSTD's workload: what a random query of six kinds costs a part of a plan."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.plans.kernels.parts import terms_present
from placewire.plans.sample.sample import CRQ, KINDS, LONGEST, SKQ, SRQ, Sample
from placewire.plans.sample.statistics import CellStatistics, describe_cell


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

    def weigh_kinds(self, cell: CellStatistics) -> NDArray[np.float64]:
        """f64[6]: the workload of one object of the cell, were all keywords there.

        A snapshot query looks at the objects that are there, a continuous one at those that arrive
        in its life.
        """
        touching = cell.kinds / max(cell.total, 1)
        looks = np.ones(KINDS)
        looks[CRQ:] = cell.durations[CRQ:] / cell.span
        weights: NDArray[np.float64] = np.array(self[:KINDS]) * touching * looks
        return weights

    def weigh_cell(self, cell: CellStatistics, present: NDArray[np.bool_]) -> float:
        """The workload of a cell whose objects have the terms `present` bool[lexicon]."""
        weights = self.weigh_kinds(cell) * cover_keywords(cell, present)
        return float(cell.objects * weights.sum())

    def cost(
        self,
        sample: Sample,
        objects: NDArray[np.int64],
        subscriptions: NDArray[np.int64],
        postings: float = 0.0,
    ) -> float:
        cell = describe_cell(sample, objects, subscriptions)
        size = sample.lexicon.size
        return self.weigh_cell(
            cell, terms_present(sample.term_offsets, sample.terms, objects, size)
        )


SSTD = SstdCost()


def cover_keywords(cell: CellStatistics, present: NDArray[np.bool_]) -> NDArray[np.float64]:
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
