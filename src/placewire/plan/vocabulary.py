"""Words in parts: the vocabulary by frequency, cut where rows times objects are about alike."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Pairs(NamedTuple):
    """Things and the words that they have: thing i64, rank of the word i64."""

    thing: NDArray[np.int64]
    rank: NDArray[np.int64]

    def within(self, first: int, last: int) -> Pairs:
        """Those of words first:last."""
        here = (self.rank >= first) & (self.rank < last)
        return Pairs(self.thing[here], self.rank[here])

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


def cut_vocabulary(rows: Pairs, objects: Pairs, words: int, parts: int) -> NDArray[np.int32]:
    """The part of each word i32[words], by rank; parts have words that follow each other.

    Each cut leaves the two sides costs (rows that have a word of theirs, times objects) that are
    to each other as the numbers of parts that they still have to give.
    """
    part = np.zeros(words, np.int32)
    given = 0

    def cut(rows: Pairs, objects: Pairs, first: int, last: int, parts: int) -> None:
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
