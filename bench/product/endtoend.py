"""Measure `placewire run` from topic to topic and folder to folder, beside a job that copies.

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

from bench.clock import processor_seconds, say
from bench.figures import BarPlot, Figures, Table
from bench.harness import Setup
from bench.product.connectors import Connector, Folders, Topics, connector, open_broker
from bench.workload import Workload
from placewire.model.errors import Unusable
from placewire.spark.config import read_config
from placewire.spark.runner import Run
from placewire.spark.session import make_session

TICK_S, WARM_S = 0.5, 10.0
TIMEOUT_S = 300.0
# Objects have three matches in the mean: copying each three times writes as much.
COPIES = {"pass-through": 1, "three copies": 3}
WAYS = (*COPIES, "Placewire")


class Volume(NamedTuple):
    """The backlog, `batches` of `batch` objects, then `rate` objects a second."""

    batch: int
    batches: int
    rate: int
    seconds: float

    @property
    def backlog(self) -> int:
        return self.batch * self.batches

    @property
    def per_tick(self) -> int:
        return round(self.rate * TICK_S)

    @property
    def ticks(self) -> int:
        return round((self.seconds + WARM_S) / TICK_S)


class EndToEndFigures(NamedTuple):
    """One way: objects/s, µs of processors an object, rows that came out, seconds of each tick."""

    objects_per_s: float
    processor_us: float
    rows: int
    waits: np.ndarray


def measure_end_to_end(
    setup: Setup,
    subscriptions: int = 100_000,
    batch: int = 30_000,
    batches: int = 5,
    rate: int = 1_000,
    seconds: float = 25.0,
) -> Figures:
    """Both ways through Kafka, if it is there, and through folders of Parquet."""
    volume = Volume(batch, batches, rate, seconds)
    objects = volume.backlog + volume.per_tick * volume.ticks
    workload = setup.workload(objects, subscriptions)
    found: dict[str, EndToEndFigures] = {}
    try:
        with open_broker(setup.folder) as broker:
            session = make_session("local[2]", more=connector())
            for way in WAYS:
                label = way.replace(" ", "-")
                place = Topics(session, setup.folder / f"kafka-{label}", batch, broker, label)
                found[f"Kafka: {way}"] = measure(place, way, workload, volume)
            session.stop()
    except Unusable as error:
        say(f"Kafka is left out: {error}")
    session = make_session("local[2]")
    for way in WAYS:
        place = Folders(session, setup.folder / f"parquet-{way}", batch)
        found[f"Parquet: {way}"] = measure(place, way, workload, volume)
    session.stop()
    rows = []
    for name, one in found.items():
        passed = found[f"{name.split(':')[0]}: pass-through"]
        rows.append((
            name, one.objects_per_s, one.objects_per_s / passed.objects_per_s, one.processor_us,
            one.rows / volume.backlog, *np.quantile(one.waits, (0.5, 0.9, 0.99)).tolist(),
        ))  # fmt: skip
    header = (
        "way", "objects/s", "of pass-through", "processor time an object, µs", "rows an object",
        "p50, s", "p90, s", "p99, s",
    )  # fmt: skip
    yield Table("endtoend", header, rows)
    yield BarPlot(
        "endtoend",
        {
            label: {name: float(np.quantile(one.waits, q)) for name, one in found.items()}
            for label, q in (("p50", 0.5), ("p99", 0.99))
        },
        y_label=f"seconds to the reader, {rate:,} objects/s",
    )


def measure(place: Connector, way: str, workload: Workload, volume: Volume) -> EndToEndFigures:
    """The backlog, then a steady stream, through one place."""
    named = f"{type(place).__name__}, {way}"
    if way == "Placewire":
        place.publish_subscriptions(workload)
        start_run(place, ignore).go(available=True)
        say(f"{named}: subscriptions stand")
    for at in range(0, volume.backlog, volume.batch):
        place.publish(workload.objects.slice(at, volume.batch))
    ends = run_backlog(place) if way == "Placewire" else pass_backlog(place, COPIES[way])
    if len(ends) < 2:
        raise RuntimeError(f"{named}: {len(ends)} batches")
    seconds, processor = (ends[-1][k] - ends[0][k] for k in (0, 1))
    objects = ends[-1][2] - ends[0][2]
    say(f"{named}: {len(ends)} batches, {objects / seconds:,.0f} objects/s")
    waits = follow(place, way, workload.objects.slice(volume.backlog), volume)
    say(f"{named}: p50 {np.median(waits):.2f} s")
    return EndToEndFigures(objects / seconds, processor / objects * 1e6, ends[-1][3], waits)


def start_run(place: Connector, tell: Callable[[str, dict[str, Any]], None]) -> Run:
    path = place.folder / "run.toml"
    path.write_text(place.config())

    def told(what: str, facts: dict[str, Any]) -> None:
        if what == "failed":
            raise RuntimeError(facts["error"])
        tell(what, facts)

    return Run(place.session, read_config(path), told)


def ignore(what: str, facts: dict[str, Any]) -> None:
    """Ignore an event."""


def run_backlog(place: Connector) -> list[tuple[float, float, int, int]]:
    """Ends of batches: time, processor time, objects and results so far."""
    ends = []

    def tell(what: str, facts: dict[str, Any]) -> None:
        if what == "batch":
            ends.append(
                (time.perf_counter(), processor_seconds(), facts["objects"], facts["results"])
            )

    start_run(place, tell).go(available=True)
    return ends


def pass_backlog(place: Connector, times: int) -> list[tuple[float, float, int, int]]:
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


def follow(place: Connector, way: str, objects: pa.Table, volume: Volume) -> np.ndarray:
    """Publish ticks at a steady rate while it runs; seconds from each to the last of its rows."""
    written, seen = np.full(volume.ticks, np.nan), np.full(volume.ticks, np.nan)
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
        for number in range(volume.ticks):
            time.sleep(max(0.0, start + number * TICK_S - time.monotonic()))
            place.publish(objects.slice(number * volume.per_tick, volume.per_tick))
            written[number] = time.monotonic()

    publisher = threading.Thread(target=publish)
    publisher.start()
    end = time.monotonic() + TIMEOUT_S
    quiet_since = time.monotonic()
    try:
        while np.isnan(seen).any() or time.monotonic() - quiet_since < 2:
            came = look()
            if came.size:
                quiet_since = time.monotonic()
                seen[np.unique((came - first) // volume.per_tick)] = quiet_since
            if time.monotonic() > end:
                raise RuntimeError(f"{way}: {int(np.isnan(seen).sum())} ticks did not come")
    finally:
        stop()
        publisher.join()
        worker.join()
    return (seen - written)[round(WARM_S / TICK_S) :]
