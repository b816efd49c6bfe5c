"""What `nearest` subscriptions are divided by: their circles, and the objects seen when that is
done.

The circle B(s) of a subscription has its place as centre and reaches as far as the k-th nearest of
the objects it has; an object outside cannot enter its result. While it has fewer than k objects its
circle is the world.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.space.circles import circles_to_rectangles, rectangles_enclosed
from placewire.kernels.space.z_curve import points_to_curve

Rectangle = NDArray[np.float64]  # f64[4]: west, south, east, north; west <= east, closed
Rows = NDArray[np.int64]


class CircleSample(NamedTuple):
    """n subscriptions and m initial objects (O_init); a CSR column has one more offset.

    `radius_m` f64[n] is the current k-th distance, inf while there are fewer than k candidates.
    Terms are keyed hashes u64, distinct within a subscription or an object.
    """

    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    k: NDArray[np.int32]
    radius_m: NDArray[np.float64]
    term_offsets: NDArray[np.int64]
    terms: NDArray[np.uint64]
    object_lon: NDArray[np.float64]
    object_lat: NDArray[np.float64]
    object_term_offsets: NDArray[np.int64]
    object_terms: NDArray[np.uint64]

    @property
    def subscriptions(self) -> int:
        return int(self.lon.size)

    @property
    def objects(self) -> int:
        return int(self.object_lon.size)


class Circles(NamedTuple):
    """The subscriptions of a sample in space: codes i64[n] on the fine Z-curve, and the rectangles
    f64[n, 4] around their circles, all longitudes for one that crosses the antimeridian."""

    code: NDArray[np.int64]
    rectangle: NDArray[np.float64]


def place_circles(sample: CircleSample) -> Circles:
    """The circles of a sample."""
    return Circles(
        points_to_curve(sample.lon, sample.lat),
        circles_to_rectangles(sample.lon, sample.lat, sample.radius_m),
    )


def rows_on_curve(circles: Circles) -> Rows:
    """All rows, in the order of their places on the curve."""
    return np.argsort(circles.code, kind="stable")


def enclose_circles(circles: Circles, rows: Rows) -> Rectangle:
    """R: the rectangle around the circles of some rows, of which there is one or more."""
    around: Rectangle = rectangles_enclosed(circles.rectangle, rows)
    return around


def quarter_rows(circles: Circles, rows: Rows) -> list[slice]:
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
