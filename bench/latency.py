"""Latency: a growing log, from the write of a line to a sink that has read its matches."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pyspark.sql import SparkSession

from bench.pipeline import make_standing, no_fingerprint, open_standing
from bench.plans import PLANS, WORKERS
from bench.settings import Choice
from bench.stream import Stream, draw_streams
from bench.tables import draw_bars, save_table
from bench.workload import object_lines
from placewire.batch.coordinator import Coordinator
from placewire.ingest.sources import LogSource
from placewire.model.settings import Settings
from placewire.sinks.outbox import gather_matches
from placewire.spark.replay import replay_on_spark
from placewire.spark.session import make_session
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest

RATE = 10_000
SUBSCRIPTIONS = 100_000
TICK_S = 0.02
WARM_S = 10.0
PLAN_RATE = 5_000  # tuples/s: about a quarter of what the plans can do here
PLAN_STANDING = 50_000
PLAN_SECONDS = 16.0


class Waits(NamedTuple):
    """Seconds of the lines after warming up, and of the batches that they were in."""

    lines: np.ndarray
    batches: np.ndarray


def run(choice: Choice) -> None:
    """How long an object takes from being written to having its matches read by a sink."""
    seconds = 120 if choice.full else 40
    workload = choice.workload(int(RATE * (seconds + WARM_S)), SUBSCRIPTIONS)
    ticks = list(object_lines(workload, int(RATE * TICK_S)))
    log = choice.folder / "growing.jsonl"
    log.touch()
    session = make_session("local[2]")
    coordinator = open_standing(make_standing(workload, choice.folder), "shared", 2)
    waits = follow(session, coordinator, log, ticks, 2)
    coordinator.close()
    session.stop()
    save_table(
        "latency",
        ("objects/s", "subscriptions", "p50, s", "p90, s", "p99, s", "a batch, s (median)"),
        [(RATE, SUBSCRIPTIONS, *quantiles(waits))],
    )


def run_plans(choice: Choice) -> None:
    """The same for every plan, with the papers' stream at a moderate speed."""
    sets = ("Q1", "Q2", "Q3") if choice.full else ("Q3",)
    objects = int(PLAN_RATE * (PLAN_SECONDS + WARM_S)) * 5 // 6  # the others are changes
    session = make_session("local[2]")
    for name, stream in draw_streams(choice, sets, objects, PLAN_STANDING).items():
        follow_plan(choice, session, stream, "shared")  # the JVM warms up
        found: dict[str, tuple[float, ...]] = {}
        for plan in PLANS:
            found[plan] = quantiles(follow_plan(choice, session, stream, plan))
            print(f"{name}, {plan}: {found[plan][0]:.3g} s", flush=True)
        save_table(
            f"plan-latency-{name}",
            (f"{name}: plan", "p50, s", "p90, s", "p99, s", "a batch, s (median)"),
            [(plan, *waits) for plan, waits in found.items()],
        )
        draw_bars(
            f"plan-latency-{name}",
            {
                label: {plan: waits[at] for plan, waits in found.items()}
                for at, label in ((0, "p50"), (2, "p99"))
            },
            y_label=f"seconds from write to sink ({name})",
        )
    session.stop()


def follow_plan(choice: Choice, session: SparkSession, stream: Stream, plan: str) -> Waits:
    """One plan: the standing subscriptions are loaded, then the stream is written bit by bit."""
    log = choice.folder / "growing.jsonl"
    log.write_bytes(b"\n".join(stream.standing) + b"\n")
    first = len(stream.standing)
    state = StateDir(choice.folder / "state")
    coordinator = Coordinator(state, Settings(), no_fingerprint, plan, WORKERS, first)
    replay_on_spark(
        session,
        coordinator,
        LogSource(str(log)),
        batch_rows=first,
        workers=WORKERS,
        after=lambda manifest: None,
        until=lambda: coordinator.latest.next_seq >= first,
    )
    per_tick = int(PLAN_RATE * TICK_S)
    whole = len(stream.tuples) // per_tick * per_tick
    ticks = [
        b"\n".join(stream.tuples[at : at + per_tick]) + b"\n" for at in range(0, whole, per_tick)
    ]
    waits = follow(session, coordinator, log, ticks, WORKERS)
    coordinator.close()
    shutil.rmtree(state.root)
    return waits


def follow(
    session: SparkSession, coordinator: Coordinator, log: Path, ticks: list[bytes], workers: int
) -> Waits:
    """Write a tick of lines every 20 ms, all ticks of the same number, while a query follows."""
    per_tick = ticks[0].count(b"\n")
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
        workers=workers,
        after=after,
        until=lambda: bool(delivered) and delivered[-1][0] >= per_tick * len(ticks),
    )
    writer.join()
    ends = np.array([d[0] for d in delivered])
    times = np.array([d[1] for d in delivered])
    tick_end = (np.arange(len(ticks)) + 1) * per_tick
    latencies = times[np.searchsorted(ends, tick_end)] - np.array(written)
    return Waits(
        latencies[int(WARM_S / TICK_S) :],
        np.array([d[2] for d in delivered if d[1] - written[0] > WARM_S]),
    )


def quantiles(waits: Waits) -> tuple[float, float, float, float]:
    """The median, the 90th and the 99th percentile of the lines; the median of the batches."""
    p50, p90, p99 = (float(np.quantile(waits.lines, q)) for q in (0.5, 0.9, 0.99))
    return p50, p90, p99, float(np.median(waits.batches))
