"""Choose the cells to move from a worker: enough load with as few subscriptions as possible.

PS2Stream's minimum cost migration: of cells with a load and a size each, a set whose loads come to
`tau` at least and whose sizes sum up to least. `dp` finds the best by dynamic programming, `gr` a
good one by relative cost; `si` and `ra` are the paper's baselines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from placewire.model.arrays import F64, I32, I64, Bools
from placewire.plans.boolean.subset import (
    Box,
    SampleSubset,
    cut_terms,
    divide_by_text,
    measure_subset,
    split_by_parts,
    take_box,
    weigh_subset,
    whole_sample,
)
from placewire.plans.cost.model import LoadModel
from placewire.plans.cost.tornado import FineGrid, fit_grid
from placewire.plans.leaves import Leaves
from placewire.plans.rebalance.adjustment import (
    Adjustment,
    Cell,
    PartLoads,
    cells_of,
    leaves_of,
    parts_of_terms,
    sum_by_worker,
)
from placewire.plans.sample.sample import Sample

Select = Callable[[F64, F64, float], I64]
MOST_STATES = 200_000_000  # of dynamic programming: beyond it sizes are counted in larger units
SEED = 7


def select_gr(load: F64, size: F64, tau: float) -> I64:
    """Algorithm GR: cells by size over load; one that would complete the set is a candidate.

    Every candidate with all cells taken before it is an answer; the cheapest is kept.
    """
    order = np.argsort(size / np.maximum(load, 1e-300), kind="stable")
    taken: list[int] = []
    have, paid = 0.0, 0.0
    best: list[int] | None = None
    least = np.inf
    for cell in order.tolist():
        if have + load[cell] < tau:
            taken.append(cell)
            have += load[cell]
            paid += size[cell]
        elif paid + size[cell] < least:
            best, least = [*taken, cell], paid + size[cell]
    return np.array(best if best is not None else order, np.int64)


def select_dp(load: F64, size: F64, tau: float) -> I64:
    """The best set, sizes in whole units; greedy's answer bounds how far it has to look."""
    bound = float(size[select_gr(load, size, tau)].sum())
    unit = max(1.0, bound * load.size / MOST_STATES)
    whole = np.ceil(size / unit).astype(np.int64)
    most = int(whole[select_gr(load, size, tau)].sum())
    best = np.zeros(most + 1)
    took = np.zeros((load.size, most + 1), np.bool_)
    for cell in range(load.size):
        step = int(whole[cell])
        if step > most:
            continue
        with_it = np.full(most + 1, -np.inf)
        with_it[step:] = best[: most + 1 - step] + load[cell]
        took[cell] = with_it > best
        best = np.maximum(best, with_it)
    enough = np.flatnonzero(best >= tau)
    if enough.size == 0:
        return select_gr(load, size, tau)
    left = int(enough[0])
    chosen = []
    for cell in range(load.size - 1, -1, -1):
        if took[cell, left]:
            chosen.append(cell)
            left -= int(whole[cell])
    return np.array(chosen[::-1], np.int64)


def select_si(load: F64, size: F64, tau: float) -> I64:
    """The largest cells first."""
    return take_until(np.argsort(-size, kind="stable"), load, tau)


def select_ra(load: F64, size: F64, tau: float) -> I64:
    """Cells at random."""
    return take_until(np.random.default_rng(SEED).permutation(load.size), load, tau)


def take_until(order: I64, load: F64, tau: float) -> I64:
    """The first cells of an order whose loads come to `tau`."""
    enough = int(np.searchsorted(np.cumsum(load[order]), tau)) + 1
    return order[:enough]


SELECTS: dict[str, Select] = {"dp": select_dp, "gr": select_gr, "si": select_si, "ra": select_ra}
GRID = 64  # cells a side, PS2Stream's granularity
HEAVIEST = 8  # cells that phase I looks at
MOST_LEAVES = 2_000


class Ps2Rule(NamedTuple):
    """`most` is how many times the smallest load the largest may be; `select` is of `SELECTS`."""

    most: float = 1.5
    select: str = "gr"
    heaviest: int = HEAVIEST

    def level(self, loads: F64) -> bool:
        return not loads.any() or loads.max() <= self.most * loads.min()


USUAL = Ps2Rule()


def adjust_ps2(
    leaves: Leaves, loads: PartLoads, sample: Sample, cost: LoadModel, rule: Ps2Rule = USUAL
) -> Adjustment | None:
    """Both phases for one pair of workers after another, until all are level."""
    cells = cells_of(leaves, loads)
    before = sum_by_worker(cells, leaves.workers)
    grid = fit_grid(sample, GRID, GRID)
    moved, ways = 0.0, []
    for _ in range(leaves.workers):
        sums = sum_by_worker(cells, leaves.workers)
        over, under = int(np.argmax(sums)), int(np.argmin(sums))
        if rule.level(sums) or len(cells) > MOST_LEAVES:
            break
        cells, split = reshape_text(cells, over, under, sample, cost, rule)
        moved += split
        ways += ["text"] if split else []
        sums = sum_by_worker(cells, leaves.workers)
        tau = (sums[over] - sums[under]) / 2.0
        if tau <= 0.0:
            continue
        cells, went = migrate(cells, over, under, tau, grid, sample, cost, rule.select)
        moved += went
        ways += [rule.select] if went else []
        if not went and not split:
            break
    after = sum_by_worker(cells, leaves.workers)
    if not ways or after.max() >= before.max():
        return None
    way = " and ".join(dict.fromkeys(ways))
    return Adjustment(way, leaves_of(cells, leaves), after, moved)


