"""Drift on Spark: throughput by the wall with two workers on two cores, adjusted or not."""

from __future__ import annotations

import shutil
import time

import numpy as np
from pyspark.sql import SparkSession

from bench.drift import PLANS, PRICES, say, suffix_of
from bench.drift_logs import Size, write_drift
from bench.settings import Choice
from bench.tables import save_table
from placewire.batch.coordinator import Coordinator
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.model.settings import Settings
from placewire.model.subscriptions import BOOLEAN
from placewire.plans.rebalance.rebalancer import RebalanceRule
from placewire.spark.replay import replay_on_spark
from placewire.spark.session import make_session
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest

WORKERS = 2
SIZE = Size(batch=20_000, intervals=2)
DRIFT = "sstd objects"
ROUNDS = 2


def run(choice: Choice) -> None:
    """A table: objects a second by the wall, the best of some rounds, each rule by turns."""
    log = write_drift(choice, DRIFT, choice.folder / "drift.jsonl", SIZE)
    session = make_session("local[2]")
    found: dict[str, list[tuple[float, float, float, int]]] = {"off": [], "auto": []}
    for _ in range(ROUNDS):
        for name, rounds in found.items():
            rounds.append(replay(choice, session, str(log), name))
            say(f"{name}: {rounds[-1][1]:,.0f} objects/s")
    session.stop()
    save_table(
        f"drift-spark{suffix_of(choice)}",
        ("rebalance", "objects/s before", "objects/s in drift", "busiest / mean, counted",
         "changes"),
        [(name, *max(rounds, key=lambda one: one[1])) for name, rounds in found.items()],
    )  # fmt: skip


def replay(
    choice: Choice, session: SparkSession, log: str, name: str
) -> tuple[float, float, float, int]:
    """Objects a second before and in the drift, how uneven workers were in it, and changes."""
    state = StateDir(choice.folder / "state")
    coordinator = Coordinator(
        state, Settings(), identify_log(log), PLANS[DRIFT], WORKERS, SIZE.sample,
        rebalance=RebalanceRule(name),
    )  # fmt: skip
    at: list[tuple[int, float]] = []
    changes: set[int] = set()
    loads: list[np.ndarray] = []

    def after(manifest: Manifest) -> None:
        coordinator.delivered = manifest.batch
        at.append((manifest.counters.objects, time.monotonic()))
        if "changed" in manifest.plan:
            changes.add(manifest.plan["changed"])
        for entry in manifest.signals.history if manifest.signals else []:
            if entry.kind == BOOLEAN and entry.batch == manifest.batch:
                objects, candidates = np.array(entry.objects), np.array(entry.candidates)
                loads.append(PRICES.probe * objects + PRICES.candidate * candidates)

    try:
        replay_on_spark(
            session, coordinator, LogSource(log), batch_rows=SIZE.batch, workers=WORKERS,
            after=after,
        )  # fmt: skip
    finally:
        coordinator.close()
        shutil.rmtree(state.root)
    calm = SIZE.batch * SIZE.calm
    halves = [[one for one in at if calm // 2 <= one[0] <= calm], [o for o in at if o[0] >= calm]]
    before, during = ((b[-1][0] - b[0][0]) / (b[-1][1] - b[0][1]) for b in halves)
    some = loads[-SIZE.intervals * SIZE.interval :]
    uneven = sum(one.max() for one in some) / sum(one.mean() for one in some)
    return before, during, float(uneven), len(changes)
