"""End to end, from topic to topic and from folder to folder, beside a Spark job that copies.

`Run`, as `placewire run` starts it, with standing subscriptions, against a streaming query with the
same source and the same kind of sink that passes every object on. Throughput is of a backlog, after
the first batch; latency is from publishing an object to reading what came of it, at a steady rate.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql.streaming import StreamingQuery

from bench.places import Folders, Place, Topics, connector, open_broker
from bench.processor import processor_seconds
from bench.settings import Choice
from bench.tables import draw_bars, save_table
from bench.workload import Workload
from placewire.model.errors import Unusable
from placewire.spark.config import read_config
from placewire.spark.runner import Run
from placewire.spark.session import make_session

SUBSCRIPTIONS = 100_000
BATCH, BATCHES = 30_000, 5  # of the backlog
RATE, TICK_S, SECONDS, WARM_S = 1_000, 0.5, 25.0, 10.0
PER_TICK = round(RATE * TICK_S)
TICKS = round((SECONDS + WARM_S) / TICK_S)
PATIENCE_S = 300.0
# Objects have three matches in the mean: copying each three times writes as much.
COPIES = {"pass-through": 1, "three copies": 3}
WAYS = (*COPIES, "Placewire")


class Found(NamedTuple):
    """One way: objects/s, µs of processors an object, rows that came out, seconds of each tick."""

    objects_per_s: float
    processor_us: float
    rows: int
    waits: np.ndarray


def run(choice: Choice) -> None:
    """Both ways through Kafka, if it is there, and through folders of Parquet."""
    workload = choice.workload(BATCH * BATCHES + PER_TICK * TICKS, SUBSCRIPTIONS)
    found: dict[str, Found] = {}
    try:
        with open_broker(choice.folder) as broker:
            session = make_session("local[2]", more=connector())
            for way in WAYS:
                label = way.replace(" ", "-")
                place = Topics(session, choice.folder / f"kafka-{label}", BATCH, broker, label)
                found[f"Kafka: {way}"] = measure(place, way, workload)
            session.stop()
    except Unusable as error:
        print(f"Kafka is left out: {error}", flush=True)
    session = make_session("local[2]")
    for way in WAYS:
        place = Folders(session, choice.folder / f"parquet-{way}", BATCH)
        found[f"Parquet: {way}"] = measure(place, way, workload)
    session.stop()
    rows = []
    for name, one in found.items():
        passed = found[f"{name.split(':')[0]}: pass-through"]
        rows.append((
            name, one.objects_per_s, one.objects_per_s / passed.objects_per_s, one.processor_us,
            one.rows / (BATCH * BATCHES), *np.quantile(one.waits, (0.5, 0.9, 0.99)).tolist(),
        ))  # fmt: skip
    header = (
        "way", "objects/s", "of pass-through", "processor time an object, µs", "rows an object",
        "p50, s", "p90, s", "p99, s",
    )  # fmt: skip
    save_table("endtoend", header, rows)
    draw_bars(
        "endtoend",
        {
            label: {name: float(np.quantile(one.waits, q)) for name, one in found.items()}
            for label, q in (("p50", 0.5), ("p99", 0.99))
        },
        y_label=f"seconds to the reader, {RATE:,} objects/s",
    )


def measure(place: Place, way: str, workload: Workload) -> Found:
    """The backlog, then a steady stream, through one place."""
    named = f"{type(place).__name__}, {way}"
    if way == "Placewire":
        place.publish_subscriptions(workload)
        start_run(place, ignore).go(available=True)
        print(f"{named}: subscriptions stand", flush=True)
    for at in range(0, BATCH * BATCHES, BATCH):
        place.publish(workload.objects.slice(at, BATCH))
    ends = run_backlog(place) if way == "Placewire" else pass_backlog(place, COPIES[way])
    if len(ends) < 2:
        raise RuntimeError(f"{named}: {len(ends)} batches")
    seconds, processor = (ends[-1][k] - ends[0][k] for k in (0, 1))
    objects = ends[-1][2] - ends[0][2]
    print(f"{named}: {len(ends)} batches, {objects / seconds:,.0f} objects/s", flush=True)
    waits = follow(place, way, workload.objects.slice(BATCH * BATCHES))
    print(f"{named}: p50 {np.median(waits):.2f} s", flush=True)
    return Found(objects / seconds, processor / objects * 1e6, ends[-1][3], waits)


def start_run(place: Place, tell: Callable[[str, dict[str, Any]], None]) -> Run:
    path = place.folder / "run.toml"
    path.write_text(place.config())

    def told(what: str, facts: dict[str, Any]) -> None:
        if what == "failed":
            raise RuntimeError(facts["error"])
        tell(what, facts)

    return Run(place.session, read_config(path), told)


def ignore(what: str, facts: dict[str, Any]) -> None:
    """Nobody wants to know."""


def run_backlog(place: Place) -> list[tuple[float, float, int, int]]:
    """Ends of batches: time, processor time, objects and results so far."""
    ends = []

    def tell(what: str, facts: dict[str, Any]) -> None:
        if what == "batch":
            ends.append(
                (time.perf_counter(), processor_seconds(), facts["objects"], facts["results"])
            )

    start_run(place, tell).go(available=True)
    return ends


def pass_backlog(place: Place, times: int) -> list[tuple[float, float, int, int]]:
    """The same of the query that copies, so many times each."""
    query = place.copy(available=True, times=times)
    ends: list[tuple[float, float, int, int]] = []
    objects = seen = 0
    while True:
        active = query.isActive
        for progress in query.recentProgress[seen:]:
            seen += 1
            if progress["numInputRows"]:
                objects += progress["numInputRows"]
                ends.append((time.perf_counter(), processor_seconds(), objects, times * objects))
        if not active:
            return ends
        time.sleep(0.01)


def follow(place: Place, way: str, objects: pa.Table) -> np.ndarray:
    """Publish ticks at a steady rate while it runs; seconds from each to the last of its rows."""
    written, seen = np.full(TICKS, np.nan), np.full(TICKS, np.nan)
    first = int(objects["id"][0].as_py()[1:])
    look = place.watch()
    stop: Callable[[], None]
    if way == "Placewire":
        running = start_run(place, ignore)
        worker, stop = threading.Thread(target=running.go), running.stop
    else:
        query: StreamingQuery = place.copy(available=False, times=COPIES[way])
        worker, stop = threading.Thread(target=query.awaitTermination), query.stop
    worker.start()

    def publish() -> None:
        start = time.monotonic()
        for number in range(TICKS):
            time.sleep(max(0.0, start + number * TICK_S - time.monotonic()))
            place.publish(objects.slice(number * PER_TICK, PER_TICK))
            written[number] = time.monotonic()

    publisher = threading.Thread(target=publish)
    publisher.start()
    end = time.monotonic() + PATIENCE_S
    quiet_since = time.monotonic()
    try:
        while np.isnan(seen).any() or time.monotonic() - quiet_since < 2:
            came = look()
            if came.size:
                quiet_since = time.monotonic()
                seen[np.unique((came - first) // PER_TICK)] = quiet_since
            if time.monotonic() > end:
                raise RuntimeError(f"{way}: {int(np.isnan(seen).sum())} ticks did not come")
    finally:
        stop()
        publisher.join()
        worker.join()
    return (seen - written)[round(WARM_S / TICK_S) :]
