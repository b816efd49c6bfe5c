"""Spark SQL as a peer: objects sorted by day and place, and postings sorted by term, both cached.

Both come from the Parquet file of the objects. Spark keeps the least and the greatest value of each
column of a cached batch and leaves out batches that cannot match, so that sorting is the index.
Every query is one SQL statement: each DataFrame call costs a trip to the JVM. Settings are those
with which 100 k posts took least, in one run: no generated code, since each query's constants would
need another compilation, no adaptive plans, rows as Arrow. With Spark's defaults the same queries
took twice as long, but they ran first, on a cold JVM.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.papers.sstd.data import RetainedObjects
from bench.papers.sstd.queries import (
    BOOLEAN,
    NEAREST,
    RADIUS_M,
    TRENDING,
    Answer,
    PeerQuery,
    Query,
    boolean_answer,
    nearest_answer,
    read_query,
    trending_answer,
)

CORES = 2
SETTINGS = {
    "spark.sql.shuffle.partitions": str(CORES),
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
PLACE_DEG = 0.25
DAY_US = 86_400_000_000

_OBJECTS = f"""
SELECT cast(substring(id, 2) AS int) AS seq, unix_micros(ts) AS ts, lon, lat, terms
FROM parquet.`{{}}`
ORDER BY ts DIV {DAY_US}, floor(lat / {PLACE_DEG}), lon
"""
_DISTANCE = (
    f"rint(2e3D * {RADIUS_M}D * asin(sqrt(least(1D, power(sin(radians(lat - {{lat!r}}D) / 2), 2)"
    " + cos(radians({lat!r}D)) * cos(radians(lat))"
    " * power(sin(radians(lon - {lon!r}D) / 2), 2))))) / 1e3D"
)


class Spark:
    """Two cached tables, in the JVM of the session that is passed in."""

    name = "Spark SQL"
    kinds = (BOOLEAN, NEAREST, TRENDING)

    def __init__(self, retained: RetainedObjects, session: SparkSession) -> None:
        self.now_us = retained.now_us
        self.session = session.newSession()  # settings and names of its own
        for name, value in SETTINGS.items():
            self.session.conf.set(name, value)
        ordered = self.session.sql(_OBJECTS.format(retained.parquet))
        self.objects = keep(ordered, "objects")
        spread = self.objects.select(F.explode("terms").alias("term"), "seq", "ts", "lon", "lat")
        parts = spread.repartitionByRange(CORES, "term").sortWithinPartitions("term", "ts")
        self.postings = keep(parts, "postings")

    def answer(self, query: Query) -> Answer:
        asked = read_query(query, self.now_us)
        if asked.kind == TRENDING:
            terms = f"SELECT explode(terms) AS term FROM objects WHERE {in_box(asked)}"
            counted = f"SELECT term, count(*) AS n FROM ({terms}) GROUP BY term"
            return trending_answer(self.ask(f"{counted} ORDER BY n DESC, term LIMIT {asked.k}"))
        table, has_terms = find_terms(asked)
        if asked.kind == BOOLEAN:
            # No sort and no second stage: there are few to sort in Python.
            rows = self.ask(f"SELECT seq FROM {table} WHERE {has_terms} AND {in_box(asked)}")
            newest = sorted((seq for (seq,) in rows), reverse=True)
            return boolean_answer(len(newest), newest[: asked.limit])
        away = _DISTANCE.format(lon=asked.lon, lat=asked.lat)
        found = f"SELECT seq, {away} AS away FROM {table} WHERE {has_terms} AND {is_recent(asked)}"
        rows = self.ask(f"{found} ORDER BY away, seq LIMIT {asked.k}")
        return nearest_answer(*(zip(*rows, strict=True) if rows else ((), ())))

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        columns = self.session.sql(statement).toArrow().columns
        return list(zip(*(column.to_pylist() for column in columns), strict=True))

    def close(self) -> None:
        for table in (self.objects, self.postings):
            table.unpersist(blocking=True)


def keep(table: DataFrame, name: str) -> DataFrame:
    """A table in memory, under a name."""
    kept = table.coalesce(CORES).cache()
    kept.count()
    kept.createOrReplaceTempView(name)
    return kept


def find_terms(asked: PeerQuery) -> tuple[str, str]:
    """Where to look for all terms, and the condition on them."""
    words = ["'" + term.replace("\\", "\\\\").replace("'", "\\'") + "'" for term in asked.terms]
    if len(words) == 1:
        return "postings", f"term = {words[0]}"
    return "objects", " AND ".join(f"array_contains(terms, {word})" for word in words)


def is_recent(asked: PeerQuery) -> str:
    return f"ts > {asked.after_us}L"


def in_box(asked: PeerQuery) -> str:
    west, south, east, north = asked.box
    place = f"lon BETWEEN {west!r}D AND {east!r}D AND lat BETWEEN {south!r}D AND {north!r}D"
    return f"{is_recent(asked)} AND {place}"
