"""Subscriptions: standing questions of the same people, about the same places and words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.city.ground import METRES_PER_DEGREE, ground, wrap
from placewire.city.hour import Hour, printed
from placewire.city.objects import Posts, draw_posts
from placewire.city.phrasebook import COMMON, NAME, WORD, draw_pieces, phrasebook
from placewire.city.urns import Floats, choose

BOX, CIRCLE, POLYGON, CITY_BOX = range(4)
REGION_EDGES = (0.70, 0.90, 0.98)  # then city-wide boxes
SIDES_KM = (1.0, 50.0)
CITY_SIDES_KM = (40.0, 100.0)
KEYWORD_SLOTS = ((WORD, 0.64), (NAME, 0.30), (COMMON, 0.06))
EDGE_DECIMALS = 4  # some ten metres
EXPIRES_SHARE = 0.10
EXPIRES_AFTER_HOURS = (0.1, 2.0)  # of the log, from its own beginning
# What `where` looks like, by weight. Keywords are filled in, as many as the form has.
WHERE_FORMS = (
    ('"{0}"', 30.0),
    ('"{0} AND {1}"', 18.0),
    ('"{0} OR {1}"', 18.0),
    ('"{0} AND {1} AND {2}"', 7.0),
    ('"{0} {1} {2}"', 5.0),
    ('"{0} OR {1} OR {2}"', 12.0),
    ('"{0} AND NOT {1}"', 3.0),
    ('"({0} OR {1}) NOT {2}"', 2.0),
    ('"{0} AND ({1} OR {2})"', 2.0),
    ('{{"all":["{0}",{{"any":["{1}","{2}"]}}]}}', 1.5),
    ('{{"any":["{0}","{1} AND {2}"]}}', 1.0),
    ('{{"all":["{0}",{{"none":["{1}"]}}]}}', 0.5),
)
KEYWORDS = 3
_KEYWORD_SLOTS = np.array([slot for slot, _ in KEYWORD_SLOTS])
_KEYWORD_WEIGHTS = np.array([weight for _, weight in KEYWORD_SLOTS])
_WHERE_WEIGHTS = np.array([weight for _, weight in WHERE_FORMS])


def subscribe_lines(
    numbers: list[int],
    stamps: list[str],
    begins: Floats,
    hour: Hour,
    random: np.random.Generator,
) -> list[str]:
    """The lines that subscribe (or replace) the given numbers, at second `begins` of the hour."""
    size = len(numbers)
    posts = draw_posts(size, ground().weight, random)
    regions = _regions(posts, random)
    wheres = _wheres(posts, random)
    expiring = np.flatnonzero(random.random(size) < EXPIRES_SHARE)
    shortest, longest = EXPIRES_AFTER_HOURS
    lasting = hour.seconds * (shortest + (longest - shortest) * random.random(len(expiring)))
    expiries = hour.stamps(begins[expiring] + lasting)
    for row, expiry in zip(expiring.tolist(), expiries, strict=True):
        wheres[row] += f',"expires":"{expiry}"'
    return [
        f'{{"type":"subscribe","id":"sub-{number:06d}","ts":"{ts}","kind":"boolean",'
        f'"region":{region},"where":{where}}}'
        for number, ts, region, where in zip(numbers, stamps, regions, wheres, strict=True)
    ]


def unsubscribe_line(number: int, stamp: str) -> str:
    """The line that ends a subscription."""
    return f'{{"type":"unsubscribe","id":"sub-{number:06d}","ts":"{stamp}"}}'


def _regions(posts: Posts, random: np.random.Generator) -> list[str]:
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
        ((form == BOX) | city_wide, _boxes),
        (form == CIRCLE, _circles),
        (form == POLYGON, _polygons),
    ):
        rows = np.flatnonzero(chosen)
        texts = print_regions(_Extents(lon[rows], lat[rows], half_m[rows]), random)
        for row, text in zip(rows.tolist(), texts, strict=True):
            regions[row] = text
    return regions


class _Extents(NamedTuple):
    """Centres of regions, and how far they reach."""

    lon: Floats
    lat: Floats
    half_m: Floats

    def half_sides(self) -> tuple[Floats, Floats]:
        half_lat = self.half_m / METRES_PER_DEGREE
        return half_lat / np.cos(np.radians(self.lat)), half_lat


def _boxes(at: _Extents, random: np.random.Generator) -> list[str]:
    half_lon, half_lat = at.half_sides()
    # Up to three times as long as wide, of the same area.
    stretch = np.exp2(random.random(len(at.lon)) * 1.6 - 0.8)
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


def _wheres(posts: Posts, random: np.random.Generator) -> list[str]:
    book = phrasebook()
    size = len(posts.subject)
    slot_rows = choose(_KEYWORD_WEIGHTS, random.random((size, KEYWORDS)))
    slots = _KEYWORD_SLOTS[slot_rows]
    pools = book.subject_pools[posts.subject[:, None], slots]
    keywords = book.pieces[draw_pieces(book, pools, random.random((size, KEYWORDS)))].tolist()
    forms = [form.format for form, _ in WHERE_FORMS]
    chosen = choose(_WHERE_WEIGHTS, random.random(size)).tolist()
    return [forms[row](*words) for row, words in zip(chosen, keywords, strict=True)]
