"""Drift: throughput over time with and without adjusting the plan, and what adjusting costs.

The engine runs in one process, each worker's part of a batch after another's; throughput is by the
critical path, the objects of a batch over the busiest worker's time (dispatch is the same for all).
Times are of the processor.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from bench.drift_logs import DRIFTS, USUAL, Size, size_of, write_drift
from bench.settings import Choice
from bench.tables import draw_lines, save_table
from placewire.batch import dispatch as dispatcher
from placewire.batch import match as pieces
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import run_blocks
from placewire.ingest.log import BlockRef, Offset, batch_end, identify_log
from placewire.ingest.sources import LogSource
from placewire.model.settings import Settings
from placewire.model.subscriptions import BOOLEAN
from placewire.plans.cost.choice import Prices
from placewire.plans.messages import BatchContext, Ran
from placewire.plans.rebalance.rebalancer import ADJUSTERS, Readings, RebalanceRule
from placewire.storage.layout import StateDir

WORKERS = 8
PLANS = {"ps2": "kdt", "tornado": "agrid", "sstd objects": "qt", "sstd subscriptions": "qt"}
PRICES = Prices()
HEADER = (
    "rebalance", "objects/s before", "objects/s in drift", "of off", "objects/s in drift, counted",
    "of off, counted", "busiest / mean, counted", "changes", "batch, ms",
    "longest batch with a change, ms",
)  # fmt: skip
NEVER = RebalanceRule("sstd", high=1e9)  # counts, and never acts


class Beat(NamedTuple):
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
    beside: bool  # an older plan is kept beside the one in force


class Played(NamedTuple):
    """A log that was played: its batches, and how the plan changed."""

    beats: list[Beat]
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


def say(line: str) -> None:
    print(f"  [{time.strftime('%H:%M:%S')}] {line}", flush=True)


@contextlib.contextmanager
def processor_time() -> Iterator[None]:
    """Let workers take the time of the processor, not of the wall: others share the machine."""
    before, clock = pieces.time, SimpleNamespace(perf_counter=time.thread_time)
    pieces.time = dispatcher.time = clock
    try:
        yield
    finally:
        pieces.time = dispatcher.time = before


def play(
    log: Path,
    folder: Path,
    plan: str,
    rule: RebalanceRule,
    size: Size = USUAL,
    batches: int | None = None,
) -> Played:
    """Run a log through the engine in this process."""
    state = StateDir(folder / f"state-{time.monotonic_ns()}")
    coordinator = Coordinator(
        state, Settings(), identify_log(log), plan, WORKERS, size.sample, rebalance=rule
    )
    source = LogSource(str(log))
    beats: list[Beat] = []
    whys: list[str] = []
    readings = None
    try:
        while refs := source.plan(Offset(**coordinator.latest.offset), size.batch, WORKERS):
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
            changed = manifest.plan.get("changed") == manifest.batch
            beats.append(
                Beat(
                    objects, max(busy), sum(busy), max(counted), sum(counted), whole_s,
                    routed[-1], changed, "beside" in manifest.plan,
                )
            )  # fmt: skip
            if changed:
                whys.append(manifest.plan["why"])
            coordinator.delivered = manifest.batch
            if batches is not None and len(beats) == batches:
                break
        planner = coordinator.planners.boolean
        if rule is NEVER and planner.leaves is not None and planner.cost is not None:
            segments = coordinator.live.of_kind(BOOLEAN)
            own = planner.changer.source(planner.leaves.name, segments, planner.cost)
            readings = coordinator.planners.rebalancer.read(planner.leaves, planner.cost, own)
            readings.sample()
            for leaf in range(planner.leaves.total):
                readings.ask(leaf)
    finally:
        coordinator.close()
    return Played(beats, whys, readings)


def run(choice: Choice) -> None:
    """Every drift: without adjusting, with its own paper's way, and with the others."""
    size = size_of(choice)
    for drift in DRIFTS:
        log = write_drift(choice, drift, choice.folder / "drift.jsonl", size)
        plan = PLANS[drift]
        say(f"{drift}, plan {plan}")
        names = [name for name in ADJUSTERS if name != "tornado" or plan == "agrid"]
        played: dict[str, Played] = {}
        for name in ["off", *names, "auto"]:
            # A new plan for all at once: what the other way costs is told by drift-both.
            played[name] = play(log, choice.folder, plan, RebalanceRule(name), size)
            for why in played[name].whys:
                say(f"{name}: {why}")
        first = next((at for at, beat in enumerate(played["off"].beats) if beat.objects), 0)
        label = f"drift-{drift.replace(' ', '-')}{suffix_of(choice)}"
        save_table(label, HEADER, tell_runs(played, first, size))
        draw_over_time(label, played, first, size)


def draw_over_time(label: str, played: dict[str, Played], first: int, size: Size) -> None:
    """Throughput by counts over batches, a line each; `first` is the first with objects."""
    draw_lines(
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


def suffix_of(choice: Choice) -> str:
    """What tells a run from the usual one, in the names of its tables."""
    return ("-large" if choice.full else "") + ("" if choice.data else "-generated")


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
