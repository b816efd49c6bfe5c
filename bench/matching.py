"""`placewire.match` beside the same join in Spark SQL: tables in Parquet, all matches counted.

Indexing the subscriptions is told apart from matching, for both. Placewire's matches leave the
Python processes as rows of two ids; Spark SQL's stay in the JVM and are counted there.
"""

from __future__ import annotations

import time

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench.peers import PeerRun, spark_sql
from bench.settings import Choice
from bench.tables import save_table
from bench.workload import Workload, write_objects_parquet
from placewire import match
from placewire.spark.session import make_session

SIZES = ((100_000, 2_000_000, 200_000), (1_000_000, 1_000_000, 50_000))


def run(choice: Choice) -> None:
    """Both at 100,000 and 1 M subscriptions; Spark SQL gets fewer objects, in proportion."""
    session = make_session("local[2]")
    rows = []
    for subscriptions, objects, peer_objects in SIZES:
        workload = choice.workload(objects, subscriptions)
        small = workload._replace(objects=workload.objects.slice(0, peer_objects))
        sql = spark_sql.run(small, session, repeats=2)
        ours = run_match(workload, session, choice)
        for name, found, many in (("Spark SQL", sql, peer_objects), ("match", ours, objects)):
            rows.append(
                (
                    f"{subscriptions:,}: {name}",
                    many,
                    found.prepare_seconds,
                    found.objects_per_s,
                    found.matches / many,
                    found.objects_per_s / sql.objects_per_s,
                )
            )
    session.stop()
    save_table(
        "match",
        (
            "subscriptions: way",
            "objects",
            "indexing, s",
            "objects/s",
            "matches an object",
            "times Spark SQL",
        ),
        rows,
    )


def run_match(workload: Workload, session: SparkSession, choice: Choice) -> PeerRun:
    """Index once, match twice; the better counts."""
    objects, subscriptions = choice.folder / "objects", choice.folder / "subscriptions.parquet"
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
    started = time.perf_counter()
    found = match(session.read.parquet(str(objects)), wishes)
    prepare = time.perf_counter() - started
    seconds, matches = float("inf"), 0
    for _ in range(2):
        started = time.perf_counter()
        matches = found.count()
        seconds = min(seconds, time.perf_counter() - started)
    return PeerRun(matches, seconds, prepare, workload.objects.num_rows / seconds)
