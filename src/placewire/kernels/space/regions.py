"""Regions: exact tests of points against boxes, circles and polygons (spec, section 3).

A region is a kind, a bounding box (west > east when it crosses the antimeridian; for a box it is
the region itself) and a shape: lon, lat and radius of a circle, or the rings of a polygon in a row,
each as its number of positions followed by its coordinates.
"""

from __future__ import annotations

import math

import numpy as np

from placewire.kernels.jit import kernel, subkernel
from placewire.model.regions import BOX, CIRCLE, EARTH_RADIUS_M, EVERYWHERE


@kernel
def distance_m(lon_a: float, lat_a: float, lon_b: float, lat_b: float) -> float:
    """Return the great-circle distance in metres, rounded to millimetres as the spec says."""
    phi_a = math.radians(lat_a)
    phi_b = math.radians(lat_b)
    half_phi = math.sin((phi_b - phi_a) / 2.0)
    half_lambda = math.sin((math.radians(lon_b) - math.radians(lon_a)) / 2.0)
    a = half_phi * half_phi + math.cos(phi_a) * math.cos(phi_b) * (half_lambda * half_lambda)
    d = 2.0 * EARTH_RADIUS_M * math.asin(math.sqrt(min(1.0, a)))
    return float(np.rint(1000.0 * d) / 1000.0)


@kernel
def box_contains_point(box: np.ndarray, lon: float, lat: float) -> bool:
    """Return true if the closed box has the point; west > east crosses the antimeridian."""
    if lat < box[1] or lat > box[3]:
        return False
    if box[0] <= box[2]:
        return bool(box[0] <= lon <= box[2])
    return bool(lon >= box[0] or lon <= box[2])


@subkernel
def polygon_contains_point(shape: np.ndarray, lon: float, lat: float) -> bool:
    """Apply the even-odd rule over all rings in plain 64-bit floats; edges are inside."""
    inside = False
    at = 0
    while at < shape.size:
        positions = int(shape[at])
        at += 1
        for k in range(positions - 1):
            ax = shape[at + 2 * k]
            ay = shape[at + 2 * k + 1]
            bx = shape[at + 2 * k + 2]
            by = shape[at + 2 * k + 3]
            if (
                (bx - ax) * (lat - ay) == (by - ay) * (lon - ax)
                and min(ax, bx) <= lon <= max(ax, bx)
                and min(ay, by) <= lat <= max(ay, by)
            ):
                return True
            if (ay > lat) != (by > lat) and lon < (bx - ax) * (lat - ay) / (by - ay) + ax:
                inside = not inside
        at += 2 * positions
    return inside


@subkernel
def region_contains_point(
    kind: int, box: np.ndarray, shape: np.ndarray, lon: float, lat: float
) -> bool:
    """Test exactly whether a region of any kind has the point."""
    if kind == EVERYWHERE:
        return True
    if kind == BOX:
        return box_contains_point(box, lon, lat)
    if kind == CIRCLE:
        return distance_m(shape[0], shape[1], lon, lat) <= shape[2]
    return polygon_contains_point(shape, lon, lat)


@kernel
def region_containing_points(
    kind: int, box: np.ndarray, shape: np.ndarray, lons: np.ndarray, lats: np.ndarray
) -> np.ndarray:
    """Return which of the points f64[n], f64[n] lie in one region: bool[n]."""
    inside = np.empty(lons.size, np.bool_)
    for i in range(lons.size):
        inside[i] = region_contains_point(kind, box, shape, lons[i], lats[i])
    return inside
