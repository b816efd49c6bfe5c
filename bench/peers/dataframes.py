"""Compare `placewire.match` with the same join in Spark SQL, both from Parquet.

Spark SQL comes in two forms: the join as one writes it first, and the best that we know. Each gives
every match, as the ids of its subscription and its object, to a sink that drops it; and each only
counts them. Indexing the subscriptions is told apart. The machine may be busy, so there is also
processor time, of the driver, the JVM and the Python processes together.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.clock import processor_seconds, say
from bench.figures import Figures, Table
from bench.harness import Setup
from bench.peers import spark_sql
from bench.workload import Workload, write_objects_parquet
from placewire import match
from placewire.spark.session import make_session

NAMES = ("sql", "plain", "where", "match")
PLAIN, BEST = "Spark SQL, plain", "Spark SQL, its best"
WAYS: dict[str, Callable[[DataFrame], object]] = {
    "ids to a sink": lambda found: found.write.format("noop").mode("append").save(),
    "count": lambda found: found.count(),
}


class Side(NamedTuple):
    """One engine: its matches, not computed yet, of so many objects."""

    found: DataFrame
    objects: int
    indexing_s: float


def compare_joins(
    setup: Setup,
    sizes: tuple[tuple[int, int, int], ...] = (
        (100_000, 2_000_000, 200_000),
        (1_000_000, 1_000_000, 100_000),
    ),
    passes: int = 3,
) -> Figures:
    """All in turn; medians of the passes after the first.

    `sizes` are subscriptions, objects, and the fewer objects that Spark SQL gets.
    """
    # What Spark SQL broadcasts and holds does not fit in the usual memory.
    session = make_session("local[2]", more={"spark.driver.memory": "6g"})
    rows = []
    for subscriptions, objects, peer_objects in sizes:
        workload = setup.workload(objects, subscriptions)
        small = workload._replace(objects=workload.objects.slice(0, peer_objects))
        folders = [setup.folder / f"{name}-{subscriptions}" for name in NAMES]
        for folder in folders:
            folder.mkdir()
        joined = spark_sql.prepare(small, session, folders[0], ids=True)
        plain = spark_sql.prepare_plain(small, session, folders[1])
        sides = {
            PLAIN: Side(plain.found, peer_objects, plain.seconds),
            BEST: Side(joined.found, peer_objects, joined.seconds),
            "match, a where before it": prepare_match(workload, session, folders[2], where=True),
            "match": prepare_match(workload, session, folders[3]),
        }
        counts = {name: side.found.count() for name, side in sides.items()}
        for way, compute in WAYS.items():
            seen: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
            for turn in range(passes + 1):
                for name, side in sides.items():
                    seen[name].append(time_pass(compute, side))
                    wall, processor = seen[name][-1]
                    say(f"{subscriptions:,}, {way}, {name}, pass {turn}: {wall:.2f} s,"
                          f" {processor:.2f} s of processors")  # fmt: skip
            speeds = {name: speed_of(times[1:], sides[name]) for name, times in seen.items()}
            for name, (rate, micros) in speeds.items():
                rows.append((
                    f"{subscriptions:,}, {way}: {name}",
                    sides[name].objects,
                    counts[name] / sides[name].objects,
                    sides[name].indexing_s,
                    rate,
                    *(rate / speeds[peer][0] for peer in (PLAIN, BEST)),
                    micros,
                    *(speeds[peer][1] / micros for peer in (PLAIN, BEST)),
                ))  # fmt: skip
        if counts[PLAIN] != counts[BEST]:
            raise RuntimeError(f"{PLAIN} has {counts[PLAIN]} matches, {BEST} {counts[BEST]}")
        joined.index.unpersist(blocking=True)
        plain.index.unpersist(blocking=True)
    session.stop()
    yield Table(
        "match",
        (
            "subscriptions, way: engine",
            "objects",
            "matches an object",
            "indexing, s",
            "objects/s",
            "times Spark SQL, plain",
            "times its best",
            "processor time an object, µs",
            "times less of it than plain",
            "than its best",
        ),
        rows,
    )


def time_pass(compute: Callable[[DataFrame], object], side: Side) -> tuple[float, float]:
    """Seconds on the wall and on processors."""
    before, started = processor_seconds(), time.perf_counter()
    compute(side.found)
    return time.perf_counter() - started, processor_seconds() - before


def speed_of(passes: list[tuple[float, float]], side: Side) -> tuple[float, float]:
    """Objects a second, and microseconds of processors an object."""
    wall, processor = (median(column) for column in zip(*passes, strict=True))
    return side.objects / wall, processor / side.objects * 1e6


def prepare_match(
    workload: Workload, session: SparkSession, folder: Path, *, where: bool = False
) -> Side:
    """Index the subscriptions; with a `where` objects are a table that Spark has to compute."""
    objects, subscriptions = folder / "objects", folder / "subscriptions.parquet"
    write_objects_parquet(workload, objects, files=8)
    pq.write_table(workload.subscriptions, subscriptions)
    wishes = session.read.parquet(str(subscriptions))
    joined = F.array_join("keywords", " OR ")
    wishes = wishes.select(
        "id",
        F.struct(F.array("west", "south", "east", "north").alias("box")).alias("region"),
        F.when(F.col("operator") == "AND", F.array_join("keywords", " AND "))
        .otherwise(joined)
        .alias("where"),
    )
    table = session.read.parquet(str(objects))
    if where:
        table = table.where("lat > -90")
    started = time.perf_counter()
    found = match(table, wishes)
    return Side(found, workload.objects.num_rows, time.perf_counter() - started)
