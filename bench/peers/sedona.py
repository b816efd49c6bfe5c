"""Sedona as a peer: a spatial join of points with boxes, words compared as arrays.

Its 1.8.0 for Spark 4.0 does not load on Spark 4.3 (a class of Catalyst's is gone:
`FoldableUnevaluable`), so it gets the PySpark that it was made for, beside its jar in the cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.peers import Answer, sedona_job
from bench.peers.jars import fetch_jars
from bench.workload import CACHE, Workload, write_objects_parquet
from placewire.model.errors import Unusable
from placewire.spark.session import find_java

COORDINATES = "org.apache.sedona:sedona-spark-shaded-4.0_2.13:1.8.0"
SPARK = ("pyspark==4.0.1", "py4j==0.10.9.9")
SECONDS = 1_800


def run(workload: Workload, folder: Path, *, repeats: int = 3) -> Answer:
    """Match all objects; the clock covers reading their Parquet to rows in a sink, best pass."""
    [jar] = fetch_jars("sedona", COORDINATES)
    packages = fetch_spark()
    objects, subscriptions = folder / "sedona-objects", folder / "sedona-subscriptions.parquet"
    write_objects_parquet(workload, objects, files=8)
    pq.write_table(workload.subscriptions, subscriptions)
    pairs = folder / "sedona-pairs"
    here = Path(__file__).parents[2]
    command = [sys.executable, str(sedona_job.__file__), str(jar)]
    command += [str(path) for path in (objects, subscriptions, pairs)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, (packages, here))),
        "JAVA_HOME": str(find_java().home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environment.pop("SPARK_HOME", None)
    try:
        said = subprocess.run(
            [*command, str(repeats)],
            env=environment, check=True, timeout=SECONDS, capture_output=True, text=True,
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        lines = [
            line for line in error.stderr.splitlines() if "Error" in line or "Exception" in line
        ]
        raise Unusable(f"Sedona fails: {(lines or ['no word'])[0][:200]}") from None
    except subprocess.TimeoutExpired:
        raise Unusable(f"Sedona took more than {SECONDS} s") from None
    told = msgspec.json.decode(said.stdout.splitlines()[-1])
    found = pq.read_table(pairs)
    rows = [rows_of_ids(found[name]) for name in ("subscription", "object")]
    return Answer(np.stack(rows, 1), min(told["seconds"]), min(told["processor"]), told["prepare"])


def rows_of_ids(ids: pa.ChunkedArray) -> np.ndarray:
    """Rows of the workload's ids: a letter and the row."""
    return pc.utf8_slice_codeunits(ids, 1).cast(pa.int64()).to_numpy()


def fetch_spark() -> Path:
    """A folder with the PySpark that Sedona needs."""
    folder = CACHE / SPARK[0].replace("==", "-")
    stamp = folder / "resolved.txt"
    if not stamp.exists():
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        try:
            subprocess.run(
                [*install, "--upgrade", "--target", str(folder), *SPARK],
                check=True, capture_output=True, timeout=SECONDS,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            raise Unusable(f"needs {SPARK[0]}, which pip does not find") from None
        stamp.write_text("\n".join(SPARK))
    return folder
