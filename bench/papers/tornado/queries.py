"""Make Tornado's subscriptions: any of some keywords, in squares of a share of the space.

A share of p% is read in two ways: as Tornado's table of parameters has it, a side of p% of the
space's (cells of its 1000 x 1000 grid are that long at 0.1%), and by area, p% of the space's.
Either way it is a square, and the space is the box of the objects from the 1st to the 99th
percentile, seen as a square of the same area.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bench.harness import STOP_WORDS
from bench.papers.ps2stream.queries import Drawn, centres, with_sides, without_keywords
from bench.workload import KM_PER_DEG
from placewire.kernels.blocks import codes_to_order
from placewire.kernels.space.cells import points_to_codes
from placewire.kinds.boolean.kernels.probes import Probe
from placewire.kinds.boolean.match import make_probe
from placewire.model.expression import ACCEPT, COVER_ALL, COVER_ONE, REJECT
from placewire.model.subscriptions import (
    SubscriptionRows,
    lengths_to_offsets,
    take_rows,
    take_slices,
)

KEYWORDS = 3
RANGE = 0.1  # percent
BY_SIDE, BY_AREA = "side", "area"
MIDDLE = (1, 99)  # percentiles: a few objects at the ends of the world are not the space
REACH = 6  # keywords to look through for each that is wanted: some occur twice
BAND = 20  # keywords of one frequency: so many have the upper fifth of all occurrences


class Reading(NamedTuple):
    """A range: its share in percent, of what, and the side that makes."""

    share: float
    of: str
    side_km: float


def read_range(objects: Probe, share: float, of: str = BY_SIDE) -> Reading:
    """The square that a share of the space is."""
    (west, east), (south, north) = (np.percentile(at, MIDDLE) for at in (objects.lon, objects.lat))
    narrowing = np.cos(np.radians((south + north) / 2))
    side_km = KM_PER_DEG * np.sqrt((east - west) * narrowing * (north - south))
    part = share / 100 if of == BY_SIDE else np.sqrt(share / 100)
    return Reading(share, of, float(side_km * part))


def take_objects(objects: Probe, step: int, most: int | None = None) -> Probe:
    """Every `step`-th object, or the first `most` of these."""
    picked = np.arange(0, objects.codes.size, step)[:most]
    offsets, at = take_slices(objects.term_offsets, picked)
    return make_probe(
        objects.codes[picked], objects.lon[picked], objects.lat[picked], objects.now_us[picked],
        offsets, objects.terms[at],
    )  # fmt: skip


def scatter_places(drawn: Drawn, most_km: float) -> Drawn:
    """Objects and subscriptions each moved by up to so far, as if none were at a centre."""
    random = np.random.default_rng(17)
    o = drawn.objects
    lon, lat = move_points(o.lon, o.lat, most_km, random)
    codes = points_to_codes(lon, lat)
    order = codes_to_order(codes)
    offsets, at = take_slices(o.term_offsets, order)
    objects = make_probe(
        codes[order], lon[order], lat[order], o.now_us[order], offsets, o.terms[at]
    )
    centre = np.column_stack(move_points(*centres(drawn.rows), most_km, random))
    return Drawn(objects, drawn.rows._replace(box=np.tile(centre, 2)))


def move_points(
    lon: np.ndarray, lat: np.ndarray, most_km: float, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Points moved by up to so far each way."""
    east, north = random.uniform(-most_km, most_km, (2, lon.size)) / KM_PER_DEG
    moved = lon + east / np.maximum(np.cos(np.radians(lat)), 0.01)
    return np.clip(moved, -180, 180), np.clip(lat + north, -90, 90)


def drop_stop_words(drawn: Drawn) -> Drawn:
    """Subscriptions without the most frequent terms, which most objects would match."""
    terms, counts = np.unique(drawn.objects.terms, return_counts=True)
    frequent = terms[np.argsort(-counts, kind="stable")[:STOP_WORDS]]
    return drawn._replace(rows=without_keywords(drawn.rows, frequent))


def make_queries(
    drawn: Drawn, count: int, side_km: float, keywords: int = KEYWORDS
) -> SubscriptionRows:
    """The first `count` drawn subscriptions as squares with exactly so many keywords."""
    picked = np.arange(count)
    squares = with_sides(drawn.rows, picked, side_km, np.random.default_rng(11), side_km)
    return ask_any(squares, *gather_keywords(drawn.rows, picked, keywords))


