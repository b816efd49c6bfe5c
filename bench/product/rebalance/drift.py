"""Throughput while subscriptions or objects drift, with and without rebalancing.

The engine runs in one process, one worker's part of a batch after another's. Throughput is by the
critical path: the objects of a batch over the busiest worker's time (dispatch is the same for all).
Times are processor time.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pyspark.sql import SparkSession

from bench.clock import processor_time, say
from bench.figures import Figures, LinePlot, Table
from bench.harness import Setup
from bench.product.rebalance.logs import DRIFTS, Size, write_drift
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import run_blocks
from placewire.ingest.log import BlockRef, batch_end, identify_log
from placewire.ingest.sources import LogSource
from placewire.model.kinds import BOOLEAN
from placewire.model.settings import Settings
from placewire.plans.cost.model import Prices
from placewire.plans.messages import BatchContext, Ran
from placewire.plans.rebalance.rebalancer import ADJUSTERS, Readings, RebalanceRule
from placewire.spark.session import make_session
from placewire.spark.stages import replay_on_spark
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest

WORKERS = 8
PLANS = {"ps2": "kdt", "tornado": "agrid", "sstd objects": "qt", "sstd subscriptions": "qt"}
PRICES = Prices()
HEADER = (
    "rebalance", "objects/s before", "objects/s in drift", "of off", "objects/s in drift, counted",
    "of off, counted", "busiest / mean, counted", "changes", "batch, ms",
    "longest batch with a change, ms",
)  # fmt: skip
NEVER = RebalanceRule("sstd", high=1e9)  # counts, and never acts


class DriftBatch(NamedTuple):
    """One batch: objects, the busiest worker and all of them in seconds, the whole batch, routing.

    `counted_s` is the busiest worker by what it counted, at fixed prices: it has no noise.
    """

    objects: int
    busiest_s: float
    all_s: float
    counted_s: float
    counted_all_s: float
    whole_s: float
    route_s: float
    changed: bool
    dual: bool  # an older plan is kept beside the one in force


class Played(NamedTuple):
    """A log that was played: its batches, and how the plan changed."""

    beats: list[DriftBatch]
    whys: list[str]
    readings: Readings | None

    def per_s(self, first: int = 0, last: int | None = None) -> float:
        """Objects a second by the busiest worker, over some batches."""
        some = [beat for beat in self.beats[first:last] if beat.objects]
        return sum(b.objects for b in some) / max(sum(b.busiest_s for b in some), 1e-9)

    def counted_per_s(self, first: int = 0, last: int | None = None) -> float:
        """The same by what workers counted."""
        some = [beat for beat in self.beats[first:last] if beat.objects]
        return sum(b.objects for b in some) / max(sum(b.counted_s for b in some), 1e-9)


def play(
    log: Path,
    folder: Path,
    plan: str,
    rule: RebalanceRule,
    size: Size,
    batches: int | None = None,
) -> Played:
    """Run a log through the engine in this process."""
    state = StateDir(folder / f"state-{time.monotonic_ns()}")
    coordinator = Coordinator(
        state, Settings(), identify_log(log), plan, WORKERS, size.sample, rebalance=rule
    )
    source = LogSource(str(log))
    beats: list[DriftBatch] = []
    whys: list[str] = []
    readings = None
    try:
        while refs := source.plan(coordinator.latest.offset, size.batch, WORKERS):
            routed: list[float] = []

            def step(
                context: BatchContext, refs: list[BlockRef] = refs, routed: list[float] = routed
            ) -> Ran:
                ran = run_blocks(context, refs)
                routed.append(sum(block.route_s for block in ran.blocks))
                return ran

            started = time.process_time()
            with processor_time():
                manifest = coordinator.step(coordinator.latest.batch + 1, batch_end(refs), step)
            whole_s = time.process_time() - started
            objects = manifest.counters.objects - sum(beat.objects for beat in beats)
            did = [
                entry
                for entry in (manifest.signals.history if manifest.signals else [])
                if entry.kind == BOOLEAN and entry.batch == manifest.batch
            ]
            busy = did[0].busy_s if did else [0.0]
            counted = [0.0]
            if did:
                counts = zip(did[0].objects, did[0].candidates, strict=True)
                counted = [1e-9 * (PRICES.probe * o + PRICES.candidate * c) for o, c in counts]
            changed = manifest.leaf_plan.changed == manifest.batch
            beats.append(
                DriftBatch(
                    objects, max(busy), sum(busy), max(counted), sum(counted), whole_s,
                    routed[-1], changed, manifest.leaf_plan.previous is not None,
                )
            )  # fmt: skip
            if changed:
                whys.append(manifest.leaf_plan.why)
            coordinator.delivered = manifest.batch
            if batches is not None and len(beats) == batches:
                break
        planner = coordinator.planners.leaf
        if rule is NEVER and planner.leaves is not None and planner.cost is not None:
            segments = coordinator.live.of_kind(BOOLEAN)
            own = planner.changer.source(planner.leaves.name, segments, planner.cost)
            readings = coordinator.planners.rebalancer.read(planner.leaves, planner.cost, own)
            readings.source.sample()
            for leaf in range(planner.leaves.total):
                readings.ask(leaf)
    finally:
        coordinator.close()
    return Played(beats, whys, readings)


def compare_adjusters(
    setup: Setup,
    drifts: tuple[str, ...] = DRIFTS,
    batch: int = 4_000,
    intervals: int = 3,
    interval: int = 16,
    subscriptions: int = 60_000,
) -> Figures:
    """Every drift: without adjusting, with its own paper's way, and with the others."""
    size = Size(batch, intervals, interval, subscriptions)
    for drift in drifts:
        log = write_drift(setup, drift, setup.folder / "drift.jsonl", size)
        plan = PLANS[drift]
        say(f"{drift}, plan {plan}")
        names = [name for name in ADJUSTERS if name != "tornado" or plan == "agrid"]
        played: dict[str, Played] = {}
        for name in ["off", *names, "auto"]:
            # A new plan for all at once: what the other way costs is told by drift-both.
            played[name] = play(log, setup.folder, plan, RebalanceRule(name), size)
            for why in played[name].whys:
                say(f"{name}: {why}")
        first = next((at for at, beat in enumerate(played["off"].beats) if beat.objects), 0)
        label = f"drift-{drift.replace(' ', '-')}"
        yield Table(label, HEADER, tell_runs(played, first, size))
        yield from draw_over_time(label, played, first, size)


