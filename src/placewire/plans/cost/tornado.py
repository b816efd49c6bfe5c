"""Tornado's cost model: the subscriptions that an object meets in the lists of its fine cell.

The cells of the fine grid are as wide and as high as the mean subscription, which Tornado's
analysis finds best: larger ones hold subscriptions that their objects cannot match, and smaller
ones hold each subscription many times.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import read_only
from placewire.model.arrays import I32, I64
from placewire.plans.boolean.subset import Box
from placewire.plans.cost.model import Rows
from placewire.plans.kernels.stab_counts import (
    GridPoints,
    PostedRanges,
    postings_met_by_points,
    ranges_unwrapped,
)
from placewire.plans.sample.sample import SIDE, Sample


class FineGrid(NamedTuple):
    """columns x rows cells that tile the world, finest where the sample lies.

    Cell (i, j) has the plan columns column_line[i] up to column_line[i + 1] and the plan rows
    row_line[j] up to row_line[j + 1]. `column_of` and `row_of` i32[SIDE] lead back.
    """

    column_line: I32
    row_line: I32
    column_of: I32
    row_of: I32

    @property
    def columns(self) -> int:
        return int(self.column_line.size) - 1

    @property
    def rows(self) -> int:
        return int(self.row_line.size) - 1

    def in_plan_cells(self, box: Box) -> Box:
        """A box of fine cells (ends outside) as one of plan cells."""
        west, east = self.column_line[[box[0], box[2]]].tolist()
        south, north = self.row_line[[box[1], box[3]]].tolist()
        return west, south, east, north

    def ranges(self, cell: I32) -> I32:
        """Ranges i32[m, 4] of plan cells (all inside) as ranges of fine cells.

        One over the antimeridian keeps first > last column; if both its ends fall into one fine
        column it becomes the range of every column.
        """
        fine = np.empty_like(cell)
        fine[:, 0::2] = self.column_of[cell[:, 0::2]]
        fine[:, 1::2] = self.row_of[cell[:, 1::2]]
        round_world = (cell[:, 0] > cell[:, 2]) & (fine[:, 0] <= fine[:, 2])
        fine[round_world, 0] = 0
        fine[round_world, 2] = self.columns - 1
        return fine


def make_grid(column_line: I32, row_line: I32) -> FineGrid:
    """The grid of these ascending lines, which begin at 0 and end at SIDE."""
    columns = np.arange(column_line.size - 1, dtype=np.int32)
    rows = np.arange(row_line.size - 1, dtype=np.int32)
    return FineGrid(
        column_line.astype(np.int32),
        row_line.astype(np.int32),
        np.repeat(columns, np.diff(column_line)),
        np.repeat(rows, np.diff(row_line)),
    )


def fit_grid(sample: Sample, least: int, most: int) -> FineGrid:
    """Cells of the mean subscription's size, `least` to `most` a side over the sample's objects.

    Plan cells are not divided, so a small sample has fewer; the outermost cells reach to the edges
    of the world.
    """
    west, south, east, north = bound_sample(sample)
    width, height = mean_sides(sample)
    return make_grid(
        spread_lines(west, east, width, least, most),
        spread_lines(south, north, height, least, most),
    )


def bound_sample(sample: Sample) -> Box:
    """The box of plan cells (ends outside) of all objects; without any, of all subscriptions."""
    if sample.objects:
        columns, rows = sample.object_column, sample.object_row
    elif sample.subscriptions and (sample.cell[:, 0] <= sample.cell[:, 2]).all():
        columns, rows = sample.cell[:, 0::2], sample.cell[:, 1::2]
    else:
        return 0, 0, SIDE, SIDE
    return int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1


def mean_sides(sample: Sample) -> tuple[float, float]:
    """The mean width and height of subscriptions in plan cells, at least 1.

    A side of w cells touches w + 1 of them on average, so the differences of the ends are right.
    """
    if sample.subscriptions == 0:
        return 1.0, 1.0
    width = (sample.cell[:, 2] - sample.cell[:, 0]) % SIDE
    height = sample.cell[:, 3] - sample.cell[:, 1]
    return max(1.0, float(width.mean())), max(1.0, float(height.mean()))


def spread_lines(first: int, end: int, side: float, least: int, most: int) -> I32:
    """Lines about `side` apart from `first` to `end`, the outer two moved to the world's edges."""
    extent = end - first
    count = min(max(round(extent / side), least), most, extent)
    lines = first + np.arange(count + 1, dtype=np.int64) * extent // count
    lines[0], lines[-1] = 0, SIDE
    return lines.astype(np.int32)


def sum_prefixes(cells: I64) -> I64:
    """Sums of all cells before each crossing of lines: i64[columns + 1, rows + 1]."""
    sums = np.zeros((cells.shape[0] + 1, cells.shape[1] + 1), np.int64)
    sums[1:, 1:] = cells.cumsum(axis=0).cumsum(axis=1)
    return sums


def sum_box(sums: I64, box: Box) -> int:
    """The sum over the cells of a box (ends outside)."""
    west, south, east, north = box
    return int(sums[east, north] - sums[west, north] - sums[east, south] + sums[west, south])


def sum_sides(sums: I64, box: Box, axis: int) -> I64:
    """The sums of the low sides of all cuts of a box, between its columns (axis 0) or rows (1)."""
    west, south, east, north = box
    if axis == 0:
        along = sums[west:east, north] - sums[west:east, south]
    else:
        along = sums[east, south:north] - sums[west, south:north]
    return along[1:] - along[0]


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

    def of_objects(self, sample: Sample, grid: FineGrid, objects: Rows, subscriptions: Rows) -> I64:
        """The postings of the picked subscriptions that each picked object meets."""
        pieces, piece_rows = ranges_unwrapped(grid.ranges(sample.cell), subscriptions, grid.columns)
        points = GridPoints(
            grid.column_of[sample.object_column[objects]],
            grid.row_of[sample.object_row[objects]],
            objects,
            read_only(sample.term_offsets),
            read_only(sample.terms),
        )
        posted = PostedRanges(
            pieces, piece_rows, read_only(sample.post_offsets), read_only(sample.posts)
        )
        return postings_met_by_points(
            points, posted, sample.lexicon.size, np.array([grid.columns, grid.rows], np.int64)
        )

    def of_cells(self, sample: Sample, grid: FineGrid) -> I64:
        """The cost of each fine cell: i64[columns, rows]."""
        objects, subscriptions = np.arange(sample.objects), np.arange(sample.subscriptions)
        met = self.of_objects(sample, grid, objects, subscriptions)
        cells = np.zeros((grid.columns, grid.rows), np.int64)
        at = (grid.column_of[sample.object_column], grid.row_of[sample.object_row])
        np.add.at(cells, at, met)
        return cells

    def cost(
        self, sample: Sample, objects: Rows, subscriptions: Rows, postings: float = 0.0
    ) -> float:
        return float(self.of_objects(sample, self.grid(sample), objects, subscriptions).sum())


TORNADO = TornadoCost()
