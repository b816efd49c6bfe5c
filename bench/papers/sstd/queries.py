"""Make snapshot queries as `placewire.open_snapshot` takes them (SSTD, section 7.1).

Each is made of an object: SRQ is `boolean` (a box about its place, its keywords joined by AND), SKQ
`nearest` (mode `all`), STQ `trending`; `relevant` is ours. Parameters and their defaults are the
paper's; the box has the proportions of the space and a share of its area, in degrees.

Two things are our reading: objects are drawn from the last 24 hours, so that every query has an
answer whatever its `last`; and the hundred most frequent terms are never keywords, but for the
setting `frequent`, where they are the only ones. Queries of two settings are made of the same
objects and keywords, so that only the setting differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.harness import SEED, STOP_WORDS
from bench.papers.sstd.data import HOUR_US, RetainedObjects
from bench.workload import analyze
from placewire.model.times import parse_duration

Query = dict[str, Any]
Answer = dict[str, Any]

BOOLEAN, NEAREST, RELEVANT, TRENDING = "boolean", "nearest", "relevant", "trending"
KINDS = (BOOLEAN, NEAREST, TRENDING, RELEVANT)
SHARES = (0.0001, 0.001, 0.01, 0.1, 1.0)  # percent of the area of the space
KEYWORDS = (1, 2, 3)
KS = (10, 20, 30, 40)
HOURS = (24, 72, 120, 168)
LIMIT = 100
ALPHA = 0.5


class Setting(NamedTuple):
    """What queries are alike in; the defaults are the paper's."""

    kind: str
    share: float = 0.01
    keywords: int = 1
    k: int = 10
    hours: int = 72
    frequent: bool = False


class Engine(Protocol):
    """Something that answers snapshot queries; `kinds` are those that it can."""

    @property
    def name(self) -> str: ...

    @property
    def kinds(self) -> tuple[str, ...]: ...

    def answer(self, query: Query) -> Answer: ...

    def close(self) -> None: ...


class PeerQuery(NamedTuple):
    """A query as peers need it: all terms are wanted, times are microseconds."""

    kind: str
    box: tuple[float, float, float, float]
    lon: float
    lat: float
    terms: tuple[str, ...]
    k: int
    limit: int
    after_us: int


class QuerySource(NamedTuple):
    """An object that queries are made of."""

    lon: float
    lat: float
    keywords: tuple[str, ...]
    frequent: tuple[str, ...]


def sweep(kind: str) -> dict[str, tuple[Setting, ...]]:
    """The settings of a kind, one parameter at a time, the others at their defaults."""
    parameters: dict[str, tuple[tuple[str, ...], tuple[Any, ...]]] = {
        "share": ((BOOLEAN, TRENDING), SHARES),
        "keywords": ((BOOLEAN, NEAREST, RELEVANT), KEYWORDS),
        "k": ((NEAREST, TRENDING, RELEVANT), KS),
        "hours": (KINDS, HOURS),
        "frequent": ((BOOLEAN, NEAREST, RELEVANT), (False, True)),
    }
    return {
        name: tuple(Setting(kind)._replace(**{name: value}) for value in values)
        for name, (kinds, values) in parameters.items()
        if kind in kinds
    }


def draw_sources(retained: RetainedObjects, count: int) -> list[QuerySource]:
    """Random recent objects with as many keywords as any query needs, in a random order."""
    times = retained.objects["ts"].cast(pa.int64()).to_numpy()
    first = int(np.searchsorted(times, retained.now_us - HOURS[0] * HOUR_US, side="right"))
    frequent = find_frequent(retained, STOP_WORDS)
    rng = np.random.default_rng([SEED, 10])
    sources: list[QuerySource] = []
    for row in first + rng.permutation(times.size - first):
        [found] = retained.objects.slice(int(row), 1).to_pylist()
        terms = [found["terms"][i] for i in rng.permutation(len(found["terms"]))]
        usable = [t for t in terms if t not in frequent and analyze(t) == [t]]
        hot = tuple(t for t in terms if t in frequent)
        if len(usable) >= KEYWORDS[-1] and hot:
            keywords = tuple(usable[: KEYWORDS[-1]])
            sources.append(QuerySource(found["lon"], found["lat"], keywords, hot))
        if len(sources) == count:
            break
    return sources


def find_frequent(retained: RetainedObjects, count: int) -> set[str]:
    """The terms that most objects have."""
    counted = pc.value_counts(pc.list_flatten(retained.objects["terms"]))
    order = np.argsort(-counted.field("counts").to_numpy(), kind="stable")[:count]
    return set(counted.field("values").take(pa.array(order)).to_pylist())