def reshape_text(
    cells: list[Cell], over: int, under: int, sample: Sample, cost: LoadModel, rule: Ps2Rule
) -> tuple[list[Cell], float]:
    """Phase I: split heavy cells by text between the two workers, or merge parts that both have."""
    cells = list(cells)
    moved = 0.0
    whole = whole_sample(sample)
    of_over = [at for at, cell in enumerate(cells) if over in cell.worker]
    of_over.sort(key=lambda at: -float(cells[at].load[cells[at].worker == over].sum()))
    for at in of_over[: rule.heaviest]:
        cell = cells[at]
        subset = take_box(sample, whole, cell.box)
        if cell.split.parts == 1:
            changed = split_in_two(cell, subset, under, sample, cost)
        elif under in cell.worker:
            changed = merge_parts(cell, subset, over, under, sample, cost)
        else:
            changed = None
        if changed is not None:
            cells[at], went = changed
            moved += went
    return cells, moved


def split_in_two(
    cell: Cell, subset: SampleSubset, under: int, sample: Sample, cost: LoadModel
) -> tuple[Cell, float] | None:
    """A cell in two parts by text, the smaller at the other worker, if both cost less than it."""
    part_of_term = cut_terms(sample, subset, 2, cost)
    split = split_by_parts(sample, part_of_term, 2)
    if np.unique(split.part).size < 2:
        return None
    halves = divide_by_text(sample, subset, parts_of_terms(sample, split), 2)
    loads = np.array([weigh_subset(sample, half, cost) for half in halves])
    whole = weigh_subset(sample, subset, cost)
    if loads.sum() >= whole:
        return None
    sizes = np.array([float(half.subscriptions.size) for half in halves])
    scale = cell.total / max(whole, 1e-300)
    held = sizes * (float(cell.held.sum()) / max(subset.subscriptions.size, 1))
    worker = np.repeat(cell.worker, 2)
    smaller = int(np.argmin(sizes))
    worker[smaller] = under
    return Cell(cell.box, split, worker, loads * scale, held), float(held[smaller])


def merge_parts(
    cell: Cell, subset: SampleSubset, over: int, under: int, sample: Sample, cost: LoadModel
) -> tuple[Cell, float] | None:
    """A part of the one worker joined to one of the other's, if both cost less together."""
    one = int(np.flatnonzero(cell.worker == over)[0])
    other = int(np.flatnonzero(cell.worker == under)[0])
    part_of_term = parts_of_terms(sample, cell.split)
    apart = divide_by_text(sample, subset, part_of_term, cell.split.parts)
    joined = divide_by_text(
        sample, subset, np.where(part_of_term == one, other, part_of_term), cell.split.parts
    )
    two = weigh_subset(sample, apart[one], cost) + weigh_subset(sample, apart[other], cost)
    together = weigh_subset(sample, joined[other], cost)
    if two <= 0.0 or together >= two:
        return None
    worker, load, held = cell.worker.copy(), cell.load.copy(), cell.held.copy()
    worker[one] = under
    load[[one, other]] *= together / two
    # Still two parts, at one worker: a router sends an object there once.
    return Cell(cell.box, cell.split, worker, load, held), float(cell.held[one])


def migrate(
    cells: list[Cell],
    over: int,
    under: int,
    tau: float,
    grid: FineGrid,
    sample: Sample,
    cost: LoadModel,
    select: str,
) -> tuple[list[Cell], float]:
    """Phase II: cells of the one worker that come to `tau` go to the other."""
    owned = [np.flatnonzero(cell.worker == over).tolist() for cell in cells]
    units = [(at, part) for at, parts in enumerate(owned) for part in parts]
    pieces = [refine(cells[at], part, grid, sample, cost) for at, part in units]
    load = np.concatenate([piece.load.reshape(-1) for piece in pieces])
    size = np.concatenate([piece.held.reshape(-1) for piece in pieces])
    if load.sum() <= tau:
        return cells, 0.0
    some = np.flatnonzero(load > 0.0)
    chosen = np.zeros(load.size, np.bool_)
    chosen[some[SELECTS[select](load[some], np.maximum(size[some], 1e-9), tau)]] = True
    if chosen.sum() == some.size or load[chosen].sum() >= 2.0 * tau:
        return cells, 0.0  # a single cell too heavy to help
    out: dict[int, list[Cell]] = {}
    first = 0
    for (at, part), piece in zip(units, pieces, strict=True):
        went = chosen[first : first + piece.load.size].reshape(piece.load.shape)
        first += piece.load.size
        if went.any():
            base = out.get(at, [cells[at]])
            out[at] = [new for cell in base for new in divide(cell, part, piece, went, under)]
    rest = [new for at, cell in enumerate(cells) for new in out.get(at, [cell])]
    return rest, float(size[chosen].sum())


