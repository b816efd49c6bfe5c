"""What `nearest` plans are made from: circles of subscriptions, and counts of initial objects.

The circle of a subscription is centred on its place and reaches its k-th nearest object; an object
outside cannot enter its result. With fewer than k objects its circle is the world.

Objects are numbered along a fine Z-curve and listed under each of their terms, so that a rectangle
is counted in a list by its edges: about the square root of the list's length where it is even, and
never more than all of it. The lists are also where the k nearest objects of a place are found.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import read_only
from placewire.kernels.space.circles import circles_to_rectangles, rectangles_enclosed
from placewire.kernels.space.z_curve import (
    points_counted_in_rectangles,
    points_to_curve,
    rows_met_in_rectangle,
    rows_summed,
    terms_counted_in_rectangle,
)
from placewire.kernels.text.hash_table import numbers_to_groups
from placewire.model.arrays import F64, I32, I64, U64
from placewire.model.subscriptions import lengths_to_offsets, take_slices
from placewire.plans.kernels.nearest import places_to_kth_distances
from placewire.plans.sample.sample import number_terms

Rectangle = F64  # f64[4]: west, south, east, north; west <= east, closed
Rows = I64


class CircleSample(NamedTuple):
    """n subscriptions and m initial objects (O_init); a CSR column has one more offset.

    `radius_m` f64[n] is the current k-th distance, inf while there are fewer than k candidates.
    Terms are keyed hashes u64, distinct within a subscription or an object.
    """

    lon: F64
    lat: F64
    k: I32
    radius_m: F64
    term_offsets: I64
    terms: U64
    object_lon: F64
    object_lat: F64
    object_term_offsets: I64
    object_terms: U64

    @property
    def subscriptions(self) -> int:
        return int(self.lon.size)

    @property
    def objects(self) -> int:
        return int(self.object_lon.size)


class SampleCircles(NamedTuple):
    """The subscriptions of a sample in space: codes i64[n] on the fine Z-curve, and the rectangles
    f64[n, 4] around their circles, all longitudes for one that crosses the antimeridian."""

    code: I64
    rectangle: F64


def place_circles(sample: CircleSample) -> SampleCircles:
    """The circles of a sample."""
    return SampleCircles(
        points_to_curve(sample.lon, sample.lat),
        circles_to_rectangles(sample.lon, sample.lat, sample.radius_m),
    )


def rows_on_curve(circles: SampleCircles) -> Rows:
    """All rows, in the order of their places on the curve."""
    return np.argsort(circles.code, kind="stable")


def enclose_circles(circles: SampleCircles, rows: Rows) -> Rectangle:
    """R: the rectangle around the circles of some rows, of which there is one or more."""
    return rectangles_enclosed(circles.rectangle, rows)


def quarter_rows(circles: SampleCircles, rows: Rows) -> list[slice]:
    """Where among rows in curve order each quarter of their cell is; quarters of none are left out.

    Their cell is the smallest of the world's quadtree that holds all their places, so that there
    are two quarters or more; or one, if all are at one place.
    """
    codes = circles.code[rows]
    first, last = int(codes[0]), int(codes[-1])
    if first == last:
        return [slice(0, rows.size)]
    shift = ((first ^ last).bit_length() - 1) // 2 * 2
    cell = first >> (shift + 2) << 2
    edges = np.array([cell + quarter << shift for quarter in (1, 2, 3)], np.int64)
    cuts = [0, *np.searchsorted(codes, edges).tolist(), rows.size]
    return [slice(begin, end) for begin, end in pairwise(cuts) if begin < end]


NOT_COUNTED = -1
PAIRS_A_LOOKUP = 4_000  # terms of objects that are looked through while one list is looked up in


class ObjectCounts(NamedTuple):
    """m objects in curve order and t terms in the order of their hashes.

    The objects of term i are members[list_offsets[i]:list_offsets[i + 1]], ascending. Counts
    by term alone have the lengths of the lists, no members, and of objects only the number.
    """

    objects: int
    code: I64
    lon: F64
    lat: F64
    terms: U64
    list_offsets: I64
    members: I32

    @property
    def frequency(self) -> I64:
        """How many objects have each term: |O_lambda|."""
        return np.diff(self.list_offsets)


def count_terms(sample: CircleSample) -> ObjectCounts:
    """Count objects by term alone."""
    terms, numbers = number_terms(sample.object_terms)
    offsets = lengths_to_offsets(np.bincount(numbers, minlength=terms.size))
    nothing = np.empty(0, np.float64)
    return freeze_counts(
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


def count_objects_by_term(sample: CircleSample) -> ObjectCounts:
    """Count objects by term and place."""
    codes = points_to_curve(sample.object_lon, sample.object_lat)
    order = np.argsort(codes, kind="stable")
    terms, numbers = number_terms(sample.object_terms)
    term_offsets, positions = take_slices(sample.object_term_offsets, order)
    owners = np.repeat(np.arange(order.size, dtype=np.int32), np.diff(term_offsets))
    list_offsets, pairs = numbers_to_groups(numbers[positions], terms.size)
    return freeze_counts(
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


def freeze_counts(object_counts: ObjectCounts) -> ObjectCounts:
    """The counts as read-only arrays, like those from a file."""
    return ObjectCounts(object_counts.objects, *map(read_only, object_counts[1:]))


def find_terms(object_counts: ObjectCounts, terms: U64) -> I64:
    """The list of each term hash, -1 if no object has it: i64[terms]."""
    if object_counts.terms.size == 0:
        return np.full(terms.size, -1, np.int64)
    # Looked up in order of hashes: neighbours then lie in cache.
    order = np.argsort(terms)
    found = np.empty(terms.size, np.int64)
    found[order] = np.searchsorted(object_counts.terms, terms[order])
    found[found == object_counts.terms.size] = 0
    return np.where(object_counts.terms[found] == terms, found, -1)


def count_inside(object_counts: ObjectCounts, rectangles: F64) -> I64:
    """|O_R| of each rectangle of f64[r, 4]: i64[r]."""
    return points_counted_in_rectangles(
        object_counts.code,
        object_counts.lon,
        object_counts.lat,
        list_all_objects(object_counts),
        rectangles,
    )


def list_all_objects(object_counts: ObjectCounts) -> I32:
    """The list of all objects."""
    return np.arange(object_counts.lon.size, dtype=np.int32)


class ObjectTerms(NamedTuple):
    """The terms i32 of each object, as a CSR column: the lists of `ObjectCounts` inverted."""

    offsets: I64
    terms: I32


def list_object_terms(object_counts: ObjectCounts) -> ObjectTerms:
    """The terms of each object."""
    offsets, places = numbers_to_groups(object_counts.members, object_counts.objects)
    terms = np.repeat(np.arange(object_counts.terms.size, dtype=np.int32), object_counts.frequency)
    return ObjectTerms(read_only(offsets), read_only(terms[places]))


class RowObjectCounter:
    """Counts |O_R,lambda| over the terms of rows; `lists` i64 (CSR) is what `find_terms` gave.

    A rectangle is looked up in the list of every term of the rows or, given `pairs`, looked through
    with all the terms of its objects, whichever is less work.
    """

    def __init__(
        self,
        object_counts: ObjectCounts,
        offsets: I64,
        lists: I64,
        pairs: ObjectTerms | None = None,
    ) -> None:
        self.object_counts = object_counts
        self.offsets = read_only(offsets)
        self.lists = read_only(lists)
        self.pairs = pairs
        self._memo = np.full(object_counts.terms.size, NOT_COUNTED, np.int64)
        self._everyone = list_all_objects(object_counts)

    def count(self, rows: Rows, rectangle: Rectangle) -> I64:
        """The sum of |O_R,lambda| over the terms of each of the rows: i64[rows]."""
        object_counts = self.object_counts
        if self.pairs is not None and self._looks_through(self.pairs, rows, rectangle):
            counts = terms_counted_in_rectangle(
                object_counts.code,
                object_counts.lon,
                object_counts.lat,
                self._everyone,
                self.pairs.offsets,
                self.pairs.terms,
                object_counts.terms.size,
                rectangle,
            )
            return rows_summed(rows, self.offsets, self.lists, counts)
        return rows_met_in_rectangle(
            object_counts.code,
            object_counts.lon,
            object_counts.lat,
            object_counts.list_offsets,
            object_counts.members,
            rows,
            self.offsets,
            self.lists,
            rectangle,
            self._memo,
        )

    def count_everywhere(self) -> I64:
        """The sum of |O_lambda| over the terms of every row: i64[n]."""
        return rows_summed(
            np.arange(self.offsets.size - 1), self.offsets, self.lists, self.object_counts.frequency
        )

    def _looks_through(self, pairs: ObjectTerms, rows: Rows, rectangle: Rectangle) -> bool:
        asked = int((self.offsets[rows + 1] - self.offsets[rows]).sum())
        inside = int(count_inside(self.object_counts, rectangle[None])[0])
        return inside * pairs.terms.size < asked * PAIRS_A_LOOKUP * self.object_counts.objects


def find_radii(
    object_counts: ObjectCounts, lon: F64, lat: F64, k: I32, offsets: I64, lists: I64
) -> F64:
    """The distance to the k-th nearest object that shares a term, inf if there are fewer: f64[n].

    A term takes a descent to the place and the cells around it that the circle touches; one of
    fewer than k objects is read whole.
    """
    _, codes, lons, lats, _, list_offsets, members = object_counts
    return places_to_kth_distances(
        codes, lons, lats, list_offsets, members, *map(read_only, (lon, lat, k, offsets, lists))
    )
