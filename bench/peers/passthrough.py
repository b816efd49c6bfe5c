"""A pipeline without matching, Parquet to Python to a count: the ceiling of the others.

Python touches the text, lon and lat of every object; it hands back one packed count a batch, or,
with `rows`, every row, to show what crossing the border twice costs.
"""

import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench.peers import PeerRun
from bench.workload import Workload, write_objects_parquet


def run(
    workload: Workload, spark: SparkSession, *, rows: bool = False, repeats: int = 3
) -> PeerRun:
    """Carry all objects through; `matches` is the number of objects counted at the sink."""

    # Both are closures so that they travel by value: worker processes need not import `bench`.
    def touch(batch: pa.RecordBatch) -> int:
        located = np.isfinite(batch["lon"].to_numpy()) & np.isfinite(batch["lat"].to_numpy())
        return int(np.count_nonzero(located & (pc.binary_length(batch["text"]).to_numpy() >= 0)))

    def carry(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            count = touch(batch)
            yield batch if rows else pa.RecordBatch.from_pydict({"objects": [count]})

    schema = "text string, lon double, lat double" if rows else "objects long"
    counted = F.count("*") if rows else F.sum("objects")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "objects"
        write_objects_parquet(workload, path, files=8)
        objects = spark.read.parquet(str(path)).select("text", "lon", "lat")
        seconds, matches = float("inf"), 0
        for _ in range(repeats):
            start = time.perf_counter()
            matches = objects.mapInArrow(carry, schema).agg(counted).collect()[0][0] or 0
            seconds = min(seconds, time.perf_counter() - start)
    return PeerRun(matches, seconds, 0.0, workload.objects.num_rows / seconds)
