"""The methods that divide `relevant` subscriptions among workers, by name.

A plan gives every posting of a row (one of its terms) a worker. By `hash` and `location` all
postings of a row have the same worker. By `keyword` a term has a worker, so that a row has as many
as its terms have. By `prefix` only the terms of its loose prefix are posted. The two with a plus
cut twice. An object goes to the workers that have one of its terms.

Places are cut by a kd-tree and terms by frequency, so that the products of rows and objects are
about the same in all parts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import read_only
from placewire.kinds.relevant.rows import relevant_columns, scored_rows
from placewire.model.arrays import F64, I8, I32, I64, U64, Array, Bools
from placewire.model.subscriptions import SubscriptionRows
from placewire.plans.kernels.prefixes import rows_to_prefixes


class PointTree(NamedTuple):
    """A tree of cuts: node i asks whether a coordinate of `axis` is at least `cut`.

    Then it goes on with `above`, otherwise with `below`; a negative number is a leaf, -1 the first.
    """

    axis: I8
    cut: F64
    below: I32
    above: I32

    def leaves_of(self, lon: F64, lat: F64) -> I32:
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


def grow_point_tree(rows: F64, objects: F64, leaves: int, cost: F64 | None = None) -> PointTree:
    """Cut points of rows f64[n, 2] into leaves, by turns along both axes.

    Each cut leaves the two sides costs that are to each other as the numbers of leaves that they
    still have to give. What a side costs is rows times objects there, or the sum of `cost` f64[n].
    """
    axes: list[int] = []
    cuts: list[float] = []
    sides: list[list[int]] = []
    leaf = 0

    def grow(mine: I64, theirs: I64, leaves: int, depth: int) -> int:
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


def best_cut(rows: F64, objects: F64, share: float) -> float:
    """The coordinate below which the cost is about `share` of the sum of both sides."""
    if rows.size == 0:
        return 0.0
    candidates = np.unique(rows)
    under = np.searchsorted(np.sort(rows), candidates)
    objects_under = np.searchsorted(np.sort(objects), candidates)
    below = under * (objects_under + 1.0)
    above = (rows.size - under) * (objects.size - objects_under + 1.0)
    return float(candidates[np.argmin(np.abs((1 - share) * below - share * above))])


def level_cut(rows: F64, cost: F64, share: float) -> float:
    """The coordinate below which the rows' cost is about `share` of all."""
    if rows.size == 0:
        return 0.0
    order = np.argsort(rows, kind="stable")
    candidates, first = np.unique(rows[order], return_index=True)
    below = np.append(0.0, np.cumsum(cost[order]))[first]
    return float(candidates[np.argmin(np.abs(below - share * cost.sum()))])


class RelevantPairs(NamedTuple):
    """Things and the words that they have: thing i64, rank of the word i64."""

    thing: I64
    rank: I64

    def within(self, first: int, last: int) -> RelevantPairs:
        """Those of words first:last."""
        here = (self.rank >= first) & (self.rank < last)
        return RelevantPairs(self.thing[here], self.rank[here])

    def sides(self, first: int, last: int) -> tuple[I64, I64]:
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


def cut_vocabulary(rows: RelevantPairs, objects: RelevantPairs, words: int, parts: int) -> I32:
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


RELEVANT_METHODS = ("hash", "location", "keyword", "prefix", "location+prefix", "prefix+location")
NOT_POSTED = -1


class RelevantSample(NamedTuple):
    """Live rows with their thresholds, and objects of the stream."""

    rows: SubscriptionRows
    theta: I32
    lon: F64
    lat: F64
    term_offsets: I64
    terms: U64


class TermParts(NamedTuple):
    """The part of each known term, ascending by hash; others go by their hash."""

    terms: U64
    part: I32
    parts: int

    def of(self, terms: U64) -> I32:
        """The part of each term."""
        parts = (terms % np.uint64(self.parts)).astype(np.int32)
        if self.terms.size:
            at = np.minimum(np.searchsorted(self.terms, terms), self.terms.size - 1)
            known = self.terms[at] == terms
            parts[known] = self.part[at[known]]
        return parts


