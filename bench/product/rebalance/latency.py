"""Latency of results while plans change, and the time of the batches around a change.

A log grows at a fixed rate. An object's time is from the write of its line to a sink that has read
its matches. Plans change by hand every few seconds, or by `auto` where the stream drifts.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from bench.clock import say
from bench.figures import BarPlot, Figures, Table
from bench.harness import Setup
from bench.product.latency import (
    TICK_S,
    WARM_S,
    Followed,
    FollowedBatch,
    Replay,
    follow,
    join_ticks,
    replay_with,
)
from bench.product.pipeline import no_fingerprint
from bench.product.rebalance.logs import Size, drifting
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log
from placewire.ingest.sources import LogSource
from placewire.model.settings import Settings
from placewire.plans.rebalance.rebalancer import RebalanceRule
from placewire.spark.session import make_session
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest
from placewire.storage.runtime_files import request_plan

WORKERS = 4
PLAN = "qt"
BY_HAND = ("kdt", "qt")
EVERY_S = 4.0
BATCH_ROWS = 50_000
CASES = {  # the log, the rule, and whether plans are asked for by hand
    "no moves": ("calm", "off", False),
    "moves by hand": ("calm", "off", True),
    "drift, auto": ("sstd objects", "auto", False),
    "drift, off": ("sstd objects", "off", False),
}
CLASSES = (("< 100 ms", 0.1), ("< 1 s", 1.0), ("more", np.inf))
PHASES = ("before", "deciding", "fetching", "first after", "later")


def measure_moves(
    setup: Setup, rate: int = 5_000, interval: int = 8, subscriptions: int = 50_000
) -> Figures:
    """All cases on Spark, and in one process; each of three intervals has so many seconds."""
    # A batch of this log is a second of it; the calm part, which plans are made of, warms up too.
    size = Size(rate, 3, interval, subscriptions, calm=int(WARM_S))
    workload = setup.workload(size.batch * size.batches, size.subscriptions)
    lines = {
        drift: [json.dumps(event).encode() for event in drifting(workload, drift, size)]
        for drift in ("calm", "sstd objects")
    }
    session = make_session("local[2]")
    runners: dict[str, Replay] = {
        "Spark, local[2]": replay_with(session, WORKERS, BATCH_ROWS),
        "one process": replay_here,
    }
    rows: list[tuple[object, ...]] = []
    phases: list[tuple[object, ...]] = []
    bars: dict[str, dict[str, float]] = {name: {} for name, _ in CLASSES}
    for runner, replay in runners.items():
        warm_lines = lines["calm"][: subscriptions + 5 * rate]
        follow_case(setup, replay, warm_lines, size, "off", False)
        for case, (drift, rule, asks) in CASES.items():
            done = follow_case(setup, replay, lines[drift], size, rule, asks)
            shares = share_classes(done.waits)
            moves = sum(beat.changes for beat in done.batches)
            p50, p99 = (float(np.quantile(done.waits, q)) for q in (0.5, 0.99))
            rows.append((runner, case, moves, *shares, p50, p99, float(done.waits.max())))
            say(f"{runner}, {case}: {moves} moves, p50 {p50:.3f} s")
            for (name, _), share in zip(CLASSES, shares, strict=True):
                bars[name][f"{case} ({'Spark' if 'Spark' in runner else 'in process'})"] = share
            if moves:
                phases.append((runner, case, moves, *median_phases(done.batches)))
    session.stop()
    yield Table(
        "drift-moves",
        ("runner", "case", "moves", *(f"{name}, %" for name, _ in CLASSES), "p50, s", "p99, s",
         "longest, s"),
        rows,
    )  # fmt: skip
    yield Table(
        "drift-moves-batches",
        ("runner", "case", "moves", *(f"{phase}, ms" for phase in PHASES)),
        phases,
    )
    yield BarPlot("drift-moves", bars, y_label="% of objects")


def share_classes(waits: np.ndarray) -> list[float]:
    """How many of a hundred lines are in each class of time."""
    below = [float(np.mean(waits < most)) for _, most in CLASSES]
    return [100.0 * share for share in np.diff([0.0, *below]).tolist()]


def median_phases(beats: list[FollowedBatch]) -> Iterator[float]:
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


def replay_here(
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
    setup: Setup, replay: Replay, lines: list[bytes], size: Size, rule: str, asks: bool
) -> Followed:
    """Load the standing subscriptions, then follow a log that grows."""
    log = setup.folder / "growing.jsonl"
    standing = size.subscriptions
    log.write_bytes(b"\n".join(lines[:standing]) + b"\n")
    state = StateDir(setup.folder / "state")
    coordinator = Coordinator(
        state, Settings(), no_fingerprint, PLAN, WORKERS, standing + size.batch,
        rebalance=RebalanceRule(rule),
    )  # fmt: skip
    source = LogSource(str(log), growing=True)
    replay(coordinator, source, lambda _: None, lambda: coordinator.latest.next_seq >= standing)
    asked = 0

    def ask(tick: int) -> None:
        nonlocal asked
        if tick * TICK_S >= WARM_S + asked * EVERY_S:
            request_plan(coordinator.state, BY_HAND[asked % len(BY_HAND)])
            asked += 1

    ticks = join_ticks(lines[standing:], size.batch)
    try:
        return follow(replay, coordinator, log, ticks, ask if asks else None)
    finally:
        coordinator.close()
        shutil.rmtree(state.root)
