"""The methods that divide `relevant` subscriptions among workers, by name.

A plan gives every posting of a row (one of its terms) a worker. By `hash` and `location` all
postings of a row have the same; by `keyword` a term has a worker, so that a row has as many as its
terms have; by `prefix` only the terms of its loose prefix are posted. The two with a plus cut
twice. An object goes to the workers that have one of its terms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kinds.relevant.rows import relevant_columns, scored_rows
from placewire.model.subscriptions import SubscriptionRows
from placewire.plans.kernels.prefixes import rows_to_prefixes
from placewire.plans.relevant.parts import PointTree, RelevantPairs, cut_vocabulary, grow_point_tree

RELEVANT_METHODS = ("hash", "location", "keyword", "prefix", "location+prefix", "prefix+location")
NOT_POSTED = -1


class RelevantSample(NamedTuple):
    """Live rows with their thresholds, and objects of the stream."""

    rows: SubscriptionRows
    theta: NDArray[np.int32]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    term_offsets: NDArray[np.int64]
    terms: NDArray[np.uint64]


class TermParts(NamedTuple):
    """The part of each known term, ascending by hash; others go by their hash."""

    terms: NDArray[np.uint64]
    part: NDArray[np.int32]
    parts: int

    def of(self, terms: NDArray[np.uint64]) -> NDArray[np.int32]:
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
    terms: NDArray[np.uint64]
    frequency: NDArray[np.int64]
    trees: tuple[PointTree, ...] = ()
    words: tuple[TermParts, ...] = ()

    def order_terms(self, rows: SubscriptionRows) -> NDArray[np.float64] | None:
        """The order of a row's terms, where they may have several workers."""
        return frequencies_of(rows, self.terms, self.frequency) if self.words else None

    def assign(self, rows: SubscriptionRows, theta: NDArray[np.int32]) -> NDArray[np.int32]:
        """The worker of each literal of the rows, or NOT_POSTED."""
        lengths = np.diff(rows.literal_offsets)
        if self.name == "hash":
            return np.repeat((rows.id_hash % np.uint64(self.workers)).astype(np.int32), lengths)
        lon, lat = relevant_columns(rows)[:2]
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


def frequencies_of(
    rows: SubscriptionRows, terms: NDArray[np.uint64], frequency: NDArray[np.int64]
) -> NDArray[np.float64]:
    """How often the term of each literal came; 0 for unknown ones."""
    often = np.zeros(rows.literal_term.size)
    if terms.size:
        at = np.minimum(np.searchsorted(terms, rows.literal_term), terms.size - 1)
        known = terms[at] == rows.literal_term
        often[known] = frequency[at[known]]
    return often


def prefixes_of(
    rows: SubscriptionRows,
    theta: NDArray[np.int32],
    terms: NDArray[np.uint64],
    frequency: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Which literals are in their rows' loose prefixes, by the frequencies of known terms."""
    prefixes: NDArray[np.bool_] = rows_to_prefixes(
        scored_rows(rows), frequencies_of(rows, terms, frequency), read_only(theta)
    )
    return prefixes


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
    points = np.stack(relevant_columns(rows)[:2], axis=1)
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
    """The divisor nearest the root: parts of the first cut, if nothing else is said."""
    divisors = [d for d in range(1, workers + 1) if workers % d == 0]
    return min(divisors, key=lambda d: abs(d - workers**0.5))


def cut_terms(sample: RelevantSample, posted: NDArray[np.bool_], parts: int) -> TermParts:
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


def rule_to_arrays(rule: RelevantRule) -> dict[str, NDArray[Any]]:
    """A rule as arrays of a file."""
    arrays: dict[str, NDArray[Any]] = {
        "cuts": np.array([rule.workers, rule.first, rule.second]),
        "terms": rule.terms,
        "frequency": rule.frequency,
    }
    for number, tree in enumerate(rule.trees):
        arrays |= {f"tree{number}.{name}": array for name, array in tree._asdict().items()}
    for number, words in enumerate(rule.words):
        arrays |= {f"words{number}.terms": words.terms, f"words{number}.part": words.part}
        arrays[f"words{number}.parts"] = np.array([words.parts])
    return arrays


def arrays_to_rule(name: str, arrays: dict[str, NDArray[Any]]) -> RelevantRule:
    """The rule of method `name` from a file."""
    workers, first, second = arrays["cuts"].tolist()
    trees: list[PointTree] = []
    words: list[TermParts] = []
    while f"tree{len(trees)}.axis" in arrays:
        label = f"tree{len(trees)}"
        trees.append(PointTree(*(arrays[f"{label}.{field}"] for field in PointTree._fields)))
    while f"words{len(words)}.terms" in arrays:
        label = f"words{len(words)}"
        parts = int(arrays[f"{label}.parts"][0])
        words.append(TermParts(arrays[f"{label}.terms"], arrays[f"{label}.part"], parts))
    return RelevantRule(
        name,
        workers,
        first,
        second,
        arrays["terms"],
        arrays["frequency"],
        tuple(trees),
        tuple(words),
    )
