"""Draw the DkM-SKS paper's workload: initial objects, a stream, and `nearest` subscriptions.

A subscription has the place of a random object and at most five of its keywords at random; k is
uniform in 1..k_max. Subscriptions are drawn from other rows than objects. Objects are venues of the
United States, or made up to the measures of the paper's set Place (53,931 keywords, 3 an object).
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from bench.clock import say
from bench.columns import KEY
from bench.harness import SEED, Setup
from bench.papers.dkm_sks.kernels import places_to_nearest, terms_drawn
from placewire.kernels.jit import read_only
from placewire.kernels.space.z_curve import points_to_curve
from placewire.kinds.nearest.results import Neighbours, no_neighbours, radii_of
from placewire.kinds.nearest.rows import NearestRows, nearest_columns
from placewire.model.expression import COVER_ALL, COVER_ONE
from placewire.model.kinds import NEAREST
from placewire.model.regions import EVERYWHERE, WORLD
from placewire.model.subscriptions import (
    NEVER_US,
    SubscriptionRows,
    lengths_to_offsets,
    take_slices,
)
from placewire.plans.nearest.sample import (
    CircleSample,
    ObjectCounts,
    count_objects_by_term,
    find_terms,
)
from placewire.text.analyzer import Analyzer

VENUES, MADE_UP = "venues", "generated"
INITIAL = 1_000_000  # |O_init| of the paper
TICK_OBJECTS, TICK_INSERTS, TICK_DELETES = 1_000, 100, 100
K_MAX = 10
KEYWORDS = 5
VOCABULARY = 53_931
SOURCES = 600_000  # rows that made-up subscriptions are drawn from
STRETCH = 100_000  # rows whose first results are found at a time


class ObjectColumns(NamedTuple):
    """Objects: places f64[n], f64[n], and their terms, distinct, as a CSR column."""

    lon: np.ndarray
    lat: np.ndarray
    term_offsets: np.ndarray
    terms: np.ndarray

    def take(self, picked: np.ndarray) -> ObjectColumns:
        offsets, at = take_slices(self.term_offsets, picked)
        return ObjectColumns(self.lon[picked], self.lat[picked], offsets, self.terms[at])


class NearestSource(NamedTuple):
    """Objects in the order of the stream, the first `INITIAL` at the start; rows to draw from."""

    name: str
    initial: ObjectColumns
    stream: ObjectColumns
    askers: ObjectColumns
    census: ObjectCounts
    seqs: np.ndarray  # of the census's objects


class StandingResults(NamedTuple):
    """Subscriptions with the results that the initial objects give them."""

    source: NearestSource
    rows: SubscriptionRows
    neighbours: Neighbours
    radius: np.ndarray
    k_max: int
    within_m: float

    def sample(self) -> CircleSample:
        """What plans are made of."""
        own = nearest_columns(self.rows)
        return CircleSample(
            own.lon,
            own.lat,
            self.rows.k.astype(np.int32),
            self.radius,
            self.rows.literal_offsets,
            self.rows.literal_term,
            *self.source.initial,
        )


def read_source(setup: Setup, name: str, ticks: int, initial: int = INITIAL) -> NearestSource:
    """Objects of a set in a random order, divided into initial ones, the stream and askers."""
    rng = np.random.default_rng([SEED, 5])
    streamed = initial + ticks * TICK_OBJECTS
    if name == VENUES:
        assert setup.data is not None
        everything = read_venues(str(setup.data / "venues_us.parquet"))
    else:
        everything = make_up(rng, streamed + min(SOURCES, initial))
    order = rng.permutation(everything.lon.size)
    first, stream, askers = np.split(order, [initial, streamed])
    initial_columns = everything.take(first)
    census, seqs = take_census_by_seq(initial_columns)
    return NearestSource(
        name, initial_columns, everything.take(stream), everything.take(askers), census, seqs
    )


def read_venues(path: str) -> ObjectColumns:
    """The venues with terms; a few have none."""
    table = pq.read_table(path, columns=["lon", "lat", "text"])
    text = table["text"].combine_chunks()
    _, offsets, raw = text.buffers()
    bounds = np.frombuffer(offsets, np.int32)[text.offset : text.offset + len(text) + 1]
    terms = Analyzer(*KEY).analyse(
        np.frombuffer(raw, np.uint8), bounds[:-1].astype(np.uint32), bounds[1:].astype(np.uint32)
    )
    columns = ObjectColumns(
        table["lon"].to_numpy(), table["lat"].to_numpy(), terms.offsets, terms.hashes
    )
    return columns.take(np.flatnonzero(np.diff(terms.offsets)))


def make_up(rng: np.random.Generator, n: int) -> ObjectColumns:
    """Objects about 200 cities, with 1 to 5 keywords by Zipf's law."""
    centre_lon, centre_lat = rng.uniform(-120, -70, 200), rng.uniform(26, 48, 200)
    share = 1.0 / np.arange(1, 201)
    city = rng.choice(200, n, p=share / share.sum())
    lon = np.round(centre_lon[city] + rng.normal(0, 0.15, n), 6)
    lat = np.round(centre_lat[city] + rng.normal(0, 0.15, n), 6)
    owner = np.repeat(np.arange(n), rng.integers(1, KEYWORDS + 1, n))
    weight = np.cumsum(1.0 / np.arange(1, VOCABULARY + 1))
    word = np.searchsorted(weight, rng.random(owner.size) * weight[-1])
    # A word counts once an object; hashes ascend as words do, since terms come in their order.
    shuffled = rng.permutation(VOCABULARY)
    owner, word = np.divmod(np.unique(owner * VOCABULARY + shuffled[word]), VOCABULARY)
    hashes = np.sort(rng.integers(1, 1 << 63, VOCABULARY)).astype(np.uint64)
    return ObjectColumns(
        lon, lat, lengths_to_offsets(np.bincount(owner, minlength=n)), hashes[word]
    )


