"""Make a month of retained objects for snapshot queries (SSTD, section 7.1).

Real objects are posts_us, all of it first, then venues_us, whose places are of the same country but
whose texts are shorter (names and categories). When both are used up they come again and again,
as the paper duplicates its set: a repeat has the same text under a new id, moved by up to 1 km each
way and by up to half a day. `traffic` is traffic_nsw alone, with a few terms in most of its texts.
Without real data objects are those of `placewire.demo`, all over the world.

Times are not the sets' own, which are years apart or absent: objects are in the order of their
times (venues: in a random order) and spaced evenly over the 31 days of August 2014. So `last` of
72 hours is always 72/744 of the objects, and what was said at one time is still close in time.

`uniform` and `gaussian` are the paper's relocations of the same texts, the latter with a standard
deviation of 1 degree about the middle of the space. The space is the box of the objects where they
really were, from the 1st to the 99th percentile: a few at the ends of the world are not the space.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.harness import SEED, Setup
from bench.workload import JITTER_KM, KM_PER_DEG, Workload, analyze, write_objects_log
from placewire.demo import CityLife, blocks

REAL, TRAFFIC, UNIFORM, GAUSSIAN = "real", "traffic", "uniform", "gaussian"
BEGIN_US = 1_406_851_200_000_000  # 2014-08-01T00:00:00Z
HOUR_US = 3_600_000_000
DAYS = 31
REPEAT_SHIFT = 0.5 / DAYS  # of a repeat's time, as a share of the month
MIDDLE = (1, 99)  # percentiles
SIGMA_DEG = 1.0
ROW_GROUP = 65_536
TIMED = {"posts_us": True, "traffic_nsw": True, "venues_us": False}


class RetainedObjects(NamedTuple):
    """Objects (id, ts, lon, lat, text, terms) in the order of the log; row n is that of seq n."""

    name: str
    objects: pa.Table
    space: tuple[float, float, float, float]  # west, south, east, north
    log: Path
    parquet: Path

    @property
    def now_us(self) -> int:
        return int(self.objects["ts"][-1].value)


class TimedRows(NamedTuple):
    """Located texts; `at` is each one's place in time, from 0 to 1."""

    lon: np.ndarray
    lat: np.ndarray
    at: np.ndarray
    text: pa.Array

    def take(self, rows: np.ndarray) -> TimedRows:
        return TimedRows(
            self.lon[rows], self.lat[rows], self.at[rows], self.text.take(pa.array(rows))
        )


def retain(setup: Setup, count: int, name: str = REAL) -> RetainedObjects:
    """So many objects, written as a log and as Parquet; made once in a run."""
    stem = setup.folder / f"snapshot-{name}-{count}"
    log, parquet = stem.with_suffix(".jsonl"), stem.with_suffix(".parquet")
    space_file = stem.with_suffix(".space")
    if not space_file.exists():
        rng = np.random.default_rng([SEED, 9])
        rows = read_rows(setup, count, name, rng)
        space = find_space(rows)
        objects = make_objects(relocate(rows, name, space, rng))
        write_objects_log(Workload(objects.drop_columns(["terms"]), objects.slice(0, 0)), log)
        pq.write_table(objects, parquet, row_group_size=ROW_GROUP)
        space_file.write_bytes(msgspec.json.encode(space))
    space = msgspec.json.decode(space_file.read_bytes(), type=tuple[float, float, float, float])
    return RetainedObjects(name, pq.read_table(parquet).combine_chunks(), space, log, parquet)


def read_rows(setup: Setup, count: int, name: str, rng: np.random.Generator) -> TimedRows:
    """So many rows in the order of their times, repeated if need be."""
    if setup.data is None:
        return live_in_city(count)
    sets = ("traffic_nsw",) if name == TRAFFIC else ("posts_us", "venues_us")
    taken: list[TimedRows] = []
    missing, rounds = count, 0
    while missing > 0:
        for of in sets:
            rows = read_set(setup.data / f"{of}.parquet", TIMED[of], rng)
            rows = rows.take(rng.permutation(rows.lon.size)[:missing])
            taken.append(repeat(rows, rng) if rounds else rows)
            missing -= rows.lon.size
        rounds += 1
    lon, lat, at = (np.concatenate(column) for column in list(zip(*taken, strict=True))[:3])
    text = pa.concat_arrays([rows.text for rows in taken])
    return TimedRows(lon, lat, at, text).take(np.argsort(at, kind="stable"))


