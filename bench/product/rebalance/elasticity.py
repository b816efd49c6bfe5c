"""A stream that gets eight times as fast, with 1, 8, or 1 to 8 workers.

The engine runs in one process; what a batch takes is the busiest worker's processor time, as if
each had a core. Batches of this size take tenths of the seconds that the rule is made for, so its
seconds are scaled down to what one worker has to do at the slow rate.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.clock import processor_time, say
from bench.figures import Figures, LinePlot, Table
from bench.harness import Setup
from bench.workload import write_log
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import run_blocks
from placewire.batch.resize import AIM_S, BUSY_S, IDLE_S, ElasticRule, WorkerRange
from placewire.ingest.log import batch_end, identify_log
from placewire.ingest.sources import LogSource
from placewire.model.kinds import BOOLEAN
from placewire.model.settings import Settings
from placewire.storage.layout import StateDir

FIRST, STRETCH = 12, 10  # batches at the first rate, and at each other
RATES = (1, 2, 4, 8, 4, 2, 1)
PLAN = "kdt"
MOST = 8


class ElasticBatch(NamedTuple):
    """One batch: objects, workers, the busiest and all of them in seconds, the whole batch."""

    objects: int
    workers: int
    busiest_s: float
    all_s: float
    whole_s: float
    why: str


def batch_sizes(slow: int) -> Iterator[int]:
    """How many objects each batch has."""
    for number, rate in enumerate(RATES):
        yield from [slow * rate] * (STRETCH if number else FIRST)


def measure_elasticity(setup: Setup, subscriptions: int = 500_000, slow: int = 5_000) -> Figures:
    """One, eight, and one to eight workers; `slow` objects a batch at the lowest rate."""
    # With frequent words: matching has to be more than its calls.
    workload = setup.workload(sum(batch_sizes(slow)), subscriptions, skip=10)
    log = setup.folder / "elastic.jsonl"
    write_log(workload, log)
    alone = play(log, setup.folder, WorkerRange(1, 1), None, subscriptions, slow)
    slow_s = float(np.median([beat.busiest_s for beat in alone[4:FIRST]]))
    scale = slow_s / AIM_S
    say(f"one worker has {1e3 * slow_s:.1f} ms to do in a slow batch: seconds times {scale:.3g}")
    rule = ElasticRule(BUSY_S * scale, AIM_S * scale, IDLE_S * scale)
    played = {
        "1": alone,
        "8": play(log, setup.folder, WorkerRange(MOST, MOST), None, subscriptions, slow),
        "1..8": play(log, setup.folder, WorkerRange(1, MOST), rule, subscriptions, slow),
    }
    for at, beat in enumerate(played["1..8"]):
        if beat.why:
            say(f"batch {at + 1}: {beat.why}")
    yield Table(
        "drift-elastic",
        ("workers", "in the mean", "changes", "busiest worker, ms, slow", "at 8 times the rate",
         "longest", "all workers, s", "whole run, s", "batches with a change, more ms"),
        [(name, *tell(beats, slow)) for name, beats in played.items()],
    )  # fmt: skip
    for what, label in (("busiest", "ms of the busiest worker in a batch"), ("workers", "workers")):
        yield LinePlot(
            f"drift-elastic-{what}",
            {
                name: [
                    (at + 1.0, 1e3 * beat.busiest_s if what == "busiest" else float(beat.workers))
                    for at, beat in enumerate(beats)
                ]
                for name, beats in played.items()
            },
            x_label="batch",
            y_label=label,
            x_scale="linear",
        )


def tell(beats: list[ElasticBatch], slow: int) -> Iterator[float]:
    """The cells of one run."""
    sizes = list(batch_sizes(slow))
    yield float(np.mean([beat.workers for beat in beats]))
    yield sum(bool(beat.why) for beat in beats)
    for objects in (slow, MOST * slow):
        # The second half of a stretch, when workers have had time to follow.
        some = [
            beat.busiest_s
            for at, beat in enumerate(beats)
            if sizes[at] == objects and sizes[max(at - STRETCH // 2, 0)] == objects and at > 3
        ]
        yield 1e3 * float(np.median(some))
    yield 1e3 * max(beat.busiest_s for beat in beats[4:])
    yield sum(beat.all_s for beat in beats)
    yield sum(beat.whole_s for beat in beats)
    more = [
        beats[at].whole_s - beats[at - 1].whole_s
        for at in range(1, len(beats))
        if beats[at - 1].why and beats[at].objects == beats[at - 1].objects
    ]
    yield 1e3 * float(np.median(more)) if more else 0.0


def play(
    log: Path,
    folder: Path,
    span: WorkerRange,
    rule: ElasticRule | None,
    subscriptions: int,
    slow: int,
) -> list[ElasticBatch]:
    """Run the log; without a rule there are as many workers as the range begins with."""
    state = StateDir(folder / f"state-{time.monotonic_ns()}")
    coordinator = Coordinator(
        state, Settings(), identify_log(log), PLAN, span if rule else span.least,
        20 * slow,
    )  # fmt: skip
    elastic = coordinator.resizer.elastic
    if elastic is not None and rule is not None:
        elastic.rule = rule
    source = LogSource(str(log))
    beats: list[ElasticBatch] = []
    try:
        for number, rows in enumerate((subscriptions, *batch_sizes(slow))):
            workers = coordinator.planners.workers
            refs = source.plan(coordinator.latest.offset, rows, workers)
            started = time.process_time()
            with processor_time():
                manifest = coordinator.step(
                    coordinator.latest.batch + 1,
                    batch_end(refs),
                    lambda context, refs=refs: run_blocks(context, refs),
                )
            whole_s = time.process_time() - started
            coordinator.delivered = manifest.batch
            if number == 0:
                continue
            busy = [
                entry.busy_s
                for entry in (manifest.signals.history if manifest.signals else [])
                if entry.kind == BOOLEAN and entry.batch == manifest.batch
            ]
            resized = coordinator.planners.workers != workers
            why = elastic.why if resized and elastic is not None else ""
            each = busy[0] if busy else [0.0]
            beats.append(ElasticBatch(rows, workers, max(each), sum(each), whole_s, why))
    finally:
        coordinator.close()
    return beats
