"""Squares of the earth by name: geohashes, map tiles and quadkeys, as boxes."""

from __future__ import annotations

import math

from placewire.imports.areas import Box
from placewire.imports.reasons import Untranslatable, shown

BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz"
MOST_CHARACTERS = 12
MOST_ZOOM = 38
MERCATOR_LAT = 85.05112878


def geohash_box(geohash: str, where: str) -> Box:
    """The square that a geohash names: its bits halve longitude and latitude in turn."""
    low, high = [-180.0, -90.0], [180.0, 90.0]
    axis = 0
    if not 1 <= len(geohash) <= MOST_CHARACTERS or not set(geohash) <= set(BASE32):
        raise Untranslatable("not a geohash", where, shown(geohash))
    for character in geohash:
        number = BASE32.index(character)
        for bit in (16, 8, 4, 2, 1):
            middle = (low[axis] + high[axis]) / 2.0
            (low if number & bit else high)[axis] = middle
            axis = 1 - axis
    return Box(low[0], low[1], high[0], high[1])


def tile_box(x: int, y: int, zoom: int, where: str) -> Box:
    """The square of a map tile, as Tile38 has it: the outermost end at the edge of the map."""
    if not 0 <= zoom <= MOST_ZOOM or not 0 <= x < 1 << zoom or not 0 <= y < 1 << zoom:
        raise Untranslatable("not a tile", where, f"x {x}, y {y}, z {zoom}")
    last = (1 << zoom) - 1
    return Box(
        -180.0 if x == 0 else 360.0 * (x / (last + 1) - 0.5),
        -MERCATOR_LAT if y == last else mercator_lat(y + 1, last + 1),
        180.0 if x == last else 360.0 * ((x + 1) / (last + 1) - 0.5),
        MERCATOR_LAT if y == 0 else mercator_lat(y, last + 1),
    )


def mercator_lat(y: int, size: int) -> float:
    """The latitude of the northern edge of row y."""
    return 90.0 - 360.0 * math.atan(math.exp(-(0.5 - y / size) * 2.0 * math.pi)) / math.pi


def quadkey_box(key: str, where: str) -> Box:
    """The tile that a quadkey names."""
    if not 1 <= len(key) <= MOST_ZOOM or not set(key) <= set("0123"):
        raise Untranslatable("not a quadkey", where, shown(key))
    x = int("".join(str(int(digit) & 1) for digit in key), 2)
    y = int("".join(str(int(digit) >> 1) for digit in key), 2)
    return tile_box(x, y, len(key), where)
