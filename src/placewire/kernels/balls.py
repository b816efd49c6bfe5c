"""Balls: the discs about a `nearest` subscription's point in which an object may still enter.

A ball is tested in three steps, each cheaper and looser than the next: the bounding box in a
posting, the square of the chord between two points on the unit sphere in 32-bit floats (its limit
is padded for their rounding, by some metres), and the exact distance.
"""

from __future__ import annotations

import math

import numpy as np

from placewire.kernels.jit import inlined, kernel
from placewire.model.regions import EARTH_RADIUS_M, PADDING_DEG

CHORD_PADDING = 4e-7  # of the earth's radius: 2.5 m
EVERYWHERE_LIMIT = np.float32(5.0)  # no chord on the unit sphere is longer than 2


@kernel
def points_to_units(lons: np.ndarray, lats: np.ndarray) -> np.ndarray:
    """Points f64[n], f64[n] on the unit sphere: f32[n, 3]."""
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
    """The largest square of a chord that may lie within each radius f64[n]: f32[n]."""
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
    """The share of the earth that a ball of each radius covers: f64[n]."""
    areas = np.empty(radii_m.size, np.float64)
    for i in range(radii_m.size):
        angle = min(radii_m[i] / EARTH_RADIUS_M, math.pi)
        areas[i] = math.sin(angle / 2.0) ** 2
    return areas


@inlined
def bound_ball(lon: float, lat: float, radius_m: float, box: np.ndarray) -> None:
    """Write the box f64[4] around a ball, as `model.regions.circle_bounds` has it."""
    angle = radius_m / EARTH_RADIUS_M
    reach_deg = math.degrees(angle) + PADDING_DEG
    south, north = lat - reach_deg, lat + reach_deg
    box[0], box[2] = -180.0, 180.0
    box[1], box[3] = max(south, -90.0), min(north, 90.0)
    if south <= -90.0 or north >= 90.0 or angle >= math.pi / 2.0:
        return  # a pole is in it
    # How far a circle of this angle leans east and west of its centre.
    sine = math.sin(math.radians(reach_deg)) / math.cos(math.radians(lat))
    if sine >= 1.0:
        return
    lean_deg = math.degrees(math.asin(sine)) + PADDING_DEG
    west, east = lon - lean_deg, lon + lean_deg
    box[0] = west + 360.0 if west < -180.0 else west
    box[2] = east - 360.0 if east > 180.0 else east


@kernel
def balls_to_boxes(lons: np.ndarray, lats: np.ndarray, radii_m: np.ndarray) -> np.ndarray:
    """A box f64[n, 4] that contains each ball; west > east when it crosses the antimeridian."""
    boxes = np.empty((lons.size, 4), np.float64)
    for i in range(lons.size):
        bound_ball(lons[i], lats[i], radii_m[i], boxes[i])
    return boxes
