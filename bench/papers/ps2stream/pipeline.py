"""Plans through the whole pipeline on Spark with PS2Stream's stream: throughput and latency.

All workers share this machine's two cores, so that a plan can only lose by routing here: what a
cluster would see is in `partitioning`.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from bench.clock import say
from bench.figures import BarPlot, Figures, Table
from bench.harness import Setup
from bench.papers.ps2stream.queries import TupleStream, draw_streams
from bench.product.latency import WARM_S, Followed, follow, join_ticks, replay_with
from bench.product.pipeline import no_fingerprint
from placewire.batch.coordinator import Coordinator, Run
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.model.kinds import BOOLEAN
from placewire.model.settings import Settings
from placewire.plans.boolean.methods import METHODS
from placewire.plans.messages import BatchContext, Ran
from placewire.spark.session import make_session
from placewire.spark.stages import replay_on_spark
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest, Offset

PLANS = ("shared", *METHODS, "auto")
SETS = ("Q1", "Q2", "Q3")
WORKERS = 8
BATCHES = 4  # of the large ones; the first is not counted
HEADER = (
    "plan",
    "tuples/s",
    "of shared",
    "copies an object",
    "dispatch, ns an object",
    "small batch: p50, s",
    "p99, s",
    "results",
)


def measure_plans(
    setup: Setup,
    standing: int = 50_000,
    objects: int = 120_000,
    sets: tuple[str, ...] = SETS,
    plans: tuple[str, ...] = PLANS,
    small_batch: int = 5_000,
) -> Figures:
    """Each plan on the same logs: tuples a second in large batches, seconds of small ones."""
    session = make_session("local[2]")
    speeds: dict[str, dict[str, float]] = {}
    seconds: dict[str, dict[str, float]] = {}
    for name, stream in draw_streams(setup, sets, objects, standing).items():
        log = write_log(stream, setup.folder / f"stream-{name}.jsonl")
        run_plan(setup, session, log, "shared", stream, small_batch)  # the JVM warms up
        rows = []
        for plan in plans:
            rows.append(run_plan(setup, session, log, plan, stream, small_batch))
            say(f"{name}, {plan}: {rows[-1][1]:,.0f} tuples/s")
        yield Table(
            f"plans-{name}", HEADER, [(*row[:2], row[1] / rows[0][1], *row[2:]) for row in rows]
        )
        speeds[name] = {plan: row[1] for plan, row in zip(plans, rows, strict=True)}
        seconds[name] = {plan: row[4] for plan, row in zip(plans, rows, strict=True)}
    session.stop()
    yield Table(
        "plans",
        ("plan", *(f"{name}, tuples/s" for name in sets), *(f"{name}, batch, s" for name in sets)),
        [(p, *(speeds[n][p] for n in sets), *(seconds[n][p] for n in sets)) for p in plans],
    )
    yield BarPlot("plans", speeds, y_label="tuples/s through the pipeline, two cores")


def write_log(stream: TupleStream, path: Path) -> Path:
    """The whole stream as a file."""
    path.write_bytes(b"\n".join([*stream.standing, *stream.tuples]) + b"\n")
    return path


def run_plan(
    setup: Setup,
    session: SparkSession,
    log: Path,
    plan: str,
    stream: TupleStream,
    small_batch: int,
) -> tuple[str, float, float, float, float, float, int]:
    """One plan: load, then the stream in large batches and its last part in small ones."""
    first, tuples = len(stream.standing), len(stream.tuples)
    state = StateDir(setup.folder / "state")
    coordinator = Coordinator(state, Settings(), identify_log(log), plan, WORKERS, first)
    sent = routed = 0
    route_s = 0.0
    step = coordinator.step

    def watched(batch: int, end: Offset, run: Run) -> Manifest:
        def counting(context: BatchContext) -> Ran:
            nonlocal sent, routed, route_s
            ran = run(context)
            if BOOLEAN in context.routes:
                sent += sum(block.sent for block in ran.blocks)
                routed += sum(block.objects for block in ran.blocks)
                route_s += sum(block.route_s for block in ran.blocks)
            return ran

        return step(batch, end, counting)

    coordinator.step = watched
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
    replay(small_batch, small, first + tuples)
    coordinator.close()
    shutil.rmtree(state.root)
    waits = np.diff([at for _, at in small])
    return (
        f"auto: {coordinator.planners.leaf.why.split(':')[0]}" if plan == "auto" else plan,
        (big[-1][0] - big[0][0]) / (big[-1][1] - big[0][1]),
        sent / routed if routed else 1.0,
        1e9 * route_s / routed if routed else 0.0,
        float(np.percentile(waits, 50)),
        float(np.percentile(waits, 99)),
        coordinator.latest.counters.results,
    )


def measure_plan_latency(
    setup: Setup,
    rate: int = 5_000,
    standing: int = 50_000,
    seconds: float = 16.0,
    sets: tuple[str, ...] = ("Q3",),
    plans: tuple[str, ...] = PLANS,
) -> Figures:
    """Latency of every plan; the rate is about a quarter of what the plans sustain on two cores."""
    objects = int(rate * (seconds + WARM_S)) * 5 // 6  # the others are changes
    session = make_session("local[2]")
    for name, stream in draw_streams(setup, sets, objects, standing).items():
        follow_plan(setup, session, stream, "shared", rate)  # the JVM warms up
        found: dict[str, tuple[float, ...]] = {}
        for plan in plans:
            found[plan] = follow_plan(setup, session, stream, plan, rate).quantiles()
            say(f"{name}, {plan}: {found[plan][0]:.3g} s")
        yield Table(
            f"plan-latency-{name}",
            (f"{name}: plan", "p50, s", "p90, s", "p99, s", "a batch, s (median)"),
            [(plan, *waits) for plan, waits in found.items()],
        )
        yield BarPlot(
            f"plan-latency-{name}",
            {
                label: {plan: waits[at] for plan, waits in found.items()}
                for at, label in ((0, "p50"), (2, "p99"))
            },
            y_label=f"seconds from write to sink ({name})",
        )
    session.stop()


def follow_plan(
    setup: Setup, session: SparkSession, stream: TupleStream, plan: str, rate: int
) -> Followed:
    """Load the standing subscriptions, then write the stream bit by bit."""
    log = setup.folder / "growing.jsonl"
    log.write_bytes(b"\n".join(stream.standing) + b"\n")
    first = len(stream.standing)
    state = StateDir(setup.folder / "state")
    coordinator = Coordinator(state, Settings(), no_fingerprint, plan, WORKERS, first)
    replay_with(session, WORKERS, first)(
        coordinator,
        LogSource(str(log)),
        lambda manifest: None,
        lambda: coordinator.latest.next_seq >= first,
    )
    ticks = join_ticks(stream.tuples, rate)
    followed = follow(replay_with(session, WORKERS), coordinator, log, ticks)
    coordinator.close()
    shutil.rmtree(state.root)
    return followed
