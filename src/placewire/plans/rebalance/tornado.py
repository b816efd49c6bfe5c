"""Tornado's adjustments: split and merge, and shifts of a border between two neighbours.

Every worker has one box. The workers' total costs decide whether to act, and how. The sums along
columns and rows, which are read only for the workers concerned, decide where a box is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from placewire.model.arrays import F64, I32
from placewire.plans.allocation import sum_loads
from placewire.plans.boolean.subset import Box, halve_box
from placewire.plans.leaves import Leaves
from placewire.plans.rebalance.adjustment import Adjustment, PartLoads


class BorderLines(NamedTuple):
    """A worker's cost along plan columns and along plan rows: numbers ascending, and costs."""

    number: tuple[I32, I32]
    cost: tuple[F64, F64]

    def below(self, axis: int, at: int) -> float:
        """The share of the cost before a column (axis 0) or row (axis 1)."""
        total = float(self.cost[axis].sum())
        return float(self.cost[axis][self.number[axis] < at].sum()) / total if total else 0.0

    def cut(self, axis: int, low: int, high: int, share: float) -> int:
        """Where to cut between `low` and `high` so that about a share of the cost lies before."""
        running = np.cumsum(self.cost[axis]) / max(float(self.cost[axis].sum()), 1e-300)
        at = int(np.searchsorted(running, share))
        number = self.number[axis]
        best = [
            int(number[k]) + 1
            for k in (at - 1, at)
            if 0 <= k < number.size and low < number[k] + 1 < high
        ]
        middle = (low + high) // 2
        return min(best, key=lambda b: abs(self.below(axis, b) - share), default=middle)


Ask = Callable[[int], BorderLines]


class Operation(NamedTuple):
    """What would be done: its name, the largest of the costs concerned before and after, and how
    many subscriptions move; `boxes` gives the new boxes by leaf, when it is done."""

    name: str
    before: float
    after: float
    moved: float
    boxes: Callable[[], dict[int, Box]]

    @property
    def reduction(self) -> float:
        return self.before - self.after


def adjust_tornado(
    leaves: Leaves, loads: PartLoads, ask: Ask, transfer: float
) -> Adjustment | None:
    """The operation that takes most off the largest cost, if that is more than what it moves.

    `transfer` is what it costs to move a subscription. None where workers have other than a box.
    """
    parts = leaves.part_worker
    if parts.size != leaves.total or np.unique(parts).size != parts.size or leaves.total < 2:
        return None
    boxes: list[Box] = [(b[0], b[1], b[2], b[3]) for b in leaves.box.tolist()]
    heavy = int(np.argmax(loads.load))
    found = [*shifts(boxes, loads, heavy, ask), *splits(boxes, loads, heavy, ask)]
    best = max(found, key=lambda op: op.reduction, default=None)
    if best is None or best.reduction <= transfer * best.moved:
        return None
    box = leaves.box.copy()
    for leaf, new in best.boxes().items():
        box[leaf] = new
    after = sum_loads(parts, loads.load, leaves.workers)
    after[parts[heavy]] = best.after
    return Adjustment(best.name, leaves._replace(box=box), after, best.moved)


def shifts(boxes: list[Box], loads: PartLoads, heavy: int, ask: Ask) -> Iterator[Operation]:
    """Shifts of a border or a corner from the heaviest box to each of its neighbours."""
    for other in range(len(boxes)):
        if other == heavy:
            continue
        for axis in (0, 1):
            yield from shift_border(boxes, loads, heavy, other, axis, ask)
            yield from shift_corner(boxes, loads, heavy, other, axis, ask)


