"""Latency of a growing log: from the write of a line to a sink that has read its matches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pyspark.sql import SparkSession

from bench.figures import Figures, Table
from bench.harness import Setup
from bench.product.pipeline import make_standing, open_standing
from bench.workload import object_lines
from placewire.batch.coordinator import Coordinator
from placewire.ingest.sources import LogSource
from placewire.sinks.outbox import gather_matches
from placewire.spark.session import make_session
from placewire.spark.stages import replay_on_spark
from placewire.storage.manifest import Manifest

TICK_S = 0.02
WARM_S = 10.0
WORKERS = 2

Replay = Callable[[Coordinator, LogSource, Callable[[Manifest], None], Callable[[], bool]], None]


class FollowedBatch(NamedTuple):
    """A batch: the line it ends with, when its matches were read, its seconds, its plan's state."""

    end: int
    at: float
    seconds: float
    decides: bool  # a change of plan was decided
    changes: bool  # a new plan took effect


class Followed(NamedTuple):
    """Seconds of the lines after warming up, the batches, and when the first line was written."""

    waits: np.ndarray
    batches: list[FollowedBatch]
    began: float

    def quantiles(self) -> tuple[float, float, float, float]:
        """p50, p90 and p99 of the lines; the median of the batches after warming up."""
        p50, p90, p99 = (float(np.quantile(self.waits, q)) for q in (0.5, 0.9, 0.99))
        warm = [one.seconds for one in self.batches if one.at - self.began > WARM_S]
        return p50, p90, p99, float(np.median(warm))


def measure_latency(
    setup: Setup, rate: int = 10_000, subscriptions: int = 100_000, seconds: float = 40.0
) -> Figures:
    """Write `rate` objects a second and follow them through Spark."""
    workload = setup.workload(int(rate * (seconds + WARM_S)), subscriptions)
    ticks = list(object_lines(workload, int(rate * TICK_S)))
    log = setup.folder / "growing.jsonl"
    log.touch()
    session = make_session("local[2]")
    coordinator = open_standing(make_standing(workload, setup.folder), "shared", WORKERS)
    followed = follow(replay_with(session, WORKERS), coordinator, log, ticks)
    coordinator.close()
    session.stop()
    yield Table(
        "latency",
        ("objects/s", "subscriptions", "p50, s", "p90, s", "p99, s", "a batch, s (median)"),
        [(rate, subscriptions, *followed.quantiles())],
    )


def replay_with(session: SparkSession, workers: int, batch_rows: int = 200_000) -> Replay:
    """A replay on Spark."""

    def replay(
        coordinator: Coordinator,
        source: LogSource,
        after: Callable[[Manifest], None],
        until: Callable[[], bool],
    ) -> None:
        replay_on_spark(
            session,
            coordinator,
            source,
            batch_rows=batch_rows,
            workers=workers,
            after=after,
            until=until,
        )

    return replay


def join_ticks(lines: list[bytes], rate: int) -> list[bytes]:
    """The lines of each tick as one write; the last ones that do not fill a tick are left out."""
    per_tick = int(rate * TICK_S)
    whole = len(lines) // per_tick * per_tick
    return [b"\n".join(lines[at : at + per_tick]) + b"\n" for at in range(0, whole, per_tick)]


def follow(
    replay: Replay,
    coordinator: Coordinator,
    log: Path,
    ticks: list[bytes],
    at_tick: Callable[[int], None] | None = None,
) -> Followed:
    """Write a tick of lines every 20 ms while the log is followed.

    All ticks have the same number of lines; `at_tick` is called after each is written.
    """
    per_tick = ticks[0].count(b"\n")
    written: list[float] = []
    batches: list[FollowedBatch] = []
    first = coordinator.latest.next_seq
    last = time.monotonic()

    def write() -> None:
        start = time.monotonic()
        with open(log, "ab", buffering=0) as file:
            for number, lines in enumerate(ticks):
                time.sleep(max(0.0, start + number * TICK_S - time.monotonic()))
                file.write(lines)
                written.append(time.monotonic())
                if at_tick is not None:
                    at_tick(number)

    def after(manifest: Manifest) -> None:
        nonlocal last
        if manifest.pieces:
            gather_matches(coordinator.state, list(manifest.pieces))
        now, plan = time.monotonic(), manifest.leaf_plan
        changed = plan.changed == manifest.batch
        batches.append(
            FollowedBatch(
                manifest.next_seq - first, now, now - last, plan.next is not None, changed
            )
        )
        coordinator.delivered = manifest.batch
        last = now

    writer = threading.Thread(target=write)
    writer.start()
    total = per_tick * len(ticks)
    source = LogSource(str(log), growing=True)
    replay(coordinator, source, after, lambda: bool(batches) and batches[-1].end >= total)
    writer.join()
    ends = np.array([batch.end for batch in batches])
    times = np.array([batch.at for batch in batches])
    tick_end = (np.arange(len(ticks)) + 1) * per_tick
    waits = times[np.searchsorted(ends, tick_end)] - np.array(written)
    return Followed(waits[int(WARM_S / TICK_S) :], batches, written[0])
