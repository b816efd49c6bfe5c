"""Plans through the whole pipeline on Spark, with the papers' stream: wall speed and latency.

Five objects come to one insert or delete; a subscription lives for N(mu, 0.2 mu) inserts. All
workers share this machine's two cores, so that a plan can only lose by routing here: what a cluster
would see is in `partitioning`.
"""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import numpy as np

from bench.settings import Choice
from bench.tables import save_table
from bench.workload import Workload, object_lines, subscribe_events
from placewire.engine.coordinator import Coordinator
from placewire.engine.log import identify_log
from placewire.engine.reading import LogSource
from placewire.model.settings import Settings
from placewire.spark.replay import replay_on_spark
from placewire.spark.session import make_session
from placewire.state.layout import StateDir
from placewire.state.manifest import Manifest

PLANS = ("shared", "grid", "kdtree", "metric", "kdt", "agrid", "qt", "auto")
WORKERS = 8
OBJECTS_A_CHANGE = 5
TS = "2026-01-01T00:00:00Z"
SMALL_BATCH = 10_000


def write_stream(workload: Workload, standing: int, path: Path, seed: int = 3) -> int:
    """The standing subscriptions, then the stream; gives how many lines the first part has."""
    random = np.random.default_rng(seed)
    lines = [
        msgspec.json.encode(event)
        for batch in workload.subscriptions.to_batches(max_chunksize=50_000)
        for event in subscribe_events(batch, TS)
    ]
    objects = [line for block in object_lines(workload) for line in block.splitlines()]
    # How many inserts each one lives; those that stand at the start are anywhere in their lives.
    lives = np.maximum(random.normal(standing, 0.2 * standing, len(lines)), 1)
    ages = np.where(np.arange(len(lines)) < standing, random.random(len(lines)) * lives, 0)
    born = np.maximum(np.arange(len(lines)) - standing, 0)
    leaving = iter(np.argsort(born + lives - ages, kind="stable").tolist())
    coming = standing
    with open(path, "wb") as log:
        log.write(b"\n".join(lines[:standing]) + b"\n")
        for number, line in enumerate(objects):
            log.write(line + b"\n")
            if number % (2 * OBJECTS_A_CHANGE) == OBJECTS_A_CHANGE and coming < len(lines):
                log.write(lines[coming] + b"\n")
                coming += 1
            elif number % (2 * OBJECTS_A_CHANGE) == 0:
                gone = f"s{next(leaving)}".encode()
                log.write(b'{"type":"unsubscribe","id":"%b","ts":"%b"}\n' % (gone, TS.encode()))
    return standing


def run(choice: Choice) -> None:
    """Each plan on the same log: tuples a second in large batches, seconds of small ones."""
    standing = 1_000_000 if choice.full else 200_000
    objects = 1_000_000 if choice.full else 400_000
    inserts = objects // (2 * OBJECTS_A_CHANGE) + 1
    log = choice.folder / "stream.jsonl"
    first = write_stream(choice.workload(objects, standing + inserts), standing, log)
    tuples = log.read_bytes().count(b"\n") - first
    session = make_session("local[2]")
    rows = []
    for plan in PLANS:
        rows.append(run_plan(choice, session, log, plan, first, tuples))
        print(f"{plan}: {rows[-1][1]:,.0f} tuples/s", flush=True)
    session.stop()
    save_table(
        "plans",
        ("plan", "tuples/s", "of shared", "copies an object", "dispatch, ns an object",
         "batch of 10,000: p50, s", "p99, s", "results"),
        [(*row[:2], row[1] / rows[0][1], *row[2:]) for row in rows],
    )  # fmt: skip


def run_plan(
    choice: Choice, session: object, log: Path, plan: str, first: int, tuples: int
) -> tuple[object, ...]:
    """One plan: load, then the stream in large batches and its last part in small ones."""
    state = StateDir(choice.folder / f"state-{plan}")
    coordinator = Coordinator(state, Settings(), identify_log(log), plan, WORKERS, first)
    sent = routed = 0
    route_s = 0.0
    step = coordinator.step

    def watched(batch, end, run):  # type: ignore[no-untyped-def]
        def counting(context):  # type: ignore[no-untyped-def]
            nonlocal sent, routed, route_s
            blocks, pieces = run(context)
            if context.route is not None:
                sent += sum(block.sent for block in blocks)
                routed += sum(block.objects for block in blocks)
                route_s += sum(block.route_s for block in blocks)
            return blocks, pieces

        return step(batch, end, counting)

    coordinator.step = watched  # type: ignore[method-assign]
    big, small = [], []
    large_end = first + int(0.8 * tuples)

    def replay(batch_rows: int, seconds: list[float], end: int) -> None:
        """Go on until `end` lines are done."""
        last = time.perf_counter()

        def after(manifest: Manifest) -> None:
            nonlocal last
            seconds.append(time.perf_counter() - last)
            last = time.perf_counter()

        replay_on_spark(
            session,  # type: ignore[arg-type]
            coordinator,
            LogSource(str(log)),
            batch_rows=batch_rows,
            workers=WORKERS,
            after=after,
            until=lambda: coordinator.latest.next_seq >= end,
        )

    replay(first, [], first)
    started = coordinator.latest.next_seq
    replay(100_000, big, large_end)
    done = coordinator.latest.next_seq - started
    replay(SMALL_BATCH, small, first + tuples)
    coordinator.close()
    results = coordinator.latest.counters.results
    return (
        f"auto: {coordinator.planner.why.split(':')[0]}" if plan == "auto" else plan,
        done * (len(big) - 1) / len(big) / sum(big[1:]),  # the first batch warms up
        sent / routed if routed else 1.0,
        1e9 * route_s / routed if routed else 0.0,
        float(np.percentile(small[1:], 50)),
        float(np.percentile(small[1:], 99)),
        results,
    )
