"""Rectangles around balls, and how these overlap."""

from __future__ import annotations

import math

import numpy as np

from placewire.kernels.balls import bound_ball
from placewire.kernels.jit import inlined, kernel


@inlined
def enclose_ball(lon: float, lat: float, radius_m: float, rectangle: np.ndarray) -> None:
    """Write the rectangle f64[4] around a ball; all longitudes if it crosses the antimeridian."""
    bound_ball(lon, lat, radius_m, rectangle)
    if rectangle[0] > rectangle[2]:
        rectangle[0], rectangle[2] = -180.0, 180.0


@kernel
def balls_to_rectangles(lons: np.ndarray, lats: np.ndarray, radii_m: np.ndarray) -> np.ndarray:
    """The rectangles f64[n, 4] (west, south, east, north; west <= east) around balls."""
    rectangles = np.empty((lons.size, 4), np.float64)
    for i in range(lons.size):
        enclose_ball(lons[i], lats[i], radii_m[i], rectangles[i])
    return rectangles


@kernel
def rectangles_enclosed(rectangles: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The one rectangle f64[4] around those, of f64[n, 4], of some rows; there is one or more."""
    around = rectangles[rows[0]].copy()
    for row in rows:
        around[0] = min(around[0], rectangles[row, 0])
        around[1] = min(around[1], rectangles[row, 1])
        around[2] = max(around[2], rectangles[row, 2])
        around[3] = max(around[3], rectangles[row, 3])
    return around


@inlined
def height_between(south: float, north: float) -> float:
    """The share of the globe's axis between two latitudes, which areas on it go by."""
    return math.sin(math.radians(north)) - math.sin(math.radians(south))


@kernel
def rectangles_overlapping_most(rectangles: np.ndarray, others: np.ndarray) -> np.ndarray:
    """For each of `others` f64[n, 4] the rectangle that shares most area with it, or -1: i64[n].

    Area is that on the globe. Of several that share the same the smallest is taken, since many
    may hold the whole of a small one; of equal ones the first.
    """
    areas = np.empty(rectangles.shape[0], np.float64)
    for r in range(rectangles.shape[0]):
        width = rectangles[r, 2] - rectangles[r, 0]
        areas[r] = width * height_between(rectangles[r, 1], rectangles[r, 3])
    chosen = np.full(others.shape[0], -1, np.int64)
    for i in range(others.shape[0]):
        most = 0.0
        for r in range(rectangles.shape[0]):
            west = max(rectangles[r, 0], others[i, 0])
            south = max(rectangles[r, 1], others[i, 1])
            east = min(rectangles[r, 2], others[i, 2])
            north = min(rectangles[r, 3], others[i, 3])
            if west >= east or south >= north:
                continue
            shared = (east - west) * height_between(south, north)
            if shared > most or (shared == most and chosen[i] >= 0 and areas[r] < areas[chosen[i]]):
                most = shared
                chosen[i] = r
    return chosen
