"""Subscriptions and queries: generated ones, and readable ones with something to find.

Generated ones ask about the places and words that people post about; criteria are their JSON fields
without those that only subscriptions or only queries have. The readable ones are data files in
`data/`. Each readable query is asked at a fraction of the period, when the incident it asks about
has happened.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import msgspec
import numpy as np

from placewire.demo.lines import Floats, Ints, Period, choose, format_decimals, read_data
from placewire.demo.objects import PostContexts, draw_contexts
from placewire.demo.places import METRES_PER_DEGREE, population, wrap_longitudes
from placewire.demo.vocabulary import COMMON, NAME, WORD, compile_templates

Forms = tuple[tuple[str, float], ...]
DrawCriteria = Callable[[PostContexts, np.random.Generator], list[str]]

MOST_KEYWORDS = 3
KEYWORD_SLOTS = ((WORD, 0.64), (NAME, 0.30), (COMMON, 0.06))
# Forms of `where` with their weights. Keywords fill the numbered slots.
WHERE_FORMS: Forms = (
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
# Forms of `keywords` of a nearest; without `mode` any of them is enough.
KEYWORDS_FORMS: Forms = (
    ('["{0}"]', 40.0),
    ('["{0}","{1}"]', 20.0),
    ('["{0}","{1}","{2}"]', 15.0),
    ('["{0}","{1}"],"mode":"any"', 5.0),
    ('["{0}","{1}"],"mode":"all"', 17.0),
    ('["{0}","{1}","{2}"],"mode":"all"', 3.0),
)
# Forms of `keywords` of a relevant, where each adds to the score.
MOST_RELEVANT_KEYWORDS = 4
RELEVANT_FORMS: Forms = (
    ('["{0}"]', 30.0),
    ('["{0}","{1}"]', 35.0),
    ('["{0}","{1}","{2}"]', 20.0),
    ('["{0}","{1}","{2}","{3}"]', 15.0),
)
K_WEIGHTS = np.array([24.0, 12.0, 20.0, 6.0, 20.0, 2.0, 2.0, 3.0, 1.0, 10.0])  # of 1 to 10
WITHIN_SHARE = 0.4
WITHIN_M = (500.0, 50_000.0)
RELEVANT_KS = np.array([1, 2, 3, 5, 8, 10, 12, 15, 20])
RELEVANT_K_WEIGHTS = np.array([10.0, 5.0, 20.0, 30.0, 5.0, 20.0, 2.0, 3.0, 5.0])
ALPHAS = np.array([0.5, 0.3, 0.7, 0.4, 0.6, 0.2, 0.8, 0.0, 1.0])  # last: only text, only distance
ALPHA_WEIGHTS = np.array([30.0, 16.0, 16.0, 10.0, 10.0, 8.0, 8.0, 1.0, 1.0])
REACH_SHARE = 0.85
REACH_M = (2_000.0, 50_000.0)
TRENDING_KS = (5, 10)  # least and most
BOX, CIRCLE, POLYGON, CITY_BOX = range(4)
REGION_EDGES = (0.70, 0.90, 0.98)  # then city-wide boxes
SIDES_KM = (1.0, 50.0)
CITY_SIDES_KM = (40.0, 100.0)
EDGE_DECIMALS = 4  # about ten metres
DISTRICT_SHARE = 0.9  # of the regions of a trending; the others are circles
DISTRICT_SPREADS = 2.0  # from the centre of a district to its edge
CIRCLES_KM = (1.0, 10.0)  # diameter
_KEYWORD_SLOTS = np.array([slot for slot, _ in KEYWORD_SLOTS])
_KEYWORD_WEIGHTS = np.array([weight for _, weight in KEYWORD_SLOTS])

NEAREST_SHARE = 1 / 8
RELEVANT_SHARE = 1 / 40
TRENDING_SHARE = 1 / 40
EVERY = ("PT5M", "PT10M")
WINDOWS = ("PT10M", "PT20M", "PT30M")
EXPIRES_SHARE = 0.10
EXPIRES_AFTER_PERIODS = (0.1, 2.0)
QUERY_KIND_WEIGHTS = np.array([3.0, 3.0, 2.0, 2.0])
LAST = ("PT5M", "PT10M", "PT15M", "PT30M", "PT1H")


def boolean_criteria(posts: PostContexts, random: np.random.Generator) -> list[str]:
    """A region around each post and an expression: the fields as JSON, `kind` first."""
    regions = draw_regions(posts, random)
    wheres = _fill_forms(WHERE_FORMS, posts, random)
    return [
        f'"kind":"boolean","region":{region},"where":{where}'
        for region, where in zip(regions, wheres, strict=True)
    ]


def nearest_criteria(posts: PostContexts, random: np.random.Generator) -> list[str]:
    """The k nearest to each post with some keywords: the fields as JSON, `kind` first."""
    ks = (choose(K_WEIGHTS, random.random(len(posts.lon))) + 1).tolist()
    limits = _some_metres("within_m", WITHIN_M, WITHIN_SHARE, len(posts.lon), random)
    lines = zip(_points(posts), _fill_forms(KEYWORDS_FORMS, posts, random), ks, limits, strict=True)
    return [
        f'"kind":"nearest",{point},"k":{k},"keywords":{keywords}{limit}'
        for point, keywords, k, limit in lines
    ]


def relevant_criteria(posts: PostContexts, random: np.random.Generator) -> list[str]:
    """The k most relevant to each post: the fields as JSON, `kind` first."""
    size = len(posts.lon)
    ks = RELEVANT_KS[choose(RELEVANT_K_WEIGHTS, random.random(size))].tolist()
    alphas = ALPHAS[choose(ALPHA_WEIGHTS, random.random(size))].tolist()
    reaches = _some_metres("reach_m", REACH_M, REACH_SHARE, size, random)
    keywords = _fill_forms(RELEVANT_FORMS, posts, random, MOST_RELEVANT_KEYWORDS)
    lines = zip(_points(posts), keywords, ks, alphas, reaches, strict=True)
    return [
        f'"kind":"relevant",{point},"k":{k},"keywords":{words},"alpha":{alpha}{reach}'
        for point, words, k, alpha, reach in lines
    ]


def trending_criteria(posts: PostContexts, random: np.random.Generator) -> list[str]:
    """The k trending terms in the district of each post: the fields as JSON, `kind` first."""
    least, most = TRENDING_KS
    ks = random.integers(least, most + 1, len(posts.lon)).tolist()
    return [
        f'"kind":"trending","region":{region},"k":{k}'
        for region, k in zip(draw_districts(posts, random), ks, strict=True)
    ]


def draw_criteria(
    kinds: Ints,
    draw_functions: tuple[DrawCriteria, ...],
    posts: PostContexts,
    random: np.random.Generator,
) -> list[str]:
    """Draw criteria for each post with the function of its kind."""
    criteria = [""] * len(kinds)
    for kind, draw in enumerate(draw_functions):
        rows = np.flatnonzero(kinds == kind)
        for row, fields in zip(rows.tolist(), draw(posts.take(rows), random), strict=True):
            criteria[row] = fields
    return criteria


def _points(posts: PostContexts) -> list[str]:
    lons = format_decimals(posts.lon, EDGE_DECIMALS)
    lats = format_decimals(posts.lat, EDGE_DECIMALS)
    return [f'"lon":{lon},"lat":{lat}' for lon, lat in zip(lons, lats, strict=True)]


def _some_metres(
    field: str, between: tuple[float, float], share: float, size: int, random: np.random.Generator
) -> list[str]:
    """A field with a distance for a share of the rows; empty for the others."""
    least, most = between
    metres: Floats = np.rint(least * (most / least) ** random.random(size))
    given = (random.random(size) < share).tolist()
    return [
        f',"{field}":{int(distance)}' if has else ""
        for distance, has in zip(metres.tolist(), given, strict=True)
    ]


def _fill_forms(
    forms: Forms, posts: PostContexts, random: np.random.Generator, most: int = MOST_KEYWORDS
) -> list[str]:
    """Choose a form for each post by weight and fill in keywords of the post's subject."""
    table = compile_templates()
    size = len(posts.subject)
    slot_rows = choose(_KEYWORD_WEIGHTS, random.random((size, most)))
    slots = _KEYWORD_SLOTS[slot_rows]
    pools = table.subject_pools[posts.subject[:, None], slots]
    keywords = table.pieces[table.draw_pieces(pools, random.random((size, most)))].tolist()
    fills: list[Callable[..., str]] = [form.format for form, _ in forms]
    weights = np.array([weight for _, weight in forms])
    chosen = choose(weights, random.random(size)).tolist()
    return [fills[row](*words) for row, words in zip(chosen, keywords, strict=True)]


