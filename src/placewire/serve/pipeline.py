"""The pipeline process: follows the journal and commits batches, on Spark or in this process.

It knows nothing of HTTP. Killed at any moment, it goes on after its last commit.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from placewire.engine.coordinator import Coordinator
from placewire.engine.elastic import read_workers
from placewire.engine.local import replay_log
from placewire.engine.log import BlockRef, Offset
from placewire.engine.reading import JournalSource, name_journal
from placewire.engine.rebalancing import read_rebalance
from placewire.model.settings import Settings
from placewire.serve.ledger.recorder import read_cursor
from placewire.state.journal import journal_folder
from placewire.state.layout import StateDir
from placewire.state.manifest import Manifest

BEATS_S = 1.0
IDLE_S = 0.005  # between two looks at the journal
REST_S = 0.25  # after which Spark's query, with nothing to do, ticks once


def beat_path(state: StateDir) -> Path:
    """A file that the pipeline touches while it lives, from when it can take events on."""
    return state.root / "PIPELINE"


class PipelineOptions(NamedTuple):
    """How the pipeline runs; only speed depends on it."""

    state: Path
    settings: Settings
    runner: str = "spark"
    plan: str = "shared"
    workers: str = "1"
    rebalance: str = "auto"
    batch_rows: int = 200_000
    master: str | None = None


def wait_for_journal(root: Path, stopping: threading.Event) -> bool:
    """Wait until the gateway has made a journal; false if it was stopped before."""
    mark = journal_folder(StateDir(root.absolute())) / "MARK"
    while not mark.exists():
        if stopping.wait(REST_S):
            return False
    return True


class Following:
    """A journal that is waited for a little when it has nothing new."""

    def __init__(self, journal: JournalSource, stopping: threading.Event, rest_s: float) -> None:
        self.journal = journal
        self.stopping = stopping
        self.rest_s = rest_s

    def plan_capped(self, start: Offset, rows: int, cap: int, blocks: int) -> list[BlockRef]:
        until = time.monotonic() + self.rest_s
        while self.journal.waiting(start) <= 0:
            if time.monotonic() >= until or self.stopping.wait(IDLE_S):
                return []
        return self.journal.plan_capped(start, rows, cap, blocks)

    def end(self, refs: list[BlockRef]) -> Offset:
        return self.journal.end(refs)


def run_pipeline(
    options: PipelineOptions,
    stopping: threading.Event,
    session: Callable[[], Any] | None = None,
    after: Callable[[Manifest], None] = lambda _: None,
) -> None:
    """Follow the journal of a state until `stopping`; raises Unusable."""
    state = StateDir(options.state.absolute())
    folder = journal_folder(state)
    beat_path(state).unlink(missing_ok=True)  # of one that was killed
    span = read_workers(options.workers)
    coordinator = Coordinator(
        state,
        options.settings,
        name_journal(folder),
        options.plan,
        span if span.most > span.least else span.least,
        rebalance=read_rebalance(options.rebalance),
    )

    def committed(manifest: Manifest) -> None:
        coordinator.delivered = read_cursor(state)
        after(manifest)

    ended = threading.Event()
    beating = threading.Thread(target=beat, args=(beat_path(state), ended), daemon=True)
    try:
        source = Following(JournalSource(folder), stopping, REST_S)
        if session is None:
            beating.start()
            while not stopping.is_set():
                for manifest in replay_log(coordinator, source, options.batch_rows):
                    committed(manifest)
                    if stopping.is_set():
                        break
        else:
            from placewire.spark.replay import replay_on_spark
            from placewire.spark.session import count_machines

            spark = session()
            beating.start()
            coordinator.planners.know_machines(partial(count_machines, spark))
            replay_on_spark(
                spark,
                coordinator,
                source,
                batch_rows=options.batch_rows,
                after=committed,
                until=stopping.is_set,
            )
    finally:
        ended.set()
        if beating.ident is not None:
            beating.join()
        coordinator.close()


def beat(path: Path, ended: threading.Event) -> None:
    """Say every second that the pipeline lives."""
    while not ended.is_set():
        with contextlib.suppress(OSError):
            path.touch()
        ended.wait(BEATS_S)
    path.unlink(missing_ok=True)