def take_census_by_seq(objects: ObjectColumns) -> tuple[ObjectCounts, np.ndarray]:
    """The census of objects, and which of them each of its own is."""
    no_places, no_rows = np.empty(0, np.float64), np.empty(0, np.int32)
    sample = CircleSample(
        no_places,
        no_places,
        no_rows,
        no_places,
        np.zeros(1, np.int64),
        np.empty(0, np.uint64),
        *objects,
    )
    order = np.argsort(points_to_curve(objects.lon, objects.lat), kind="stable")
    return count_objects_by_term(sample), order


def draw_rows(
    source: NearestSource, n: int, seed: int, k_max: int = K_MAX, within_m: float = np.inf
) -> SubscriptionRows:
    """n subscriptions of the askers, in no order of place."""
    rng = np.random.default_rng([SEED, seed])
    of = source.askers
    picked = rng.integers(0, of.lon.size, n)
    starts = of.term_offsets[picked]
    lengths = of.term_offsets[picked + 1] - starts
    wanted = np.minimum(lengths, KEYWORDS)
    literal_offsets = lengths_to_offsets(wanted)
    literals = of.terms[
        terms_drawn(starts, lengths, literal_offsets, rng.random(int(literal_offsets[-1])))
    ]
    own = NearestRows(np.column_stack([of.lon[picked], of.lat[picked], np.full(n, within_m)]))
    return SubscriptionRows(
        kind=np.full(n, NEAREST, np.uint8),
        k=rng.integers(1, k_max + 1, n).astype(np.uint16),
        begin_seq=np.full(n, -1, np.int64),
        expires_us=np.full(n, NEVER_US),
        id_hash=rng.integers(0, 1 << 63, n).astype(np.uint64),
        id_offsets=np.arange(n + 1, dtype=np.int64) * 8,
        id_bytes=np.arange(n, dtype=np.int64).view(np.uint8),
        region_kind=np.full(n, EVERYWHERE, np.uint8),
        box=np.tile(np.array(WORLD), (n, 1)),
        shape_offsets=np.zeros(n + 1, np.int64),
        shape=np.empty(0),
        cover_mode=np.where(wanted == 1, COVER_ONE, COVER_ALL).astype(np.uint8),
        literal_offsets=literal_offsets,
        literal_term=literals,
        literal_true=np.zeros(literals.size, np.int16),
        literal_false=np.zeros(literals.size, np.int16),
        literal_cover=np.ones(literals.size, np.uint8),
        own={NEAREST: own},
    )


def stand(
    source: NearestSource, n: int, k_max: int = K_MAX, within_m: float = np.inf, told: bool = False
) -> StandingResults:
    """n subscriptions that were there before the initial objects.

    Their results are found at once, as the k nearest among these objects; letting the objects come
    one by one gives the same.
    """
    rows = draw_rows(source, n, seed=6, k_max=k_max, within_m=within_m)
    neighbours = find_first(source, rows, told)
    radius = radii_of(neighbours, np.full(n, within_m))
    return StandingResults(source, rows, neighbours, radius, k_max, within_m)


def find_first(source: NearestSource, rows: SubscriptionRows, told: bool = False) -> Neighbours:
    """The k nearest initial objects of each row, found on two threads."""
    census = source.census
    neighbours = no_neighbours(rows.k)
    own = nearest_columns(rows)
    lon, lat, within_m = own.lon, own.lat, own.within_m
    lists = find_terms(census, rows.literal_term)
    # Along the curve, so that neighbours look at the same objects.
    order = np.argsort(points_to_curve(lon, lat))
    started = time.monotonic()

    def find(begin: int) -> None:
        places_to_nearest(
            census.code,
            census.lon,
            census.lat,
            read_only(source.seqs),
            census.list_offsets,
            census.members,
            read_only(order[begin : begin + STRETCH]),
            read_only(lon),
            read_only(lat),
            read_only(within_m),
            read_only(rows.literal_offsets),
            read_only(lists),
            read_only(neighbours.offsets),
            neighbours.counts,
            neighbours.distance,
            neighbours.seq,
        )

    with ThreadPoolExecutor(2) as threads:
        for done, _ in enumerate(threads.map(find, range(0, rows.total, STRETCH)), 1):
            if told and done % 5 == 0:
                say(
                    f"  first results of {min(done * STRETCH, rows.total):,}"
                    f" ({time.monotonic() - started:.0f} s)",
                )
    return neighbours