class Pieces(NamedTuple):
    """A part of a leaf cut along the lines of a grid.

    Columns of pieces begin at `column_line`, rows at `row_line`; loads and sizes f64[columns, rows]
    """

    column_line: I64
    row_line: I64
    load: F64
    held: F64


def refine(cell: Cell, part: int, grid: FineGrid, sample: Sample, cost: LoadModel) -> Pieces:
    """Cut a leaf along the grid; one that is split by text stays whole."""
    west, south, east, north = cell.box
    if cell.split.parts > 1:
        one = np.array([[1.0]])
        lines = np.array([west, east]), np.array([south, north])
        return Pieces(*lines, one * cell.load[part], one * cell.held[part])
    columns, rows = (
        np.unique(np.concatenate([[low], line[(line > low) & (line < high)], [high]]))
        for line, low, high in ((grid.column_line, west, east), (grid.row_line, south, north))
    )
    subset = take_box(sample, whole_sample(sample), cell.box)
    shape = columns.size - 1, rows.size - 1
    at = (
        np.searchsorted(columns, sample.object_column[subset.objects], "right") - 1,
        np.searchsorted(rows, sample.object_row[subset.objects], "right") - 1,
    )
    work = np.zeros(shape)
    each = sample.object_work[subset.objects] if sample.object_work.size else 1.0
    np.add.at(work, at, each)
    held = count_touching(sample.cell[subset.subscriptions], columns, rows)
    load = work * (cell.total / max(measure_subset(sample, subset), 1e-300))
    scale = float(cell.held.sum()) / max(subset.subscriptions.size, 1)
    return Pieces(columns, rows, load, held * scale)


def count_touching(ranges: I32, columns: I64, rows: I64) -> F64:
    """How many ranges of plan cells touch each piece: f64[columns, rows]."""
    ends = np.zeros((columns.size, rows.size))
    first_row = np.searchsorted(rows, np.maximum(ranges[:, 1], rows[0]), "right") - 1
    last_row = np.searchsorted(rows, np.minimum(ranges[:, 3], rows[-1] - 1), "right") - 1
    wraps = ranges[:, 0] > ranges[:, 2]
    for low, high, some in (
        (ranges[:, 0], ranges[:, 2], ~wraps),
        (ranges[:, 0], np.full(wraps.size, columns[-1]), wraps),
        (np.full(wraps.size, columns[0]), ranges[:, 2], wraps),
    ):
        inside = some & (low < columns[-1]) & (high >= columns[0])
        inside &= first_row <= last_row
        first = np.searchsorted(columns, np.maximum(low[inside], columns[0]), "right") - 1
        last = np.searchsorted(columns, np.minimum(high[inside], columns[-1] - 1), "right") - 1
        for column, row, sign in (
            (first, first_row[inside], 1.0),
            (last + 1, first_row[inside], -1.0),
            (first, last_row[inside] + 1, -1.0),
            (last + 1, last_row[inside] + 1, 1.0),
        ):
            np.add.at(ends, (column, row), sign)
    return ends.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]


def divide(cell: Cell, part: int, pieces: Pieces, went: Bools, under: int) -> list[Cell]:
    """A leaf after some pieces of one of its parts went to another worker."""
    if cell.split.parts > 1:
        worker = cell.worker.copy()
        worker[part] = under
        return [cell._replace(worker=worker)]
    out = []
    for gone in (False, True):
        for first, last, low, high in join_boxes(went == gone):
            inside = slice(first, last), slice(low, high)
            box: Box = (
                int(pieces.column_line[first]),
                int(pieces.row_line[low]),
                int(pieces.column_line[last]),
                int(pieces.row_line[high]),
            )
            worker = np.array([under], np.int32) if gone else cell.worker
            load, held = pieces.load[inside].sum(), pieces.held[inside].max()
            out.append(Cell(box, cell.split, worker, np.array([load]), np.array([held])))
    return out


def join_boxes(mask: Bools) -> list[tuple[int, int, int, int]]:
    """Rectangles that cover what is true of a mask once: runs of a column, widened while equal."""
    boxes: list[tuple[int, int, int, int]] = []
    left: dict[tuple[int, int], int] = {}  # runs that are open, and where they began
    for column in range(mask.shape[0] + 1):
        runs: set[tuple[int, int]] = set()
        if column < mask.shape[0]:
            edges = np.flatnonzero(np.diff(np.concatenate([[0], mask[column], [0]])))
            runs = {(int(a), int(b)) for a, b in edges.reshape(-1, 2)}
        for run in [run for run in left if run not in runs]:
            boxes.append((left.pop(run), column, *run))
        for run in runs:
            left.setdefault(run, column)
    return boxes
