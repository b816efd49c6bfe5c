"""The census: the initial objects, counted by place and by term.

Objects are numbered along a fine Z-curve and listed under each of their terms, so that a rectangle
is counted in a list by its edges: about the square root of the list's length where it is even, and
never more than all of it. The lists are also where the k nearest objects of a place are found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kernels.space.z_curve import (
    points_counted_in_rectangles,
    points_to_curve,
    rows_met_in_rectangle,
    rows_summed,
    terms_counted_in_rectangle,
)
from placewire.kernels.text.hash_table import hashes_to_numbers, numbers_to_groups
from placewire.model.subscriptions import lengths_to_offsets, take_slices
from placewire.plans.kernels.nearest import places_to_kth_distances
from placewire.plans.nearest.sample import BallSample, Rectangle, Rows

NOT_COUNTED = -1
PAIRS_A_LOOKUP = 4_000  # terms of objects that are looked through while one list is looked up in


class ObjectCounts(NamedTuple):
    """m objects in curve order and t terms in the order of their hashes.

    The objects of term i are members[list_offsets[i]:list_offsets[i + 1]], ascending. A census of
    terms alone knows how long the lists are and has no members, and no objects but their number.
    """

    objects: int
    code: NDArray[np.int64]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    terms: NDArray[np.uint64]
    list_offsets: NDArray[np.int64]
    members: NDArray[np.int32]

    @property
    def frequency(self) -> NDArray[np.int64]:
        """How many objects have each term: |O_lambda|."""
        return np.diff(self.list_offsets)


def count_terms(sample: BallSample) -> ObjectCounts:
    """The census of terms alone."""
    terms, numbers = _number_objects(sample.object_terms)
    offsets = lengths_to_offsets(np.bincount(numbers, minlength=terms.size))
    nothing = np.empty(0, np.float64)
    return freeze_census(
        ObjectCounts(
            sample.objects,
            np.empty(0, np.int64),
            nothing,
            nothing,
            terms,
            offsets,
            np.empty(0, np.int32),
        )
    )


def take_census(sample: BallSample) -> ObjectCounts:
    """The whole census."""
    codes = points_to_curve(sample.object_lon, sample.object_lat)
    order = np.argsort(codes, kind="stable")
    terms, numbers = _number_objects(sample.object_terms)
    term_offsets, positions = take_slices(sample.object_term_offsets, order)
    owners = np.repeat(np.arange(order.size, dtype=np.int32), np.diff(term_offsets))
    list_offsets, pairs = numbers_to_groups(numbers[positions], terms.size)
    return freeze_census(
        ObjectCounts(
            sample.objects,
            codes[order],
            sample.object_lon[order],
            sample.object_lat[order],
            terms,
            list_offsets,
            owners[pairs],
        )
    )


def freeze_census(census: ObjectCounts) -> ObjectCounts:
    """The census as arrays that cannot be written, as those from a file are."""
    return ObjectCounts(census.objects, *map(read_only, census[1:]))


def find_terms(census: ObjectCounts, terms: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The list of each term hash, -1 if no object has it: i64[terms]."""
    if census.terms.size == 0:
        return np.full(terms.size, -1, np.int64)
    # Looked up in order of hashes: neighbours then lie in cache.
    order = np.argsort(terms)
    found = np.empty(terms.size, np.int64)
    found[order] = np.searchsorted(census.terms, terms[order])
    found[found == census.terms.size] = 0
    return np.where(census.terms[found] == terms, found, -1)


def count_inside(census: ObjectCounts, rectangles: NDArray[np.float64]) -> NDArray[np.int64]:
    """|O_R| of each rectangle of f64[r, 4]: i64[r]."""
    counts: NDArray[np.int64] = points_counted_in_rectangles(
        census.code, census.lon, census.lat, everyone_in(census), rectangles
    )
    return counts