def draw_regions(posts: PostContexts, random: np.random.Generator) -> list[str]:
    """Draw a box, circle or polygon around each post, as JSON."""
    size = len(posts.lon)
    form = np.searchsorted(REGION_EDGES, random.random(size), side="right")
    city_wide = form == CITY_BOX
    low_km, high_km = np.where(city_wide[:, None], np.array(CITY_SIDES_KM), np.array(SIDES_KM)).T
    half_m = 500.0 * low_km * (high_km / low_km) ** random.random(size)
    components = population()
    lon = np.where(city_wide, components.lon[posts.component], posts.lon)
    lat = np.where(city_wide, components.lat[posts.component], posts.lat)
    regions = [""] * size
    for chosen, format_regions in (
        ((form == BOX) | city_wide, _stretched_boxes),
        (form == CIRCLE, _circles),
        (form == POLYGON, _polygons),
    ):
        rows = np.flatnonzero(chosen)
        texts = format_regions(_Extents(lon[rows], lat[rows], half_m[rows]), random)
        for row, text in zip(rows.tolist(), texts, strict=True):
            regions[row] = text
    return regions


def draw_districts(posts: PostContexts, random: np.random.Generator) -> list[str]:
    """Draw the district of each post or a circle around the post, as JSON.

    A district is a box around a hot spot or the core of a city, the same box for all its posts.
    """
    size = len(posts.lon)
    components = population()
    core = np.searchsorted(components.city, components.city[posts.component])
    is_hot = np.array([topic != "" for topic in components.topics])[posts.component]
    about = np.where(is_hot, posts.component, core)
    lon, lat = components.lon[about], components.lat[about]
    reach_m = DISTRICT_SPREADS * components.spread_m[about]
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
    """Centres of regions and the distances to their edges."""

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
    wests = format_decimals(wrap_longitudes(at.lon - half_lon * stretch), EDGE_DECIMALS)
    souths = format_decimals(np.maximum(at.lat - half_lat / stretch, -90.0), EDGE_DECIMALS)
    easts = format_decimals(wrap_longitudes(at.lon + half_lon * stretch), EDGE_DECIMALS)
    norths = format_decimals(np.minimum(at.lat + half_lat / stretch, 90.0), EDGE_DECIMALS)
    return [
        f'{{"box":[{west},{south},{east},{north}]}}'
        for west, south, east, north in zip(wests, souths, easts, norths, strict=True)
    ]