def draw_over_time(label: str, played: dict[str, Played], first: int, size: Size) -> Figures:
    """Throughput by counts over batches, a line each; `first` is the first with objects."""
    yield LinePlot(
        label,
        {
            name: [
                (at + 1.0, run_.counted_per_s(first + at, first + at + 3))
                for at in range(size.calm // 2, len(run_.beats) - first - 2, 2)
            ]
            for name, run_ in played.items()
        },
        x_label="batch",
        y_label="objects/s by the busiest worker, counted",
        x_scale="linear",
    )


def tell_runs(
    played: dict[str, Played], first: int, size: Size
) -> Iterator[tuple[str | float, ...]]:
    """A row of the table for each way; `first` is the first batch with objects."""
    calm, off = first + size.calm, played["off"]
    for name, run_ in played.items():
        beats = run_.beats[calm:]
        yield (
            name,
            run_.per_s(first + size.calm // 2, calm),
            run_.per_s(calm),
            run_.per_s(calm) / off.per_s(calm),
            run_.counted_per_s(calm),
            run_.counted_per_s(calm) / off.counted_per_s(calm),
            WORKERS * sum(b.counted_s for b in beats) / sum(b.counted_all_s for b in beats),
            len(run_.whys),
            1e3 * float(np.median([b.whole_s for b in beats if not b.changed])),
            1e3 * max((b.whole_s for b in beats if b.changed), default=0.0),
        )


SWITCHING_DRIFTS = ("sstd objects", "tornado")
RULES = {
    "off": RebalanceRule("off"),
    "ps2-global, at once": RebalanceRule("ps2-global"),
    "ps2-global, side by side": RebalanceRule("ps2-global", dual=True),
    "auto": RebalanceRule("auto"),
}
SWITCHING_HEADER = (
    "drift", "way", "changes", "batches with two plans", "objects/s in drift, counted",
    "of off, counted", "busiest / mean, counted", "all workers, ms a batch", "routing, ms a batch",
    "batch, ms", "with two plans, ms", "longest, ms",
)  # fmt: skip


def compare_switching(
    setup: Setup,
    batch: int = 20_000,
    intervals: int = 3,
    interval: int = 16,
    subscriptions: int = 60_000,
) -> Figures:
    """A new plan for all subscriptions at once, or beside the old one as PS2Stream does.

    Side by side, every object is routed twice and meets old subscriptions at one worker and new
    ones at another, until few old ones are left. Subscriptions are replaced during the drift, one
    for ten objects, so that this happens.
    """
    size = Size(batch, intervals, interval, subscriptions, renewed=batch // 10)
    rows: list[tuple[str | float, ...]] = []
    for drift in SWITCHING_DRIFTS:
        log = write_drift(setup, drift, setup.folder / "drift.jsonl", size)
        played: dict[str, Played] = {}
        for name, rule in RULES.items():
            played[name] = play(log, setup.folder, PLANS[drift], rule, size)
            for why in played[name].whys:
                say(f"{drift}, {name}: {why}")
        first = next(at for at, beat in enumerate(played["off"].beats) if beat.objects)
        rows += tell_switching(drift, played, first, size)
        label = f"drift-both-{drift.replace(' ', '-')}"
        yield from draw_over_time(label, played, first, size)
    yield Table("drift-both", SWITCHING_HEADER, rows)


def tell_switching(
    drift: str, played: dict[str, Played], first: int, size: Size
) -> Iterator[tuple[str | float, ...]]:
    """A row for each way; `first` is the first batch with objects."""
    calm, off = first + size.calm, played["off"]
    for name, run_ in played.items():
        beats = run_.beats[calm:]
        two = [beat for beat in beats if beat.dual]
        yield (
            drift,
            name,
            len(run_.whys),
            len(two),
            run_.counted_per_s(calm),
            run_.counted_per_s(calm) / off.counted_per_s(calm),
            WORKERS * sum(b.counted_s for b in beats) / sum(b.counted_all_s for b in beats),
            1e3 * float(np.mean([b.all_s for b in beats])),
            1e3 * float(np.mean([b.route_s for b in beats])),
            1e3 * float(np.median([b.whole_s for b in beats])),
            1e3 * float(np.median([b.whole_s for b in two])) if two else 0.0,
            1e3 * max(b.whole_s for b in beats),
        )


SPARK_WORKERS = 2
SPARK_DRIFT = "sstd objects"


def measure_on_spark(
    setup: Setup,
    batch: int = 20_000,
    intervals: int = 2,
    interval: int = 16,
    subscriptions: int = 60_000,
    rounds: int = 2,
) -> Figures:
    """Objects a second by the wall, the best of some rounds, the rules in turn."""
    size = Size(batch, intervals, interval, subscriptions)
    log = write_drift(setup, SPARK_DRIFT, setup.folder / "drift.jsonl", size)
    session = make_session("local[2]")
    found: dict[str, list[tuple[float, float, float, int]]] = {"off": [], "auto": []}
    for _ in range(rounds):
        for name, runs in found.items():
            runs.append(replay_drift(setup, session, str(log), name, size))
            say(f"{name}: {runs[-1][1]:,.0f} objects/s")
    session.stop()
    yield Table(
        "drift-spark",
        ("rebalance", "objects/s before", "objects/s in drift", "busiest / mean, counted",
         "changes"),
        [(name, *max(runs, key=lambda one: one[1])) for name, runs in found.items()],
    )  # fmt: skip


def replay_drift(
    setup: Setup, session: SparkSession, log: str, name: str, size: Size
) -> tuple[float, float, float, int]:
    """Objects a second before and in the drift, how uneven workers were in it, and changes."""
    state = StateDir(setup.folder / "state")
    coordinator = Coordinator(
        state, Settings(), identify_log(Path(log)), PLANS[SPARK_DRIFT], SPARK_WORKERS, size.sample,
        rebalance=RebalanceRule(name),
    )  # fmt: skip
    at: list[tuple[int, float]] = []
    changes: set[int] = set()
    loads: list[np.ndarray] = []

    def after(manifest: Manifest) -> None:
        coordinator.delivered = manifest.batch
        at.append((manifest.counters.objects, time.monotonic()))
        if manifest.leaf_plan.changed is not None:
            changes.add(manifest.leaf_plan.changed)
        for entry in manifest.signals.history if manifest.signals else []:
            if entry.kind == BOOLEAN and entry.batch == manifest.batch:
                objects, candidates = np.array(entry.objects), np.array(entry.candidates)
                loads.append(PRICES.probe * objects + PRICES.candidate * candidates)

    try:
        replay_on_spark(
            session, coordinator, LogSource(log), batch_rows=size.batch, workers=SPARK_WORKERS,
            after=after,
        )  # fmt: skip
    finally:
        coordinator.close()
        shutil.rmtree(state.root)
    calm = size.batch * size.calm
    halves = [[one for one in at if calm // 2 <= one[0] <= calm], [o for o in at if o[0] >= calm]]
    before, during = ((b[-1][0] - b[0][0]) / (b[-1][1] - b[0][1]) for b in halves)
    some = loads[-size.intervals * size.interval :]
    uneven = sum(one.max() for one in some) / sum(one.mean() for one in some)
    return before, during, float(uneven), len(changes)