def everyone_in(census: ObjectCounts) -> NDArray[np.int32]:
    """The list of all objects."""
    return np.arange(census.lon.size, dtype=np.int32)


class NearestPairs(NamedTuple):
    """The census the other way round: the terms i32 of each object, as a CSR column."""

    offsets: NDArray[np.int64]
    terms: NDArray[np.int32]


def list_pairs(census: ObjectCounts) -> NearestPairs:
    """The terms of each object."""
    offsets, places = numbers_to_groups(census.members, census.objects)
    terms = np.repeat(np.arange(census.terms.size, dtype=np.int32), census.frequency)
    return NearestPairs(read_only(offsets), read_only(terms[places]))


class Meetings:
    """Counts |O_R,lambda| over the terms of rows; `lists` i64 (CSR) is what `find_terms` gave.

    A rectangle is looked up in the list of every term of the rows or, given `pairs`, looked through
    with all the terms of its objects, whichever is less work.
    """

    def __init__(
        self,
        census: ObjectCounts,
        offsets: NDArray[np.int64],
        lists: NDArray[np.int64],
        pairs: NearestPairs | None = None,
    ) -> None:
        self.census = census
        self.offsets = read_only(offsets)
        self.lists = read_only(lists)
        self.pairs = pairs
        self._memo = np.full(census.terms.size, NOT_COUNTED, np.int64)
        self._everyone = everyone_in(census)

    def count(self, rows: Rows, rectangle: Rectangle) -> NDArray[np.int64]:
        """The sum of |O_R,lambda| over the terms of each of the rows: i64[rows]."""
        census = self.census
        if self.pairs is not None and self._looks_through(self.pairs, rows, rectangle):
            counts = terms_counted_in_rectangle(
                census.code,
                census.lon,
                census.lat,
                self._everyone,
                self.pairs.offsets,
                self.pairs.terms,
                census.terms.size,
                rectangle,
            )
            return rows_summed(rows, self.offsets, self.lists, counts)
        met: NDArray[np.int64] = rows_met_in_rectangle(
            census.code,
            census.lon,
            census.lat,
            census.list_offsets,
            census.members,
            rows,
            self.offsets,
            self.lists,
            rectangle,
            self._memo,
        )
        return met

    def count_everywhere(self) -> NDArray[np.int64]:
        """The sum of |O_lambda| over the terms of every row: i64[n]."""
        return rows_summed(
            np.arange(self.offsets.size - 1), self.offsets, self.lists, self.census.frequency
        )

    def _looks_through(self, pairs: NearestPairs, rows: Rows, rectangle: Rectangle) -> bool:
        asked = int((self.offsets[rows + 1] - self.offsets[rows]).sum())
        inside = int(count_inside(self.census, rectangle[None])[0])
        return inside * pairs.terms.size < asked * PAIRS_A_LOOKUP * self.census.objects


def find_radii(
    census: ObjectCounts,
    lon: NDArray[np.float64],
    lat: NDArray[np.float64],
    k: NDArray[np.int32],
    offsets: NDArray[np.int64],
    lists: NDArray[np.int64],
) -> NDArray[np.float64]:
    """The distance to the k-th nearest object that shares a term, inf if there are fewer: f64[n].

    A term takes a descent to the place and the cells around it that the circle touches; one of
    fewer than k objects is read whole.
    """
    radii: NDArray[np.float64] = places_to_kth_distances(
        census.code,
        census.lon,
        census.lat,
        census.list_offsets,
        census.members,
        read_only(lon),
        read_only(lat),
        read_only(k),
        read_only(offsets),
        read_only(lists),
    )
    return radii


def _number_objects(
    hashes: NDArray[np.uint64],
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The distinct hashes, ascending, and the place of each hash among them."""
    _, numbers, distinct = hashes_to_numbers(read_only(hashes))
    order = np.argsort(distinct)
    rank = np.empty(distinct.size, np.int64)
    rank[order] = np.arange(distinct.size)
    return distinct[order], rank[numbers]