def read_set(path: Path, timed: bool, rng: np.random.Generator) -> TimedRows:
    """A set of rows; those without times get some at random."""
    table = pq.read_table(path, columns=["ts", "lon", "lat", "text"]).combine_chunks()
    at = rng.random(table.num_rows)
    if timed:
        order = np.argsort(table["ts"].cast(pa.int64()).to_numpy(), kind="stable")
        at[order] = np.arange(order.size) / order.size
    text = table["text"].combine_chunks()
    return TimedRows(table["lon"].to_numpy(), table["lat"].to_numpy(), at, text)


def repeat(rows: TimedRows, rng: np.random.Generator) -> TimedRows:
    """The rows again, somewhat elsewhere and at another time."""
    east, north = rng.uniform(-JITTER_KM, JITTER_KM, (2, rows.lon.size)) / KM_PER_DEG
    lon = rows.lon + east / np.maximum(np.cos(np.radians(rows.lat)), 0.01)
    at = rows.at + rng.uniform(-REPEAT_SHIFT, REPEAT_SHIFT, rows.at.size)
    return rows._replace(
        lon=np.round(np.clip(lon, -180, 180), 6),
        lat=np.round(np.clip(rows.lat + north, -90, 90), 6),
        at=np.clip(at, 0, 1),
    )


class CityObject(msgspec.Struct):
    """What is read of a line of the city's log."""

    lon: float
    lat: float
    text: str


def live_in_city(count: int) -> TimedRows:
    """Objects of a made-up month in 150 cities, in the order of their log."""
    life = CityLife(seed=SEED, objects=count, subscriptions=0, queries=0, seconds=DAYS * 86_400)
    decoder = msgspec.json.Decoder(CityObject)
    objects = [o for block in blocks(life) for o in decoder.decode_lines(block)]
    lon, lat = (np.array([getattr(o, name) for o in objects]) for name in ("lon", "lat"))
    return TimedRows(lon, lat, np.arange(count) / count, pa.array([o.text for o in objects]))


def find_space(rows: TimedRows) -> tuple[float, float, float, float]:
    (west, east), (south, north) = (np.percentile(x, MIDDLE) for x in (rows.lon, rows.lat))
    return float(west), float(south), float(east), float(north)


def relocate(
    rows: TimedRows, name: str, space: tuple[float, float, float, float], rng: np.random.Generator
) -> TimedRows:
    """The same texts with the places that the name says."""
    west, south, east, north = space
    count = rows.lon.size
    if name == UNIFORM:
        lon, lat = rng.uniform(west, east, count), rng.uniform(south, north, count)
    elif name == GAUSSIAN:
        lon = rng.normal((west + east) / 2, SIGMA_DEG, count)
        lat = rng.normal((south + north) / 2, SIGMA_DEG, count)
    else:
        return rows
    return rows._replace(lon=np.round(lon, 6), lat=np.round(lat, 6))


def make_objects(rows: TimedRows) -> pa.Table:
    """Rows as objects: ids, times evenly over the month, and the terms of each text."""
    count = rows.lon.size
    ts = BEGIN_US + (np.arange(1, count + 1) * (DAYS * 24 * HOUR_US / count)).astype(np.int64)
    texts = rows.text.dictionary_encode()  # each text is analysed once
    terms = pa.array([list(dict.fromkeys(analyze(text))) for text in texts.dictionary.to_pylist()])
    return pa.table(
        {
            "id": pc.binary_join_element_wise("o", pa.array(np.arange(count)).cast("string"), ""),
            "ts": pa.array(ts, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "lon": rows.lon,
            "lat": rows.lat,
            "text": rows.text,
            "terms": terms.cast(pa.list_(pa.string())).take(texts.indices),
        }
    )
