"""Where people are: cities and hot spots, and the density of people around them.

The density is a mixture of gaussians. Each city contributes three components around its centre
(core, suburbs, outskirts), wider for larger cities, and a narrow one for each hot spot. A point is
a component drawn by weight plus a gaussian offset.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import msgspec
import numpy as np

from placewire.demo.lines import Floats, Ints, WeightedGroups, read_data

METRES_PER_DEGREE = 111_195.0
HOT_SPOT_SHARE = 0.4
HOT_SPOT_SPREAD_M = 450.0
MAIN_LANGUAGE_ODDS = 4.0
CENTRE_SHARES_AND_SPREADS_M = ((0.40, 1_800.0), (0.42, 6_500.0), (0.18, 16_000.0))
# Relative activity of a city at each local hour, midnight first; local time is solar, lon / 15.
HOURLY_ACTIVITY = (
    *(0.30, 0.20, 0.14, 0.10, 0.10, 0.16, 0.30, 0.50, 0.66, 0.70, 0.72, 0.78),
    *(0.90, 0.86, 0.78, 0.76, 0.80, 0.90, 1.00, 1.00, 0.98, 0.90, 0.72, 0.50),
)


class City(NamedTuple):
    """A row of `cities` in `data/places.toml`."""

    name: str
    lon: float
    lat: float
    millions: float
    languages: str = "en"  # the main one first; `population` adds some English everywhere
    local: str = ""


class HotSpot(NamedTuple):
    """A row of `hot_spots` in `data/places.toml`."""

    city: str
    name: str
    lon: float
    lat: float
    topic: str
    local: str = ""


class Places(msgspec.Struct, frozen=True):
    """The content of `data/places.toml`."""

    cities: tuple[City, ...]
    hot_spots: tuple[HotSpot, ...]


class Population(NamedTuple):
    """The components of the density, one per row, city by city.

    `languages_of_city` groups the entries of `languages` by city.
    """

    lon: Floats
    lat: Floats
    spread_m: Floats
    weight: Floats
    city: Ints
    names: tuple[tuple[str, str], ...]  # of the hot spot or city: in English, and local
    topics: tuple[str, ...]  # of hot spots; empty elsewhere
    languages: tuple[str, ...]
    languages_of_city: WeightedGroups

    def find(self, name: str) -> int:
        """The row of a hot spot, or of a city's core, by its English name."""
        return next(row for row, names in enumerate(self.names) if names[0] == name)

    def weight_at(self, utc_hour: float) -> Floats:
        """The weight of every component at an hour of the day in UTC, by its local time."""
        local = (utc_hour + self.lon / 15) % 24
        activity = (*HOURLY_ACTIVITY, HOURLY_ACTIVITY[0])
        return self.weight * np.interp(local, np.arange(25), activity)


@cache
def places() -> Places:
    """All cities and hot spots."""
    return msgspec.toml.decode(read_data("places.toml"), type=Places)


@cache
def population() -> Population:
    """The density of people over all places."""
    rows: list[tuple[float, float, float, float, int, tuple[str, str], str]] = []
    languages: list[str] = []
    language_weights: list[list[float]] = []
    for number, city in enumerate(places().cities):
        people = city.millions**0.8
        names = (city.name, city.local or city.name)
        spots = [spot for spot in places().hot_spots if spot.city == city.name]
        width = (city.millions / 10) ** 0.3
        for share, spread_m in CENTRE_SHARES_AND_SPREADS_M:
            weight = people * share * (1 - HOT_SPOT_SHARE if spots else 1)
            rows.append((city.lon, city.lat, spread_m * width, weight, number, names, ""))
        for spot in spots:
            weight = people * HOT_SPOT_SHARE / len(spots)
            names = (spot.name, spot.local or spot.name)
            rows.append((spot.lon, spot.lat, HOT_SPOT_SPREAD_M, weight, number, names, spot.topic))
        spoken = city.languages.split()
        spoken += ["en"] if "en" not in spoken else []
        languages += spoken
        language_weights.append([MAIN_LANGUAGE_ODDS, *[1.0] * (len(spoken) - 1)])
    lons, lats, spreads, weights, cities, all_names, topics = zip(*rows, strict=True)
    return Population(
        lon=np.array(lons),
        lat=np.array(lats),
        spread_m=np.array(spreads),
        weight=np.array(weights),
        city=np.array(cities, np.int64),
        names=all_names,
        topics=topics,
        languages=tuple(languages),
        languages_of_city=WeightedGroups.of(language_weights),
    )


def scatter(
    lon: Floats, lat: Floats, spread_m: Floats, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw a point around each given one; the results are valid longitudes and latitudes."""
    east, north = random.standard_normal((2, len(lon))) * (spread_m / METRES_PER_DEGREE)
    lats: Floats = np.clip(lat + north, -90.0, 90.0)
    return wrap_longitudes(lon + east / np.cos(np.radians(lat))), lats


def wrap_longitudes(lon: Floats) -> Floats:
    """Bring longitudes back to [-180, 180)."""
    return (lon + 180.0) % 360.0 - 180.0