def _circles(at: _Extents, random: np.random.Generator) -> list[str]:
    xs, ys = format_decimals(at.lon, EDGE_DECIMALS), format_decimals(at.lat, EDGE_DECIMALS)
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
    # A polygon cannot cross the antimeridian or a pole; it is clipped there.
    xs = format_decimals(np.clip(lons, -180.0, 180.0).ravel(), EDGE_DECIMALS)
    ys = format_decimals(np.clip(lats, -90.0, 90.0).ravel(), EDGE_DECIMALS)
    polygons = []
    for row, count in enumerate(corners.tolist()):
        corner = slice(row * 8, row * 8 + count)
        ring = [f"[{x},{y}]" for x, y in zip(xs[corner], ys[corner], strict=True)]
        polygons.append(f'{{"polygon":[[{",".join(ring)},{ring[0]}]]}}')
    return polygons


class ReadableQuery(NamedTuple):
    """A query without `type` and `ts`, and the fraction of the period at which it is asked."""

    at: float
    event: dict[str, Any]


@cache
def _readable_events() -> list[dict[str, Any]]:
    lines = read_data("subscriptions.jsonl")
    return msgspec.json.Decoder(dict[str, Any]).decode_lines(lines)


def readable_subscriptions(start: str = "2026-03-01T12:00:00Z") -> list[dict[str, Any]]:
    """The readable subscriptions as `subscribe` events at `start`, in the order of the log."""
    return [
        {"type": "subscribe", "id": event["id"], "ts": start, **event}
        for event in _readable_events()
    ]


