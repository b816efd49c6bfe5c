"""Regions that people ask about: boxes, circles and polygons around where people are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.city.ground import METRES_PER_DEGREE, ground, wrap
from placewire.city.hour import printed
from placewire.city.objects import Posts
from placewire.city.urns import Floats

BOX, CIRCLE, POLYGON, CITY_BOX = range(4)
REGION_EDGES = (0.70, 0.90, 0.98)  # then city-wide boxes
SIDES_KM = (1.0, 50.0)
CITY_SIDES_KM = (40.0, 100.0)
EDGE_DECIMALS = 4  # some ten metres
DISTRICT_SHARE = 0.9  # of the surroundings; the others are circles
DISTRICT_SPREADS = 2.0  # from the middle of a district to its edge
CIRCLES_KM = (1.0, 10.0)  # across


def draw_regions(posts: Posts, random: np.random.Generator) -> list[str]:
    """A region for each post, as JSON."""
    size = len(posts.lon)
    form = np.searchsorted(REGION_EDGES, random.random(size), side="right")
    city_wide = form == CITY_BOX
    low_km, high_km = np.where(city_wide[:, None], np.array(CITY_SIDES_KM), np.array(SIDES_KM)).T
    half_m = 500.0 * low_km * (high_km / low_km) ** random.random(size)
    anchors = ground()
    lon = np.where(city_wide, anchors.lon[posts.anchor], posts.lon)
    lat = np.where(city_wide, anchors.lat[posts.anchor], posts.lat)
    regions = [""] * size
    for chosen, print_regions in (
        ((form == BOX) | city_wide, _stretched_boxes),
        (form == CIRCLE, _circles),
        (form == POLYGON, _polygons),
    ):
        rows = np.flatnonzero(chosen)
        texts = print_regions(_Extents(lon[rows], lat[rows], half_m[rows]), random)
        for row, text in zip(rows.tolist(), texts, strict=True):
            regions[row] = text
    return regions


def draw_surroundings(posts: Posts, random: np.random.Generator) -> list[str]:
    """The district of each post, which is one and the same for all who ask, or a circle: as JSON.

    A district is a box about a hot spot, or about the core of the post's city.
    """
    size = len(posts.lon)
    anchors = ground()
    core = np.searchsorted(anchors.city, anchors.city[posts.anchor])
    is_hot = np.array([topic != "" for topic in anchors.topics])[posts.anchor]
    about = np.where(is_hot, posts.anchor, core)
    lon, lat = anchors.lon[about], anchors.lat[about]
    reach_m = DISTRICT_SPREADS * anchors.spread_m[about]
    least_km, most_km = CIRCLES_KM
    radius_m = 500.0 * least_km * (most_km / least_km) ** random.random(size)
    in_district = (random.random(size) < DISTRICT_SHARE).tolist()
    districts = _boxes(_Extents(lon, lat, reach_m), np.ones(size))
    circles = _circles(_Extents(posts.lon, posts.lat, radius_m), random)
    return [
        district if named else circle
        for district, circle, named in zip(districts, circles, in_district, strict=True)
    ]


class _Extents(NamedTuple):
    """Centres of regions, and how far they reach."""

    lon: Floats
    lat: Floats
    half_m: Floats

    def half_sides(self) -> tuple[Floats, Floats]:
        half_lat = self.half_m / METRES_PER_DEGREE
        return half_lat / np.cos(np.radians(self.lat)), half_lat


def _stretched_boxes(at: _Extents, random: np.random.Generator) -> list[str]:
    # Up to three times as long as wide, of the same area.
    return _boxes(at, np.exp2(random.random(len(at.lon)) * 1.6 - 0.8))


def _boxes(at: _Extents, stretch: Floats) -> list[str]:
    half_lon, half_lat = at.half_sides()
    wests = printed(wrap(at.lon - half_lon * stretch), EDGE_DECIMALS)
    souths = printed(np.maximum(at.lat - half_lat / stretch, -90.0), EDGE_DECIMALS)
    easts = printed(wrap(at.lon + half_lon * stretch), EDGE_DECIMALS)
    norths = printed(np.minimum(at.lat + half_lat / stretch, 90.0), EDGE_DECIMALS)
    return [
        f'{{"box":[{west},{south},{east},{north}]}}'
        for west, south, east, north in zip(wests, souths, easts, norths, strict=True)
    ]


def _circles(at: _Extents, random: np.random.Generator) -> list[str]:
    xs, ys = printed(at.lon, EDGE_DECIMALS), printed(at.lat, EDGE_DECIMALS)
    radii = np.rint(at.half_m).astype(np.int64).tolist()
    return [
        f'{{"circle":{{"lon":{x},"lat":{y},"radius_m":{radius}}}}}'
        for x, y, radius in zip(xs, ys, radii, strict=True)
    ]


def _polygons(at: _Extents, random: np.random.Generator) -> list[str]:
    """One closed ring of 5 to 8 corners each, counter-clockwise, star-shaped around the point."""
    size = len(at.lon)
    half_lon, half_lat = at.half_sides()
    corners = random.integers(5, 9, size)
    turns = (np.arange(8) + 0.7 * random.random((size, 8))) / corners[:, None]
    reach = 0.65 + 0.5 * random.random((size, 8))
    angles = 2 * np.pi * turns
    lons: Floats = at.lon[:, None] + half_lon[:, None] * reach * np.cos(angles)
    lats: Floats = at.lat[:, None] + half_lat[:, None] * reach * np.sin(angles)
    # A polygon cannot cross the antimeridian or a pole; there it is cut off.
    xs = printed(np.clip(lons, -180.0, 180.0).ravel(), EDGE_DECIMALS)
    ys = printed(np.clip(lats, -90.0, 90.0).ravel(), EDGE_DECIMALS)
    polygons = []
    for row, count in enumerate(corners.tolist()):
        corner = slice(row * 8, row * 8 + count)
        ring = [f"[{x},{y}]" for x, y in zip(xs[corner], ys[corner], strict=True)]
        polygons.append(f'{{"polygon":[[{",".join(ring)},{ring[0]}]]}}')
    return polygons
