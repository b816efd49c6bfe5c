"""Latency: 10,000 objects/s into a growing log, 100,000 subscriptions, from source to sink."""

from __future__ import annotations

import threading
import time

import numpy as np

from bench.pipeline import make_standing, open_standing
from bench.settings import Choice
from bench.tables import save_table
from bench.workload import object_lines
from placewire.engine.outbox import gather_matches
from placewire.engine.reading import LogSource
from placewire.spark.replay import replay_on_spark
from placewire.spark.session import make_session
from placewire.state.manifest import Manifest

RATE = 10_000
SUBSCRIPTIONS = 100_000
TICK_S = 0.02
WARM_S = 10.0


def run(choice: Choice) -> None:
    """How long an object takes from being written to having its matches read by a sink."""
    seconds = 120 if choice.full else 40
    workload = choice.workload(int(RATE * (seconds + WARM_S)), SUBSCRIPTIONS)
    per_tick = int(RATE * TICK_S)
    ticks = list(object_lines(workload, per_tick))
    log = choice.folder / "growing.jsonl"
    log.touch()
    session = make_session("local[2]")
    coordinator = open_standing(make_standing(workload, choice.folder), "shared", 2)
    written: list[float] = []
    delivered: list[tuple[int, float, float]] = []
    first = coordinator.latest.next_seq

    def write() -> None:
        start = time.monotonic()
        with open(log, "ab", buffering=0) as file:
            for number, lines in enumerate(ticks):
                time.sleep(max(0.0, start + number * TICK_S - time.monotonic()))
                file.write(lines)
                written.append(time.monotonic())

    last = time.monotonic()

    def after(manifest: Manifest) -> None:
        nonlocal last
        if manifest.pieces:
            gather_matches(coordinator.state, list(manifest.pieces))
        now = time.monotonic()
        delivered.append((manifest.next_seq - first, now, now - last))
        coordinator.delivered = manifest.batch
        last = now

    writer = threading.Thread(target=write)
    writer.start()
    replay_on_spark(
        session,
        coordinator,
        LogSource(str(log), growing=True),
        batch_rows=200_000,
        workers=2,
        after=after,
        until=lambda: bool(delivered) and delivered[-1][0] >= per_tick * len(ticks),
    )
    writer.join()
    coordinator.close()
    session.stop()
    ends = np.array([d[0] for d in delivered])
    times = np.array([d[1] for d in delivered])
    tick_end = (np.arange(len(ticks)) + 1) * per_tick
    latencies = times[np.searchsorted(ends, tick_end)] - np.array(written)
    steady = latencies[int(WARM_S / TICK_S) :]
    batches = np.array([d[2] for d in delivered[3:]])
    save_table(
        "latency",
        ("objects/s", "subscriptions", "p50, s", "p90, s", "p99, s", "a batch, s (median)"),
        [
            (
                RATE,
                SUBSCRIPTIONS,
                float(np.quantile(steady, 0.5)),
                float(np.quantile(steady, 0.9)),
                float(np.quantile(steady, 0.99)),
                float(np.median(batches)),
            )
        ],
    )