def gather_keywords(
    rows: SubscriptionRows, picked: np.ndarray, keywords: int
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct keywords of the picked rows: their own first, then those of the next on the curve.

    Rows have up to three of their own. The next rows on the curve are mostly drawn from the same
    text, a kilometre away, or from one of the same place.
    """
    order = np.argsort(points_to_codes(*centres(rows)), kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    offsets, at = take_slices(rows.literal_offsets, order)
    terms = rows.literal_term[at]
    window = offsets[rank[picked], None] + np.arange(REACH * keywords)
    near = terms[window % terms.size]
    fresh = np.ones(near.shape, np.bool_)
    for k in range(1, near.shape[1]):
        fresh[:, k] = (near[:, :k] != near[:, k, None]).all(axis=1)
    fresh &= fresh.cumsum(axis=1) <= keywords
    return lengths_to_offsets(fresh.sum(axis=1)), near[fresh]


def ask_any(rows: SubscriptionRows, offsets: np.ndarray, terms: np.ndarray) -> SubscriptionRows:
    """The rows with other keywords, of which one suffices."""
    last, following = chain_literals(offsets)
    return rows._replace(
        cover_mode=np.where(np.diff(offsets) > 1, COVER_ALL, COVER_ONE).astype(np.uint8),
        literal_offsets=offsets,
        literal_term=terms,
        literal_true=np.full(terms.size, ACCEPT, np.int16),
        literal_false=np.where(last, REJECT, following).astype(np.int16),
        literal_cover=np.ones(terms.size, np.uint8),
    )


def ask_all(rows: SubscriptionRows) -> SubscriptionRows:
    """The same rows, whose keywords are all needed."""
    last, following = chain_literals(rows.literal_offsets)
    return rows._replace(
        cover_mode=np.full(rows.total, COVER_ONE, np.uint8),
        literal_true=np.where(last, ACCEPT, following).astype(np.int16),
        literal_false=np.full(last.size, REJECT, np.int16),
    )


def chain_literals(offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which literals are the last of their row, and the number of each one's next in the row."""
    last = np.zeros(int(offsets[-1]), np.bool_)
    last[offsets[1:] - 1] = True
    return last, np.arange(last.size) - np.repeat(offsets[:-1], np.diff(offsets)) + 1


class Band(NamedTuple):
    """Terms of about one frequency: those around a quantile of all occurrences in objects."""

    quantile: float
    terms: np.ndarray
    per_object: float


def find_band(drawn: Drawn, quantile: float) -> Band:
    """The terms around a quantile; at 0 they are those that no object has, if there are any.

    Of the terms themselves most occur once, so quantiles are of occurrences: so many of all words
    in the texts are rarer.
    """
    present, counts = np.unique(drawn.objects.terms, return_counts=True)
    absent = np.setdiff1d(drawn.rows.literal_term, present)
    terms = np.concatenate([absent, present])
    counts = np.concatenate([np.zeros(absent.size, np.int64), counts])
    order = np.argsort(counts, kind="stable")
    terms, counts = terms[order], counts[order]
    at = int(np.searchsorted(np.cumsum(counts), quantile * counts.sum()))
    first = min(max(at - BAND // 2, 0), max(terms.size - BAND, 0))
    band = slice(first, first + BAND)
    return Band(quantile, terms[band], float(counts[band].mean() / drawn.objects.codes.size))


def ask_band(rows: SubscriptionRows, band: Band, keywords: int = KEYWORDS) -> SubscriptionRows:
    """The rows with distinct keywords of a band instead of their own."""
    random = np.random.default_rng(13)
    # Steps around the band that cannot come round to where they began.
    steps = random.integers(1, band.terms.size // keywords + 1, (rows.total, keywords))
    steps[:, 0] = random.integers(0, band.terms.size, rows.total)
    at = steps.cumsum(axis=1) % band.terms.size
    offsets = np.arange(rows.total + 1, dtype=np.int64) * keywords
    return ask_any(rows, offsets, band.terms[at].ravel())


def take_first(rows: SubscriptionRows, count: int) -> SubscriptionRows:
    """The first `count` rows."""
    return take_rows(rows, np.arange(count))
