"""Plans through the whole pipeline on Spark, with the papers' stream: wall speed and latency.

All workers share this machine's two cores, so that a plan can only lose by routing here: what a
cluster would see is in `partitioning`.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from bench.settings import Choice
from bench.stream import Stream, draw_streams
from bench.tables import draw_bars, save_table
from placewire.batch.coordinator import Coordinator
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.model.settings import Settings
from placewire.plans.boolean.methods import METHODS
from placewire.spark.replay import replay_on_spark
from placewire.spark.session import make_session
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest

PLANS = ("shared", *METHODS, "auto")
SETS = ("Q1", "Q2", "Q3")
WORKERS = 8
BATCHES = 4  # of the large ones; the first is not counted
SMALL_BATCH = 5_000
HEADER = (
    "plan",
    "tuples/s",
    "of shared",
    "copies an object",
    "dispatch, ns an object",
    "batch of 5,000: p50, s",
    "p99, s",
    "results",
)


def run(choice: Choice) -> None:
    """Each plan on the same logs: tuples a second in large batches, seconds of small ones."""
    standing = 1_000_000 if choice.full else 50_000
    objects = 1_000_000 if choice.full else 120_000
    session = make_session("local[2]")
    speeds: dict[str, dict[str, float]] = {}
    seconds: dict[str, dict[str, float]] = {}
    for name, stream in draw_streams(choice, SETS, objects, standing).items():
        log = write_log(stream, choice.folder / f"stream-{name}.jsonl")
        run_plan(choice, session, log, "shared", stream)  # the JVM warms up
        rows = []
        for plan in PLANS:
            rows.append(run_plan(choice, session, log, plan, stream))
            print(f"{name}, {plan}: {rows[-1][1]:,.0f} tuples/s", flush=True)
        save_table(
            f"plans-{name}", HEADER, [(*row[:2], row[1] / rows[0][1], *row[2:]) for row in rows]
        )
        speeds[name] = {plan: row[1] for plan, row in zip(PLANS, rows, strict=True)}
        seconds[name] = {plan: row[4] for plan, row in zip(PLANS, rows, strict=True)}
    session.stop()
    save_table(
        "plans",
        ("plan", *(f"{name}, tuples/s" for name in SETS), *(f"{name}, batch, s" for name in SETS)),
        [(p, *(speeds[n][p] for n in SETS), *(seconds[n][p] for n in SETS)) for p in PLANS],
    )
    draw_bars("plans", speeds, y_label="tuples/s through the pipeline, two cores")


def write_log(stream: Stream, path: Path) -> Path:
    """The whole stream as a file."""
    path.write_bytes(b"\n".join([*stream.standing, *stream.tuples]) + b"\n")
    return path


def run_plan(
    choice: Choice, session: SparkSession, log: Path, plan: str, stream: Stream
) -> tuple[str, float, float, float, float, float, int]:
    """One plan: load, then the stream in large batches and its last part in small ones."""
    first, tuples = len(stream.standing), len(stream.tuples)
    state = StateDir(choice.folder / "state")
    coordinator = Coordinator(state, Settings(), identify_log(log), plan, WORKERS, first)
    sent = routed = 0
    route_s = 0.0
    step = coordinator.step

    def watched(batch, end, run):  # type: ignore[no-untyped-def]
        def counting(context):  # type: ignore[no-untyped-def]
            nonlocal sent, routed, route_s
            ran = run(context)
            if context.route is not None:
                sent += sum(block.sent for block in ran.blocks)
                routed += sum(block.objects for block in ran.blocks)
                route_s += sum(block.route_s for block in ran.blocks)
            return ran

        return step(batch, end, counting)

    coordinator.step = watched  # type: ignore[method-assign]
    large_end = first + int(0.8 * tuples)
    big: list[tuple[int, float]] = []
    small: list[tuple[int, float]] = []

    def replay(batch_rows: int, done: list[tuple[int, float]], end: int) -> None:
        """Go on until `end` lines are done."""

        def after(manifest: Manifest) -> None:
            done.append((manifest.next_seq, time.perf_counter()))

        replay_on_spark(
            session,
            coordinator,
            LogSource(str(log)),
            batch_rows=batch_rows,
            workers=WORKERS,
            after=after,
            until=lambda: coordinator.latest.next_seq >= end,
        )

    replay(first, [], first)
    replay(-(-(large_end - first) // BATCHES), big, large_end)
    replay(SMALL_BATCH, small, first + tuples)
    coordinator.close()
    shutil.rmtree(state.root)
    waits = np.diff([at for _, at in small])
    return (
        f"auto: {coordinator.planners.boolean.why.split(':')[0]}" if plan == "auto" else plan,
        (big[-1][0] - big[0][0]) / (big[-1][1] - big[0][1]),
        sent / routed if routed else 1.0,
        1e9 * route_s / routed if routed else 0.0,
        float(np.percentile(waits, 50)),
        float(np.percentile(waits, 99)),
        coordinator.latest.counters.results,
    )
