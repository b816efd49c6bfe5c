"""Results by classes of time while plans change, and what the batches around a change take.

A log grows at a fixed rate. An object's time is from the write of its line to a sink that has read
its matches. Plans change by hand every few seconds, or by `auto` where the stream drifts.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pyspark.sql import SparkSession

from bench.drift import say, suffix_of
from bench.drift_logs import Size, drifting
from bench.pipeline import no_fingerprint
from bench.settings import Choice
from bench.tables import draw_bars, save_table
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log
from placewire.ingest.sources import LogSource
from placewire.model.settings import Settings
from placewire.plans.rebalance.rebalancer import RebalanceRule
from placewire.sinks.outbox import gather_matches
from placewire.spark.replay import replay_on_spark
from placewire.spark.session import make_session
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest
from placewire.storage.notes import ask_plan

RATE = 5_000
STANDING = 50_000
TICK_S = 0.02
WARM_S = 10  # the calm part, of which a plan is made
WORKERS = 4
PLAN = "qt"
BY_HAND = ("kdt", "qt")
EVERY_S = 4.0
BATCH_ROWS = 50_000
CASES = {  # the log, the rule, and whether somebody asks for plans
    "no moves": ("calm", "off", False),
    "moves by hand": ("calm", "off", True),
    "drift, auto": ("sstd objects", "auto", False),
    "drift, off": ("sstd objects", "off", False),
}
CLASSES = (("< 100 ms", 0.1), ("< 1 s", 1.0), ("more", np.inf))
PHASES = ("before", "deciding", "fetching", "first after", "later")

Replay = Callable[[Coordinator, LogSource, Callable[[Manifest], None], Callable[[], bool]], None]


class Beat(NamedTuple):
    """A batch: until which line, when its matches were read, its seconds, and what it did."""

    end: int
    at: float
    seconds: float
    decides: bool
    changes: bool


class Followed(NamedTuple):
    """Seconds of the lines after warming up, and the batches."""

    waits: np.ndarray
    beats: list[Beat]


def run(choice: Choice) -> None:
    """All cases on Spark, and in one process."""
    size = Size(RATE, WARM_S, 3, 16 if choice.full else 8, STANDING)
    workload = choice.workload(size.batch * size.batches, size.subscriptions)
    lines = {
        drift: [json.dumps(event).encode() for event in drifting(workload, drift, size)]
        for drift in ("calm", "sstd objects")
    }
    session = make_session("local[2]")
    runners: dict[str, Replay] = {"Spark, local[2]": spark_replay(session), "one process": here}
    rows: list[tuple[object, ...]] = []
    phases: list[tuple[object, ...]] = []
    bars: dict[str, dict[str, float]] = {name: {} for name, _ in CLASSES}
    for runner, replay in runners.items():
        follow_case(choice, replay, lines["calm"][: STANDING + 5 * RATE], "off", False)  # warms up
        for case, (drift, rule, asks) in CASES.items():
            done = follow_case(choice, replay, lines[drift], rule, asks)
            shares = share_classes(done.waits)
            moves = sum(beat.changes for beat in done.beats)
            p50, p99 = (float(np.quantile(done.waits, q)) for q in (0.5, 0.99))
            rows.append((runner, case, moves, *shares, p50, p99, float(done.waits.max())))
            say(f"{runner}, {case}: {moves} moves, p50 {p50:.3f} s")
            for (name, _), share in zip(CLASSES, shares, strict=True):
                bars[name][f"{case} ({'Spark' if 'Spark' in runner else 'in process'})"] = share
            if moves:
                phases.append((runner, case, moves, *median_phases(done.beats)))
    session.stop()
    save_table(
        f"drift-moves{suffix_of(choice)}",
        ("runner", "case", "moves", *(f"{name}, %" for name, _ in CLASSES), "p50, s", "p99, s",
         "longest, s"),
        rows,
    )  # fmt: skip
    save_table(
        f"drift-moves-batches{suffix_of(choice)}",
        ("runner", "case", "moves", *(f"{phase}, ms" for phase in PHASES)),
        phases,
    )
    draw_bars(f"drift-moves{suffix_of(choice)}", bars, y_label="% of objects")


def share_classes(waits: np.ndarray) -> list[float]:
    """How many of a hundred lines are in each class of time."""
    below = [float(np.mean(waits < most)) for _, most in CLASSES]
    return [100.0 * share for share in np.diff([0.0, *below]).tolist()]


def median_phases(beats: list[Beat]) -> Iterator[float]:
    """Milliseconds of the batches about a change, the median over all changes."""
    found: dict[str, list[float]] = {phase: [] for phase in PHASES}
    for at, beat in enumerate(beats):
        if not beat.changes or at < 4 or at + 4 > len(beats) or not beats[at - 1].decides:
            continue
        found["before"] += [b.seconds for b in beats[at - 3 : at - 1]]
        found["deciding"].append(beats[at - 1].seconds)
        found["fetching"].append(beat.seconds)
        found["first after"].append(beats[at + 1].seconds)
        found["later"] += [b.seconds for b in beats[at + 2 : at + 4]]
    for seconds in found.values():
        yield 1e3 * float(np.median(seconds)) if seconds else float("nan")


def spark_replay(session: SparkSession) -> Replay:
    """Replaying on Spark."""

    def replay(
        coordinator: Coordinator,
        source: LogSource,
        after: Callable[[Manifest], None],
        until: Callable[[], bool],
    ) -> None:
        replay_on_spark(
            session, coordinator, source, batch_rows=BATCH_ROWS, workers=WORKERS, after=after,
            until=until,
        )  # fmt: skip

    return replay


def here(
    coordinator: Coordinator,
    source: LogSource,
    after: Callable[[Manifest], None],
    until: Callable[[], bool],
) -> None:
    """Replaying in this process, batches as they come."""
    while not until():
        for _ in islice(replay_log(coordinator, source, BATCH_ROWS, WORKERS, after), 1):
            break
        else:
            time.sleep(0.005)


def follow_case(
    choice: Choice, replay: Replay, lines: list[bytes], rule: str, asks: bool
) -> Followed:
    """Load the standing subscriptions, then follow a log that grows."""
    log = choice.folder / "growing.jsonl"
    log.write_bytes(b"\n".join(lines[:STANDING]) + b"\n")
    state = StateDir(choice.folder / "state")
    coordinator = Coordinator(
        state, Settings(), no_fingerprint, PLAN, WORKERS, STANDING + RATE,
        rebalance=RebalanceRule(rule),
    )  # fmt: skip
    source = LogSource(str(log), growing=True)
    replay(coordinator, source, lambda _: None, lambda: coordinator.latest.next_seq >= STANDING)
    per_tick = int(RATE * TICK_S)
    ticks = [
        b"\n".join(lines[at : at + per_tick]) + b"\n"
        for at in range(STANDING, len(lines) - per_tick + 1, per_tick)
    ]
    try:
        return follow(replay, coordinator, log, ticks, per_tick, asks)
    finally:
        coordinator.close()
        shutil.rmtree(state.root)


def follow(
    replay: Replay,
    coordinator: Coordinator,
    log: Path,
    ticks: list[bytes],
    per_tick: int,
    asks: bool,
) -> Followed:
    """Write a tick of lines every 20 ms, while the log is followed and plans are asked for."""
    written: list[float] = []
    beats: list[Beat] = []
    first = coordinator.latest.next_seq
    last = time.monotonic()

    def write() -> None:
        start, asked = time.monotonic(), 0
        with open(log, "ab", buffering=0) as file:
            for number, lines in enumerate(ticks):
                time.sleep(max(0.0, start + number * TICK_S - time.monotonic()))
                file.write(lines)
                written.append(time.monotonic())
                if asks and number * TICK_S >= WARM_S + asked * EVERY_S:
                    ask_plan(coordinator.state, BY_HAND[asked % len(BY_HAND)])
                    asked += 1

    def after(manifest: Manifest) -> None:
        nonlocal last
        if manifest.pieces:
            gather_matches(coordinator.state, list(manifest.pieces))
        now, plan = time.monotonic(), manifest.plan
        changed = plan.get("changed") == manifest.batch
        end = manifest.next_seq - first
        beats.append(Beat(end, now, now - last, "next_why" in plan, changed))
        coordinator.delivered = manifest.batch
        last = now

    writer = threading.Thread(target=write)
    writer.start()
    source = LogSource(str(log), growing=True)
    replay(
        coordinator,
        source,
        after,
        lambda: bool(beats) and beats[-1].end >= per_tick * len(ticks),
    )
    writer.join()
    ends, times = np.array([b.end for b in beats]), np.array([b.at for b in beats])
    tick_end = (np.arange(len(ticks)) + 1) * per_tick
    waits = times[np.searchsorted(ends, tick_end)] - np.array(written)
    return Followed(waits[int(WARM_S / TICK_S) :], beats)