def shift_border(
    boxes: list[Box], loads: PartLoads, heavy: int, other: int, axis: int, ask: Ask
) -> Iterator[Operation]:
    """Two boxes that share a whole side across an axis: the border between them moves.

    Before it is chosen, it is assumed to level the two, and to move the same share of subscriptions
    as of cost.
    """
    a, b = boxes[heavy], boxes[other]
    across = 1 - axis
    if (a[across], a[across + 2]) != (b[across], b[across + 2]) or a[axis + 2] - a[axis] < 2:
        return
    if a[axis + 2] == b[axis]:
        low = True  # what stays is the low side
    elif b[axis + 2] == a[axis]:
        low = False
    else:
        return
    own, theirs = float(loads.load[heavy]), float(loads.load[other])
    level = (own + theirs) / 2.0
    if own <= 0.0 or level >= own:
        return
    share = (own - level) / own

    def boxes_then() -> dict[int, Box]:
        lines = ask(heavy)
        at = lines.cut(axis, a[axis], a[axis + 2], 1.0 - share if low else share)
        first, second = halve_box(a, axis, at)
        stays, goes = (first, second) if low else (second, first)
        grown = (min(b[0], goes[0]), min(b[1], goes[1]), max(b[2], goes[2]), max(b[3], goes[3]))
        return {heavy: stays, other: grown}

    name = "horizontal shift" if axis == 1 else "vertical shift"
    yield Operation(name, own, level, share * float(loads.held[heavy]), boxes_then)


def shift_corner(
    boxes: list[Box], loads: PartLoads, heavy: int, other: int, axis: int, ask: Ask
) -> Iterator[Operation]:
    """A neighbour along part of a side, flush with a corner: it takes the adjacent strip."""
    a, b = boxes[heavy], boxes[other]
    across = 1 - axis
    if a[axis + 2] != b[axis] and b[axis + 2] != a[axis]:
        return
    flush_low = b[across] == a[across] and b[across + 2] < a[across + 2]
    flush_high = b[across + 2] == a[across + 2] and b[across] > a[across]
    if not flush_low and not flush_high:
        return
    at = b[across + 2] if flush_low else b[across]
    below = ask(heavy).below(across, at)
    share = below if flush_low else 1.0 - below
    own, theirs = float(loads.load[heavy]), float(loads.load[other])
    first, second = halve_box(a, across, at)
    stays, goes = (second, first) if flush_low else (first, second)
    grown = (min(b[0], goes[0]), min(b[1], goes[1]), max(b[2], goes[2]), max(b[3], goes[3]))
    yield Operation(
        "corner shift",
        own,
        max(own * (1.0 - share), theirs + own * share),
        share * float(loads.held[heavy]),
        lambda: {heavy: stays, other: grown},
    )


def splits(boxes: list[Box], loads: PartLoads, heavy: int, ask: Ask) -> Iterator[Operation]:
    """Split the heaviest box in two and merge two light neighbours; one worker moves."""
    pair = lightest_pair(boxes, loads, heavy)
    a = boxes[heavy]
    if pair is None:
        return
    lines = ask(heavy)
    cuts = []
    for axis in (0, 1):
        if a[axis + 2] - a[axis] > 1:
            at = lines.cut(axis, a[axis], a[axis + 2], 0.5)
            cuts.append((abs(lines.below(axis, at) - 0.5), axis, at))
    if not cuts:
        return
    off, axis, at = min(cuts)
    one, two = pair
    first, second = halve_box(a, axis, at)
    b, c = boxes[one], boxes[two]
    merged = (min(b[0], c[0]), min(b[1], c[1]), max(b[2], c[2]), max(b[3], c[3]))
    own = float(loads.load[heavy])
    joined = float(loads.load[one] + loads.load[two])
    yield Operation(
        "split and merge",
        own,
        max(own * (0.5 + off), joined),
        float(loads.held[heavy]) / 2.0 + float(loads.held[two]),
        lambda: {heavy: first, one: merged, two: second},
    )


def lightest_pair(boxes: list[Box], loads: PartLoads, heavy: int) -> tuple[int, int] | None:
    """Two boxes that share a whole side and cost least together, the one that moves last."""
    best, least = None, np.inf
    for one, b in enumerate(boxes):
        for two, c in enumerate(boxes):
            if one == two or heavy in (one, two):
                continue
            for axis in (0, 1):
                across = 1 - axis
                touch = b[axis + 2] == c[axis]
                if touch and (b[across], b[across + 2]) == (c[across], c[across + 2]):
                    total = float(loads.load[one] + loads.load[two])
                    if total < least:
                        keeps = one if loads.held[one] >= loads.held[two] else two
                        best, least = (keeps, one + two - keeps), total
    return best
