"""Tornado's cost: the subscriptions that an object meets in the lists of its fine cell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.plans.boolean.fine_grid import FineGrid, fit_grid
from placewire.plans.kernels.stab_counts import postings_met_by_points, ranges_unwrapped
from placewire.plans.sample.sample import Sample


class TornadoCost(NamedTuple):
    """The sum over objects of the postings that each meets, in a fine grid of bounded sides.

    A cell lists every subscription that touches it, whether or not it contains the object: an `any`
    (Tornado's OVERLAPS) under each keyword, an `all` (CONTAINS) under its least frequent one, one
    that needs no term under every object. An object meets the lists of its terms; a subscription
    that two of them find is met twice, as the lengths of the lists say. Cells and boxes of cells
    add up, so the cost of a box of fine cells does not depend on how it is cut.
    """

    least: int = 64
    most: int = 1024
    name: str = "tornado"

    @property
    def by_part(self) -> bool:
        return False

    def grid(self, sample: Sample) -> FineGrid:
        """The fine grid in which the sample is counted."""
        return fit_grid(sample, self.least, self.most)

    def of_objects(
        self,
        sample: Sample,
        grid: FineGrid,
        objects: NDArray[np.int64],
        subscriptions: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """The postings of the picked subscriptions that each picked object meets."""
        pieces, piece_rows = ranges_unwrapped(grid.ranges(sample.cell), subscriptions, grid.columns)
        met: NDArray[np.int64] = postings_met_by_points(
            grid.column_of[sample.object_column[objects]],
            grid.row_of[sample.object_row[objects]],
            objects,
            sample.term_offsets,
            sample.terms,
            pieces,
            piece_rows,
            sample.post_offsets,
            sample.posts,
            sample.lexicon.size,
            np.array([grid.columns, grid.rows], np.int64),
        )
        return met

    def of_cells(self, sample: Sample, grid: FineGrid) -> NDArray[np.int64]:
        """The cost of each fine cell: i64[columns, rows]."""
        objects, subscriptions = np.arange(sample.objects), np.arange(sample.subscriptions)
        met = self.of_objects(sample, grid, objects, subscriptions)
        cells = np.zeros((grid.columns, grid.rows), np.int64)
        at = (grid.column_of[sample.object_column], grid.row_of[sample.object_row])
        np.add.at(cells, at, met)
        return cells

    def cost(
        self,
        sample: Sample,
        objects: NDArray[np.int64],
        subscriptions: NDArray[np.int64],
        postings: float = 0.0,
    ) -> float:
        return float(self.of_objects(sample, self.grid(sample), objects, subscriptions).sum())


TORNADO = TornadoCost()