class RelevantRule(NamedTuple):
    """How method `name` gives postings to workers, `first` parts by `second`.

    There are the frequencies of terms by which prefixes are made, and for each part of the first
    cut (one, if it is the only cut) a tree of places or the parts of terms.
    """

    name: str
    workers: int
    first: int
    second: int
    terms: U64
    frequency: I64
    trees: tuple[PointTree, ...] = ()
    words: tuple[TermParts, ...] = ()

    def to_arrays(self) -> dict[str, Array]:
        """The arrays of a rule file; the manifest has the name."""
        arrays: dict[str, Array] = {
            "cuts": np.array([self.workers, self.first, self.second]),
            "terms": self.terms,
            "frequency": self.frequency,
        }
        for number, tree in enumerate(self.trees):
            arrays |= {f"tree{number}.{name}": array for name, array in tree._asdict().items()}
        for number, words in enumerate(self.words):
            arrays |= {f"words{number}.terms": words.terms, f"words{number}.part": words.part}
            arrays[f"words{number}.parts"] = np.array([words.parts])
        return arrays

    @classmethod
    def from_arrays(cls, name: str, arrays: dict[str, Array]) -> RelevantRule:
        """The rule of method `name` from the arrays of its file."""
        trees: list[PointTree] = []
        words: list[TermParts] = []
        while (label := f"tree{len(trees)}") + ".axis" in arrays:
            trees.append(PointTree(*(arrays[f"{label}.{field}"] for field in PointTree._fields)))
        while (label := f"words{len(words)}") + ".terms" in arrays:
            parts = int(arrays[f"{label}.parts"][0])
            words.append(TermParts(arrays[f"{label}.terms"], arrays[f"{label}.part"], parts))
        workers, first, second = arrays["cuts"].tolist()
        terms, frequency = arrays["terms"], arrays["frequency"]
        return cls(name, workers, first, second, terms, frequency, tuple(trees), tuple(words))

    def order_terms(self, rows: SubscriptionRows) -> F64 | None:
        """The order of a row's terms, where they may have several workers."""
        return frequencies_of(rows, self.terms, self.frequency) if self.words else None

    def assign(self, rows: SubscriptionRows, theta: I32) -> I32:
        """The worker of each literal of the rows, or NOT_POSTED."""
        lengths = np.diff(rows.literal_offsets)
        if self.name == "hash":
            return np.repeat((rows.id_hash % np.uint64(self.workers)).astype(np.int32), lengths)
        own = relevant_columns(rows)
        lon, lat = own.lon, own.lat
        if self.name == "location":
            return np.repeat(self.trees[0].leaves_of(lon, lat), lengths)
        if self.name in ("keyword", "prefix"):
            owner = self.words[0].of(rows.literal_term)
        elif self.name == "location+prefix":
            leaf = np.repeat(self.trees[0].leaves_of(lon, lat), lengths)
            owner = np.zeros(leaf.size, np.int32)
            for number, words in enumerate(self.words):
                here = leaf == number
                owner[here] = number * self.second + words.of(rows.literal_term[here])
        else:
            part = self.words[0].of(rows.literal_term)
            row = np.repeat(np.arange(rows.total), lengths)
            owner = np.zeros(part.size, np.int32)
            for number, tree in enumerate(self.trees):
                here = part == number
                places = tree.leaves_of(lon[row[here]], lat[row[here]])
                owner[here] = number * self.second + places
        if "prefix" in self.name:
            owner[~prefixes_of(rows, theta, self.terms, self.frequency)] = NOT_POSTED
        return owner


def frequencies_of(rows: SubscriptionRows, terms: U64, frequency: I64) -> F64:
    """How often the term of each literal came; 0 for unknown ones."""
    often = np.zeros(rows.literal_term.size)
    if terms.size:
        at = np.minimum(np.searchsorted(terms, rows.literal_term), terms.size - 1)
        known = terms[at] == rows.literal_term
        often[known] = frequency[at[known]]
    return often


def prefixes_of(rows: SubscriptionRows, theta: I32, terms: U64, frequency: I64) -> Bools:
    """Which literals are in their rows' loose prefixes, by the frequencies of known terms."""
    return rows_to_prefixes(
        scored_rows(rows), frequencies_of(rows, terms, frequency), read_only(theta)
    )


def plan_relevant(
    name: str, sample: RelevantSample, workers: int, first: int | None = None
) -> RelevantRule:
    """Make the rule of a method; the hybrids cut `first` times, then each part as often as fits."""
    terms, frequency = np.unique(sample.terms, return_counts=True)
    lone = (1, workers)
    if "+" in name:
        one = first if first is not None else halfway(workers)
        lone = (one, workers // one)
    rule = RelevantRule(name, workers, *lone, terms, frequency)
    if name == "hash":
        return rule
    rows, offsets = sample.rows, sample.rows.literal_offsets
    points = relevant_columns(rows).points
    objects = np.stack([sample.lon, sample.lat], axis=1)
    if name == "location":
        return rule._replace(trees=(grow_point_tree(points, objects, workers),))
    row = np.repeat(np.arange(rows.total), np.diff(offsets))
    posted = np.ones(row.size, np.bool_)
    if "prefix" in name:
        posted = prefixes_of(rows, sample.theta, terms, frequency)
    if name in ("keyword", "prefix"):
        return rule._replace(words=(cut_terms(sample, posted, workers),))
    if name == "location+prefix":
        tree = grow_point_tree(points, objects, rule.first)
        leaf = tree.leaves_of(points[:, 0], points[:, 1])[row]
        words = tuple(
            cut_terms(sample, posted & (leaf == number), rule.second)
            for number in range(rule.first)
        )
        return rule._replace(trees=(tree,), words=words)
    whole = cut_terms(sample, posted, rule.first)
    part = whole.of(rows.literal_term)
    trees = []
    for number in range(rule.first):
        here = np.unique(row[posted & (part == number)])
        trees.append(grow_point_tree(points[here], objects, rule.second))
    return rule._replace(trees=tuple(trees), words=(whole,))


def halfway(workers: int) -> int:
    """The divisor nearest the root of `workers`: the default number of parts of the first cut."""
    divisors = [d for d in range(1, workers + 1) if workers % d == 0]
    return min(divisors, key=lambda d: abs(d - workers**0.5))


def cut_terms(sample: RelevantSample, posted: Bools, parts: int) -> TermParts:
    """Cut the vocabulary by frequency in the stream, for some postings of the rows."""
    rows = sample.rows
    terms, frequency = np.unique(
        np.concatenate([sample.terms, rows.literal_term[posted]]), return_counts=True
    )
    order = np.argsort(frequency, kind="stable")
    rank = np.empty(terms.size, np.int64)
    rank[order] = np.arange(terms.size)
    row = np.repeat(np.arange(rows.total), np.diff(rows.literal_offsets))[posted]
    thing = np.repeat(np.arange(sample.lon.size), np.diff(sample.term_offsets))
    part = cut_vocabulary(
        RelevantPairs(row, rank[np.searchsorted(terms, rows.literal_term[posted])]),
        RelevantPairs(thing, rank[np.searchsorted(terms, sample.terms)]),
        terms.size,
        parts,
    )
    return TermParts(terms, part[rank], parts)
