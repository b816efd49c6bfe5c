"""The ground: where people are, as a mixture of gaussians around centres and hot spots.

Each city is three anchors around its centre (core, suburbs, outskirts), wider for larger cities,
and one narrow anchor for each hot spot. A point is an anchor drawn by weight plus a gaussian.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from placewire.city.places import CITIES, HOT_SPOTS
from placewire.city.urns import Floats, Ints, Urns, fill

METRES_PER_DEGREE = 111_195.0
HOT_SPOT_SHARE = 0.4
MAIN_LANGUAGE_ODDS = 4.0
CENTRE_SHARES_AND_SPREADS_M = ((0.40, 1_800.0), (0.42, 6_500.0), (0.18, 16_000.0))
# How lively a city is at each local hour, midnight first; local time is the sun's, lon / 15.
RHYTHM = (
    *(0.30, 0.20, 0.14, 0.10, 0.10, 0.16, 0.30, 0.50, 0.66, 0.70, 0.72, 0.78),
    *(0.90, 0.86, 0.78, 0.76, 0.80, 0.90, 1.00, 1.00, 0.98, 0.90, 0.72, 0.50),
)


class Ground(NamedTuple):
    """Anchors, one a row, city by city; `languages_of_city` is an urn a city of `languages`."""

    lon: Floats
    lat: Floats
    spread_m: Floats
    weight: Floats
    city: Ints
    names: tuple[tuple[str, str], ...]  # of the spot: in English, and as locals say
    topics: tuple[str, ...]  # of hot spots; empty elsewhere
    languages: tuple[str, ...]
    languages_of_city: Urns

    def anchor(self, name: str) -> int:
        """The row of a hot spot, or the innermost of a city, by its English name."""
        return next(row for row, names in enumerate(self.names) if names[0] == name)


@cache
def ground() -> Ground:
    """The ground of `places`, built once."""
    rows: list[tuple[float, float, float, float, int, tuple[str, str], str]] = []
    languages: list[str] = []
    urns: list[list[float]] = []
    for number, city in enumerate(CITIES):
        people = city.millions**0.8
        names = (city.name, city.local or city.name)
        spots = [spot for spot in HOT_SPOTS if spot.city == city.name]
        width = (city.millions / 10) ** 0.3
        for share, spread_m in CENTRE_SHARES_AND_SPREADS_M:
            weight = people * share * (1 - HOT_SPOT_SHARE if spots else 1)
            rows.append((city.lon, city.lat, spread_m * width, weight, number, names, ""))
        for spot in spots:
            weight = people * HOT_SPOT_SHARE / len(spots)
            spot_names = (spot.name, spot.local or spot.name)
            rows.append((spot.lon, spot.lat, 450.0, weight, number, spot_names, spot.topic))
        spoken = city.languages.split()
        everyone = [*spoken, *(["en"] if "en" not in spoken else [])]
        languages += everyone
        urns.append([MAIN_LANGUAGE_ODDS, *[1.0] * (len(everyone) - 1)])
    lons, lats, spreads, weights, cities, all_names, topics = zip(*rows, strict=True)
    return Ground(
        lon=np.array(lons),
        lat=np.array(lats),
        spread_m=np.array(spreads),
        weight=np.array(weights),
        city=np.array(cities, np.int64),
        names=all_names,
        topics=topics,
        languages=tuple(languages),
        languages_of_city=fill(urns),
    )


def liveliness(anchors: Ground, utc_hour: float) -> Floats:
    """The weight of every anchor at an hour of the day in UTC, by its local time."""
    local = (utc_hour + anchors.lon / 15) % 24
    return anchors.weight * np.interp(local, np.arange(25), (*RHYTHM, RHYTHM[0]))


def scatter(
    lon: Floats, lat: Floats, spread_m: Floats, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Points around the given ones, valid on the whole globe."""
    east, north = random.standard_normal((2, len(lon))) * (spread_m / METRES_PER_DEGREE)
    lats: Floats = np.clip(lat + north, -90.0, 90.0)
    return wrap(lon + east / np.cos(np.radians(lat))), lats


def wrap(lon: Floats) -> Floats:
    """Longitudes brought back to [-180, 180)."""
    return (lon + 180.0) % 360.0 - 180.0
