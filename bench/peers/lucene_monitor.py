"""Lucene Monitor as a peer: stored queries with a presearcher by terms, documents as they come.

A subscription is a boolean query of terms with a box of `LatLonPoint` as a filter. The presearcher
chooses candidates by the terms that a query needs; the box is looked at when the query is run.
`LatLonPoint` keeps coordinates in 32 bits each: a point within 1e-7 degrees of a border may fall on
the other side of it.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import numpy as np

from bench.peers import Answer
from bench.peers.jars import fetch_jars, find_jdk, run_quietly
from bench.workload import CACHE, Workload

SOURCE = Path(__file__).parent / "java" / "MonitorPeer.java"
COORDINATES = "org.apache.lucene:lucene-monitor:10.3.0"
OLDEST_JAVA = 21
# Documents matched together. At 10,000 subscriptions 1, 10, 100 and 1,000 took 457, 823, 597 and
# 597 µs of processors each, on a busy machine; at 100,000 1 took 2,953 and 100 took 3,480.
BATCH = 1
MEMORY = "-Xmx6g"


def run(
    workload: Workload, folder: Path, *, batch: int = BATCH, threads: int = 2, repeats: int = 5
) -> Answer:
    """Match all objects; the clock covers lines in memory to pairs, the best of the repeats."""
    jdk = find_jdk(OLDEST_JAVA)
    jars = fetch_jars("lucene-monitor", COORDINATES)
    classes = CACHE / "jars" / "lucene-monitor" / "classes"
    classpath = os.pathsep.join(map(str, (*jars, classes)))
    javac, java = (str(jdk.home / "bin" / name) for name in ("javac", "java"))
    compiling = [javac, "-cp", classpath, "-d", str(classes), str(SOURCE)]
    run_quietly(compiling, folder, "the peer does not compile")
    subscriptions, objects = folder / "subscriptions.tsv", folder / "objects.tsv"
    write_lines(workload, subscriptions, objects)
    found = folder / "pairs.bin"
    said = run_quietly(
        [
            *(java, MEMORY, "-cp", classpath, "MonitorPeer"),
            *(str(subscriptions), str(objects), str(found)),
            *map(str, (batch, threads, repeats)),
        ],
        folder,
        "Lucene Monitor fails",
    )
    told = msgspec.json.decode(said)
    pairs = np.fromfile(found, ">i4").reshape(-1, 2).astype(np.int64)
    return Answer(pairs, min(told["seconds"]), min(told["processor"]), told["prepare"])


def write_lines(workload: Workload, subscriptions: Path, objects: Path) -> None:
    """Both sides as lines with tabs between the columns."""
    with subscriptions.open("w", encoding="utf-8") as file:
        for row in workload.subscriptions.to_pylist():
            box = (row["west"], row["south"], row["east"], row["north"])
            words = " ".join(row["keywords"])
            print(row["id"], *map(repr, box), row["operator"], words, sep="\t", file=file)
    with objects.open("w", encoding="utf-8") as file:
        for row in workload.objects.to_pylist():
            text = " ".join(row["text"].split())  # no word goes over a blank
            print(row["id"], repr(row["lon"]), repr(row["lat"]), text, sep="\t", file=file)