@cache
def readable_queries() -> tuple[ReadableQuery, ...]:
    """The readable queries in the order of the log."""
    lines = msgspec.json.Decoder(dict[str, Any]).decode_lines(read_data("queries.jsonl"))
    return tuple(ReadableQuery(**line) for line in lines)


def subscribe_lines(
    numbers: list[int],
    timestamps: list[str],
    begins: Floats,
    period: Period,
    random: np.random.Generator,
) -> list[str]:
    """The lines that subscribe (or replace) the given numbers, at second `begins` of the period."""
    size = len(numbers)
    posts = draw_contexts(size, population().weight, random)
    kinds = np.searchsorted(_KIND_EDGES, random.random(size), side="right")
    criteria = draw_criteria(kinds, _SUBSCRIPTION_CRITERIA, posts, random)
    expiring = np.flatnonzero(random.random(size) < EXPIRES_SHARE)
    shortest, longest = EXPIRES_AFTER_PERIODS
    lasting = period.seconds * (shortest + (longest - shortest) * random.random(len(expiring)))
    expiries = period.timestamps(begins[expiring] + lasting)
    for row, expiry in zip(expiring.tolist(), expiries, strict=True):
        criteria[row] += f',"expires":"{expiry}"'
    return [
        f'{{"type":"subscribe","id":"sub-{number:06d}","ts":"{ts}",{fields}}}'
        for number, ts, fields in zip(numbers, timestamps, criteria, strict=True)
    ]


def unsubscribe_line(number: int, timestamp: str) -> str:
    """The line that ends a subscription."""
    return f'{{"type":"unsubscribe","id":"sub-{number:06d}","ts":"{timestamp}"}}'


def query_lines(numbers: range, timestamps: list[str], random: np.random.Generator) -> list[str]:
    size = len(numbers)
    posts = draw_contexts(size, population().weight, random)
    kinds = choose(QUERY_KIND_WEIGHTS, random.random(size))
    criteria = draw_criteria(kinds, _QUERY_CRITERIA, posts, random)
    lasts = random.integers(0, len(LAST), size).tolist()
    return [
        f'{{"type":"query","id":"query-{number:06d}","ts":"{ts}",{fields},"last":"{LAST[last]}"}}'
        for number, ts, fields, last in zip(numbers, timestamps, criteria, lasts, strict=True)
    ]


def _trending_subscription_criteria(posts: PostContexts, random: np.random.Generator) -> list[str]:
    """Criteria of a trending with its window and how often it reports."""
    size = len(posts.lon)
    windows = random.integers(0, len(WINDOWS), size).tolist()
    every = random.integers(0, len(EVERY), size).tolist()
    criteria = trending_criteria(posts, random)
    return [
        f'{fields},"window":"{WINDOWS[window]}","every":"{EVERY[pace]}"'
        for fields, window, pace in zip(criteria, windows, every, strict=True)
    ]


_QUERY_CRITERIA = (boolean_criteria, nearest_criteria, relevant_criteria, trending_criteria)
_SUBSCRIPTION_CRITERIA = (*_QUERY_CRITERIA[:3], _trending_subscription_criteria)
_KIND_EDGES = 1 - np.cumsum([TRENDING_SHARE, RELEVANT_SHARE, NEAREST_SHARE])[::-1]
