"""Places in parts: a kd-tree over points whose leaves have like products of rows and objects."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class PointTree(NamedTuple):
    """A tree of cuts: node i asks whether a coordinate of `axis` is at least `cut`.

    Then it goes on with `above`, otherwise with `below`; a negative number is a leaf, -1 the first.
    """

    axis: NDArray[np.int8]
    cut: NDArray[np.float64]
    below: NDArray[np.int32]
    above: NDArray[np.int32]

    def leaves_of(self, lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.int32]:
        """The leaf of each point."""
        at = np.zeros(lon.size, np.int32)
        if self.axis.size == 0:
            return at
        going = np.arange(lon.size)
        while going.size:
            node = at[going]
            value = np.where(self.axis[node] == 0, lon[going], lat[going])
            at[going] = np.where(value >= self.cut[node], self.above[node], self.below[node])
            going = going[at[going] >= 0]
        return -1 - at


ONE_LEAF = PointTree(
    np.empty(0, np.int8), np.empty(0), np.empty(0, np.int32), np.empty(0, np.int32)
)


def grow_point_tree(
    rows: NDArray[np.float64],
    objects: NDArray[np.float64],
    leaves: int,
    cost: NDArray[np.float64] | None = None,
) -> PointTree:
    """Cut points of rows f64[n, 2] into leaves, by turns along both axes.

    Each cut leaves the two sides costs that are to each other as the numbers of leaves that they
    still have to give. What a side costs is rows times objects there, or the sum of `cost` f64[n].
    """
    axes: list[int] = []
    cuts: list[float] = []
    sides: list[list[int]] = []
    leaf = 0

    def grow(mine: NDArray[np.int64], theirs: NDArray[np.int64], leaves: int, depth: int) -> int:
        nonlocal leaf
        if leaves == 1:
            leaf += 1
            return -leaf
        axis = depth % 2
        lower = leaves // 2
        here, there = rows[mine, axis], objects[theirs, axis]
        if cost is None:
            cut = best_cut(here, there, lower / leaves)
        else:
            cut = level_cut(here, cost[mine], lower / leaves)
        node = len(axes)
        axes.append(axis)
        cuts.append(cut)
        sides.append([0, 0])
        under, objects_under = here < cut, there < cut
        sides[node][0] = grow(mine[under], theirs[objects_under], lower, depth + 1)
        sides[node][1] = grow(mine[~under], theirs[~objects_under], leaves - lower, depth + 1)
        return node

    if leaves <= 1:
        return ONE_LEAF
    grow(np.arange(len(rows)), np.arange(len(objects)), leaves, 0)
    both = np.array(sides, np.int32).reshape(-1, 2)
    return PointTree(np.array(axes, np.int8), np.array(cuts), both[:, 0].copy(), both[:, 1].copy())


def best_cut(rows: NDArray[np.float64], objects: NDArray[np.float64], share: float) -> float:
    """The coordinate below which the cost is about `share` of the sum of both sides."""
    if rows.size == 0:
        return 0.0
    candidates = np.unique(rows)
    under = np.searchsorted(np.sort(rows), candidates)
    objects_under = np.searchsorted(np.sort(objects), candidates)
    below = under * (objects_under + 1.0)
    above = (rows.size - under) * (objects.size - objects_under + 1.0)
    return float(candidates[np.argmin(np.abs((1 - share) * below - share * above))])


def level_cut(rows: NDArray[np.float64], cost: NDArray[np.float64], share: float) -> float:
    """The coordinate below which the rows' cost is about `share` of all."""
    if rows.size == 0:
        return 0.0
    order = np.argsort(rows, kind="stable")
    candidates, first = np.unique(rows[order], return_index=True)
    below = np.append(0.0, np.cumsum(cost[order]))[first]
    return float(candidates[np.argmin(np.abs(below - share * cost.sum()))])


class RelevantPairs(NamedTuple):
    """Things and the words that they have: thing i64, rank of the word i64."""

    thing: NDArray[np.int64]
    rank: NDArray[np.int64]

    def within(self, first: int, last: int) -> RelevantPairs:
        """Those of words first:last."""
        here = (self.rank >= first) & (self.rank < last)
        return RelevantPairs(self.thing[here], self.rank[here])

    def sides(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many things have a word before each place of first:last, and from it on."""
        _, of = np.unique(self.thing, return_inverse=True)
        things = int(of.max()) + 1 if of.size else 0
        lowest = np.full(things, last)
        highest = np.full(things, first - 1)
        np.minimum.at(lowest, of, self.rank)
        np.maximum.at(highest, of, self.rank)
        length = last - first
        before = np.cumsum(np.bincount(lowest - first, minlength=length + 1)[:length])
        after = np.cumsum(np.bincount(highest - first, minlength=length + 1)[:length][::-1])[::-1]
        # A cut at place p has words first:p before it.
        return np.append(0, before), np.append(after, 0)


def cut_vocabulary(
    rows: RelevantPairs, objects: RelevantPairs, words: int, parts: int
) -> NDArray[np.int32]:
    """The part of each word i32[words], by rank; parts have words that follow each other.

    Each cut leaves the two sides costs (rows that have a word of theirs, times objects) that are
    to each other as the numbers of parts that they still have to give.
    """
    part = np.zeros(words, np.int32)
    given = 0

    def cut(rows: RelevantPairs, objects: RelevantPairs, first: int, last: int, parts: int) -> None:
        nonlocal given
        if parts == 1:
            part[first:last] = given
            given += 1
            return
        lower = parts // 2
        at = first
        if last > first:
            row_sides, object_sides = rows.sides(first, last), objects.sides(first, last)
            below = row_sides[0] * (object_sides[0] + 1.0)
            above = row_sides[1] * (object_sides[1] + 1.0)
            share = lower / parts
            at = first + int(np.argmin(np.abs((1 - share) * below - share * above)))
        cut(rows.within(first, at), objects.within(first, at), first, at, lower)
        cut(rows.within(at, last), objects.within(at, last), at, last, parts - lower)

    cut(rows, objects, 0, words, max(parts, 1))
    return part
