"""Circles: bounding boxes, areas and cheap tests of the circles of `nearest` subscriptions.

A circle is tested in three steps, from the cheapest to the exact one: the bounding box in a
posting, the squared chord between two points on the unit sphere in 32-bit floats (its limit is
padded by some metres for rounding), and the distance (`distance_m` in `regions`).
"""

from __future__ import annotations

import math

import numpy as np

from placewire.kernels.jit import kernel, subkernel
from placewire.model.regions import EARTH_RADIUS_M, PADDING_DEG

CHORD_PADDING = 4e-7  # of the earth's radius: 2.5 m
EVERYWHERE_LIMIT = np.float32(5.0)  # no chord on the unit sphere is longer than 2


@kernel
def points_to_units(lons: np.ndarray, lats: np.ndarray) -> np.ndarray:
    """Convert points f64[n], f64[n] to the unit sphere: f32[n, 3]."""
    units = np.empty((lons.size, 3), np.float32)
    for i in range(lons.size):
        phi = math.radians(lats[i])
        theta = math.radians(lons[i])
        units[i, 0] = math.cos(phi) * math.cos(theta)
        units[i, 1] = math.cos(phi) * math.sin(theta)
        units[i, 2] = math.sin(phi)
    return units


@kernel
def radii_to_limits(radii_m: np.ndarray) -> np.ndarray:
    """Return the largest squared chord that may lie within each radius f64[n]: f32[n]."""
    limits = np.empty(radii_m.size, np.float32)
    for i in range(radii_m.size):
        half = radii_m[i] / (2.0 * EARTH_RADIUS_M)
        if half >= math.pi / 2.0:
            limits[i] = EVERYWHERE_LIMIT
        else:
            chord = 2.0 * math.sin(half) + CHORD_PADDING
            limits[i] = np.float32(chord * chord * (1.0 + 1e-6))
    return limits


@kernel
def radii_to_areas(radii_m: np.ndarray) -> np.ndarray:
    """Return the share of the earth that a circle of each radius covers: f64[n]."""
    areas = np.empty(radii_m.size, np.float64)
    for i in range(radii_m.size):
        angle = min(radii_m[i] / EARTH_RADIUS_M, math.pi)
        areas[i] = math.sin(angle / 2.0) ** 2
    return areas


@subkernel
def write_circle_box(lon: float, lat: float, radius_m: float, box: np.ndarray) -> None:
    """Write the box f64[4] around a circle, equal to `model.regions.circle_bounds`."""
    angle = radius_m / EARTH_RADIUS_M
    reach_deg = math.degrees(angle) + PADDING_DEG
    south, north = lat - reach_deg, lat + reach_deg
    box[0], box[2] = -180.0, 180.0
    box[1], box[3] = max(south, -90.0), min(north, 90.0)
    if south <= -90.0 or north >= 90.0 or angle >= math.pi / 2.0:
        return  # the circle contains a pole
    # How far the circle extends east and west of its centre.
    sine = math.sin(math.radians(reach_deg)) / math.cos(math.radians(lat))
    if sine >= 1.0:
        return
    lean_deg = math.degrees(math.asin(sine)) + PADDING_DEG
    west, east = lon - lean_deg, lon + lean_deg
    box[0] = west + 360.0 if west < -180.0 else west
    box[2] = east - 360.0 if east > 180.0 else east


@kernel
def circles_to_boxes(lons: np.ndarray, lats: np.ndarray, radii_m: np.ndarray) -> np.ndarray:
    """A box f64[n, 4] that contains each circle; west > east if it crosses the antimeridian."""
    boxes = np.empty((lons.size, 4), np.float64)
    for i in range(lons.size):
        write_circle_box(lons[i], lats[i], radii_m[i], boxes[i])
    return boxes


@subkernel
def write_circle_rectangle(lon: float, lat: float, radius_m: float, rectangle: np.ndarray) -> None:
    """Write the rectangle f64[4] around a circle; all longitudes if it crosses the antimeridian."""
    write_circle_box(lon, lat, radius_m, rectangle)
    if rectangle[0] > rectangle[2]:
        rectangle[0], rectangle[2] = -180.0, 180.0


@kernel
def circles_to_rectangles(lons: np.ndarray, lats: np.ndarray, radii_m: np.ndarray) -> np.ndarray:
    """Return the rectangles f64[n, 4] (west, south, east, north; west <= east) around circles."""
    rectangles = np.empty((lons.size, 4), np.float64)
    for i in range(lons.size):
        write_circle_rectangle(lons[i], lats[i], radii_m[i], rectangles[i])
    return rectangles


@kernel
def rectangles_enclosed(rectangles: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The bounding rectangle f64[4] of some of `rectangles` f64[n, 4]; `rows` is not empty."""
    around = rectangles[rows[0]].copy()
    for row in rows:
        around[0] = min(around[0], rectangles[row, 0])
        around[1] = min(around[1], rectangles[row, 1])
        around[2] = max(around[2], rectangles[row, 2])
        around[3] = max(around[3], rectangles[row, 3])
    return around


@subkernel
def height_between(south: float, north: float) -> float:
    """The difference of the sines of two latitudes, proportional to the area between them."""
    return math.sin(math.radians(north)) - math.sin(math.radians(south))


@kernel
def rectangles_overlapping_most(rectangles: np.ndarray, others: np.ndarray) -> np.ndarray:
    """For each of `others` f64[n, 4] the rectangle that shares most area with it, or -1: i64[n].

    Areas are on the globe. Ties go to the smallest rectangle, since several may contain a small
    one, and then to the first.
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
