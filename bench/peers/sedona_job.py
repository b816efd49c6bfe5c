"""Sedona's side of the peer, run by `bench.peers.sedona` with a PySpark that Sedona can run on.

Arguments: the jar, a directory of objects and a file of subscriptions in Parquet, where to write
the pairs, how many passes. Says one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time

from pyspark.sql import SparkSession

from bench.clock import processor_seconds

OBJECTS = r"""SELECT id, ST_Point(lon, lat) AS place,
array_distinct(regexp_extract_all(lower(text), r'([\p{L}\p{N}_]+)', 1)) AS words FROM objects"""
SUBSCRIPTIONS = """SELECT id, keywords, operator,
ST_PolygonFromEnvelope(west, south, east, north) AS area FROM subscriptions"""
# Its index over subscriptions is made and sent to the tasks by the join, in every pass.
MATCHES = """SELECT /*+ BROADCAST(s) */ s.id AS subscription, o.id AS object
FROM located AS o JOIN fences AS s ON ST_Intersects(s.area, o.place)
WHERE CASE s.operator WHEN 'AND' THEN size(array_except(s.keywords, o.words)) = 0
ELSE arrays_overlap(s.keywords, o.words) END"""


def main(jar: str, objects: str, subscriptions: str, pairs: str, passes: str) -> None:
    """Hold both sides ready, join them several times, write the pairs in the end."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.jars", jar)
        .config("spark.driver.extraClassPath", jar)
        .config("spark.sql.extensions", "org.apache.sedona.sql.SedonaSqlExtensions")
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.kryo.registrator", "org.apache.sedona.core.serde.SedonaKryoRegistrator")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    started = time.perf_counter()
    spark.read.parquet(objects).createOrReplaceTempView("objects")
    spark.read.parquet(subscriptions).createOrReplaceTempView("subscriptions")
    spark.sql(OBJECTS).createOrReplaceTempView("located")
    fences = spark.sql(SUBSCRIPTIONS).cache()
    fences.createOrReplaceTempView("fences")
    fences.count()
    told: dict[str, object] = {"prepare": time.perf_counter() - started}
    found = spark.sql(MATCHES)
    times = []
    for _ in range(int(passes)):
        before, started = processor_seconds(), time.perf_counter()
        found.write.format("noop").mode("append").save()
        times.append((time.perf_counter() - started, processor_seconds() - before))
    told["seconds"], told["processor"] = zip(*times, strict=True)
    found.coalesce(1).write.mode("overwrite").parquet(pairs)
    print(json.dumps(told), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
