"""SSTD's adjustments: PM, FM and FG, each only if the one before did not restore balance.

PM reassigns the leaves of the most and the least loaded worker, FM those of all workers by
Karmarkar and Karp with the assignment of least transfer, FG first splits heavy leaves and merges
light ones. A leaf is split by space where its subscriptions differ from quarter to quarter, else
by text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.model.arrays import F64, I32
from placewire.plans.allocation import allocate, assign_least, sum_loads
from placewire.plans.boolean.subset import (
    Box,
    SampleSubset,
    cut_terms,
    quarter_box,
    split_by_parts,
    take_box,
    whole_sample,
)
from placewire.plans.cost.model import LoadModel
from placewire.plans.leaves import NO_SPLIT, Leaves, TextSplit
from placewire.plans.rebalance.adjustment import (
    Adjustment,
    Cell,
    PartLoads,
    cells_of,
    leaves_of,
    sum_by_worker,
    weigh_cell,
)
from placewire.plans.sample.sample import Sample

WAYS = ("PM", "FM", "FG")
EPSILON = 0.5
MOST_SPLITS = 64
TEXT_PARTS = 4


class SstdRule(NamedTuple):
    """`most` is how many times the mean the largest load may be; `ways` are tried in turn."""

    most: float = 1.2
    ways: tuple[str, ...] = WAYS
    epsilon: float = EPSILON

    def level(self, loads: F64) -> bool:
        return not loads.any() or loads.max() <= self.most * loads.mean()


USUAL = SstdRule()


def adjust_sstd(
    leaves: Leaves, loads: PartLoads, sample: Sample, cost: LoadModel, rule: SstdRule = USUAL
) -> Adjustment | None:
    """The first way that restores balance, or else the best of all; None if none helps."""
    cells = cells_of(leaves, loads)
    before = sum_by_worker(cells, leaves.workers)
    best: Adjustment | None = None
    for way in rule.ways:
        if way == "PM":
            found = reassign_pair(cells, leaves)
        elif way == "FM":
            found = reassign_all("FM", cells, leaves)
        else:
            grown = regrow(cells, leaves.workers, sample, cost, rule)
            found = reassign_all("FG", grown, leaves)
        if found.loads.max() < min(before.max(), np.inf if best is None else best.loads.max()):
            best = found
        if best is not None and rule.level(best.loads):
            break
    return best


def reassign_pair(cells: list[Cell], leaves: Leaves) -> Adjustment:
    """PM: reassign the parts of the most and the least loaded worker to these two."""
    loads = sum_by_worker(cells, leaves.workers)
    pair = np.array([int(np.argmax(loads)), int(np.argmin(loads))])
    owner, load, held = flatten(cells)
    picked = np.flatnonzero(np.isin(owner, pair))
    share = allocate(load[picked], 2)
    ways = [pair[share], pair[1 - share]]
    moved = [float(held[picked][way != owner[picked]].sum()) for way in ways]
    after = owner.copy()
    after[picked] = ways[int(np.argmin(moved))]
    return adjusted("PM", cells, after, leaves, min(moved))


def reassign_all(way: str, cells: list[Cell], leaves: Leaves) -> Adjustment:
    """FM: all parts in as many sets as there are workers, each to the worker that has most of it.

    `held` of a part counts at the worker that had its place before.
    """
    owner, load, held = flatten(cells)
    share = allocate(load, leaves.workers)
    kept = np.zeros((leaves.workers, leaves.workers))
    np.add.at(kept, (share, owner), held)
    of_set = assign_least(-kept)
    after = of_set[share].astype(np.int32)
    moved = float(held[after != owner].sum())
    return adjusted(way, cells, after, leaves, moved)


def adjusted(way: str, cells: list[Cell], owner: I32, leaves: Leaves, moved: float) -> Adjustment:
    """The plan of these cells with other workers."""
    ends = np.cumsum([cell.worker.size for cell in cells])
    moved_cells = [
        cell._replace(worker=part)
        for cell, part in zip(cells, np.split(owner, ends[:-1]), strict=True)
    ]
    loads = sum_by_worker(moved_cells, leaves.workers)
    return Adjustment(way, leaves_of(moved_cells, leaves), loads, moved)


def flatten(cells: list[Cell]) -> tuple[I32, F64, F64]:
    """Worker, load and subscriptions of all parts in a row."""
    return (
        np.concatenate([cell.worker for cell in cells]),
        np.concatenate([cell.load for cell in cells]),
        np.concatenate([cell.held for cell in cells]),
    )


def regrow(
    cells: list[Cell], workers: int, sample: Sample, cost: LoadModel, rule: SstdRule
) -> list[Cell]:
    """FG: split the heaviest leaf and merge four light quarters until parts divide evenly."""
    cells = list(cells)
    whole = whole_sample(sample)
    solid: set[Box] = set()
    for _ in range(MOST_SPLITS):
        loose = [at for at, cell in enumerate(cells) if cell.box not in solid]
        if not loose:
            break
        at = max(loose, key=lambda at: cells[at].total)
        heaviest = cells[at]
        halves = split_cell(heaviest, take_box(sample, whole, heaviest.box), sample, cost, rule)
        if len(halves) == 1 and halves[0].worker.size == heaviest.worker.size:
            solid.add(heaviest.box)
            continue
        cells[at : at + 1] = halves
        most = max(cell.total for cell in cells)
        cells = merge_lightest(cells, most)
        load = flatten(cells)[1]
        if rule.level(sum_loads(allocate(load, workers), load, workers)):
            break
    return cells


def split_cell(
    cell: Cell, subset: SampleSubset, sample: Sample, cost: LoadModel, rule: SstdRule
) -> list[Cell]:
    """A leaf in four quarters, or in parts by text; itself if it can be split neither way."""
    west, south, east, north = cell.box
    quarters = []
    if east - west > 1 and north - south > 1:
        quarters = quarter_box(cell.box)
    if quarters and likeness(sample, subset, quarters) <= rule.epsilon:
        return share_out(cell, [(box, cell.split) for box in quarters], sample, subset, cost)
    if cell.split.parts == 1:
        part_of_term = cut_terms(sample, subset, TEXT_PARTS, cost)
        split = split_by_parts(sample, part_of_term, TEXT_PARTS)
        if np.unique(split.part).size > 1:
            return share_out(cell, [(cell.box, split)], sample, subset, cost)
    if quarters:
        return share_out(cell, [(box, cell.split) for box in quarters], sample, subset, cost)
    return [cell]


def likeness(sample: Sample, subset: SampleSubset, quarters: list[Box]) -> float:
    """SSTD's h: how many of a leaf's subscriptions a quarter touches on average."""
    touching = [take_box(sample, subset, box).subscriptions.size for box in quarters]
    return sum(touching) / (4.0 * max(subset.subscriptions.size, 1))


def share_out(
    cell: Cell,
    pieces: list[tuple[Box, TextSplit]],
    sample: Sample,
    subset: SampleSubset,
    cost: LoadModel,
) -> list[Cell]:
    """A leaf's load and subscriptions among its pieces, in proportion to the sample's.

    Pieces by space keep the workers of the leaf's parts; parts by text begin at its first worker.
    """
    weighed = [weigh_cell(sample, subset, box, split, cost) for box, split in pieces]
    loads, held = (np.stack(column) for column in zip(*weighed, strict=True))
    by_text = len(pieces) == 1
    out = []
    for at, (box, split) in enumerate(pieces):
        if by_text:
            worker = np.full(split.parts, cell.worker[0], np.int32)
            load = loads[at] * (cell.total / max(float(loads.sum()), 1e-300))
            has = held[at] * (float(cell.held.sum()) / max(float(held.sum()), 1e-300))
        else:
            worker = cell.worker
            load = loads[at] * (cell.load / np.maximum(loads.sum(axis=0), 1e-300))
            has = held[at]
        out.append(Cell(box, split, worker, load, has))
    return out


def merge_lightest(cells: list[Cell], most: float) -> list[Cell]:
    """The four quarters of one box that weigh least together, as one leaf, if they may."""
    at_box = {cell.box: at for at, cell in enumerate(cells)}
    best, least = None, most
    for cell in cells:
        west, south, east, north = cell.box
        whole = (west, south, 2 * east - west, 2 * north - south)
        family = [at_box.get(box) for box in quarter_box(whole)] if east > west else [None]
        known = [at for at in family if at is not None]
        if len(known) < 4 or any(cells[at].split.parts > 1 for at in known):
            continue
        total = sum(cells[at].total for at in known)
        if total < least:
            best, least = (whole, known), total
    if best is None:
        return cells
    box, known = best
    heaviest = max(known, key=lambda at: float(cells[at].held.sum()))
    merged = Cell(
        box,
        NO_SPLIT,
        cells[heaviest].worker,
        np.array([sum(cells[at].total for at in known)]),
        np.array([max(float(cells[at].held.sum()) for at in known)]),
    )
    kept = [cell for at, cell in enumerate(cells) if at not in known]
    return [*kept, merged]