def make_queries(
    retained: RetainedObjects, sources: list[QuerySource], setting: Setting
) -> list[Query]:
    """A query of each source."""
    return [make_query(retained, source, setting) for source in sources]


def mix_kinds(retained: RetainedObjects, sources: list[QuerySource]) -> list[Query]:
    """A query of each kind for each source, as in the paper."""
    return [make_query(retained, source, Setting(kind)) for source in sources for kind in KINDS]


def make_query(retained: RetainedObjects, source: QuerySource, setting: Setting) -> Query:
    words = source.frequent if setting.frequent else source.keywords
    keywords = list(words[: setting.keywords])
    query: Query = {"kind": setting.kind, "last": f"PT{setting.hours}H"}
    if setting.kind in (BOOLEAN, TRENDING):
        query["region"] = {"box": make_box(retained, source, setting.share)}
    if setting.kind == BOOLEAN:
        return query | {"where": " AND ".join(keywords), "limit": LIMIT}
    if setting.kind == TRENDING:
        return query | {"k": setting.k}
    query |= {"lon": source.lon, "lat": source.lat, "keywords": keywords, "k": setting.k}
    return query | ({"mode": "all"} if setting.kind == NEAREST else {"alpha": ALPHA})


def make_box(retained: RetainedObjects, source: QuerySource, share: float) -> list[float]:
    west, south, east, north = retained.space
    half = np.sqrt(share / 100) / 2
    across, up = half * (east - west), half * (north - south)
    corners = np.array([source.lon - across, source.lat - up, source.lon + across, source.lat + up])
    limits = np.array([180, 90, 180, 90])
    return [float(x) for x in np.round(np.clip(corners, -limits, limits), 6)]


def read_query(query: Query, now_us: int) -> PeerQuery:
    """What a query asks for; only those that `make_query` makes are understood."""
    return PeerQuery(
        query["kind"],
        tuple(query["region"]["box"]) if "region" in query else (-180.0, -90.0, 180.0, 90.0),
        query.get("lon", 0.0),
        query.get("lat", 0.0),
        tuple(query["where"].split(" AND ") if "where" in query else query.get("keywords", ())),
        query.get("k", 0),
        query.get("limit", LIMIT),
        now_us - parse_duration(query["last"]),
    )


RADIUS_M = 6_371_008.8
MM_M = 0.0011  # engines round a distance to a millimetre, and may do so either way


def boolean_answer(total: int, seqs: Iterable[int]) -> Answer:
    return {"type": "answer", "total": total, "objects": [{"object": f"o{seq}"} for seq in seqs]}


def nearest_answer(seqs: Iterable[int], distances_m: Iterable[float]) -> Answer:
    pairs = zip(seqs, distances_m, strict=True)
    return {"type": "answer", "objects": [{"object": f"o{s}", "distance_m": d} for s, d in pairs]}


def relevant_answer(seqs: Iterable[int], scores: Iterable[float]) -> Answer:
    pairs = zip(seqs, scores, strict=True)
    return {"type": "answer", "objects": [{"object": f"o{s}", "score": x} for s, x in pairs]}


def trending_answer(terms: Iterable[Sequence[object]]) -> Answer:
    return {"type": "answer", "terms": [list(pair) for pair in terms]}


def distances_m(lon: float, lat: float, lons: np.ndarray, lats: np.ndarray) -> np.ndarray:
    """Great-circle distances to points f64[n], in whole millimetres."""
    across, up = np.radians(lons - lon) / 2, np.radians(lats - lat) / 2
    chord = np.sin(up) ** 2 + np.cos(np.radians(lat)) * np.cos(np.radians(lats)) * (
        np.sin(across) ** 2
    )
    return np.rint(2e3 * RADIUS_M * np.arcsin(np.sqrt(np.minimum(chord, 1.0)))) / 1e3


def take_nearest(seqs: np.ndarray, distances: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k first by (distance, seq)."""
    order = np.lexsort((seqs, distances))[:k]
    return seqs[order], distances[order]


def same_answer(one: Answer, other: Answer) -> bool:
    """Equal, but for a millimetre or the ninth digit of a score."""
    if one.get("total") != other.get("total") or one.get("terms") != other.get("terms"):
        return False
    ours, theirs = one.get("objects", []), other.get("objects", [])
    if [o["object"] for o in ours] != [o["object"] for o in theirs]:
        return False
    return all(
        abs(a.get("distance_m", 0.0) - b.get("distance_m", 0.0)) < MM_M
        and abs(a.get("score", 0.0) - b.get("score", 0.0)) < 2e-9
        for a, b in zip(ours, theirs, strict=True)
    )
