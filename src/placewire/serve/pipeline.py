"""The pipeline process: follow the journal and commit batches, on Spark or locally.

It knows nothing of HTTP, and resumes after its last commit when it is killed.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log
from placewire.batch.resize import read_workers
from placewire.ingest.log import BlockRef
from placewire.ingest.sources import JournalSource, identify_journal
from placewire.model.settings import Settings
from placewire.plans.rebalance.rebalancer import read_rebalance
from placewire.serve.ledger.recorder import read_cursor
from placewire.storage.journal import journal_folder
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest, Offset

HEARTBEAT_S = 1.0
POLL_S = 0.005  # between polls of the journal
MAX_WAIT_S = 0.25  # an idle Spark query ticks after that


def heartbeat_path(state: StateDir) -> Path:
    """The file that a running pipeline touches, from when it accepts events."""
    return state.root / "PIPELINE"


class PipelineOptions(NamedTuple):
    """Options of the pipeline process; they affect speed, not results."""

    state: Path
    settings: Settings
    runner: str = "spark"
    plan: str = "shared"
    workers: str = "1"
    rebalance: str = "auto"
    batch_rows: int = 200_000
    master: str | None = None


def wait_for_journal(root: Path, stopping: threading.Event) -> bool:
    """Wait for the gateway to create the journal; false if stopped first."""
    mark = journal_folder(StateDir(root.absolute())) / "MARK"
    while not mark.exists():
        if stopping.wait(MAX_WAIT_S):
            return False
    return True


class JournalFollower:
    """A journal source that waits briefly for new events."""

    def __init__(
        self, journal: JournalSource, stopping: threading.Event, max_wait_s: float
    ) -> None:
        self.journal = journal
        self.stopping = stopping
        self.max_wait_s = max_wait_s

    def plan_capped(self, start: Offset, rows: int, cap: int, blocks: int) -> list[BlockRef]:
        until = time.monotonic() + self.max_wait_s
        while self.journal.waiting(start) <= 0:
            if time.monotonic() >= until or self.stopping.wait(POLL_S):
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
    """Follow the journal of a state directory until `stopping`; raises Unusable."""
    state = StateDir(options.state.absolute())
    folder = journal_folder(state)
    heartbeat_path(state).unlink(missing_ok=True)  # left by a killed pipeline
    span = read_workers(options.workers)
    coordinator = Coordinator(
        state,
        options.settings,
        identify_journal(folder),
        options.plan,
        span if span.most > span.least else span.least,
        rebalance=read_rebalance(options.rebalance),
    )

    def committed(manifest: Manifest) -> None:
        coordinator.delivered = read_cursor(state)
        after(manifest)

    ended = threading.Event()
    heartbeats = threading.Thread(
        target=send_heartbeats, args=(heartbeat_path(state), ended), daemon=True
    )
    try:
        source = JournalFollower(JournalSource(folder), stopping, MAX_WAIT_S)
        if session is None:
            heartbeats.start()
            while not stopping.is_set():
                for manifest in replay_log(coordinator, source, options.batch_rows):
                    committed(manifest)
                    if stopping.is_set():
                        break
        else:
            from placewire.spark.session import count_machines
            from placewire.spark.stages import replay_on_spark

            spark = session()
            heartbeats.start()
            coordinator.planners.set_machines(partial(count_machines, spark))
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
        if heartbeats.ident is not None:
            heartbeats.join()
        coordinator.close()


def send_heartbeats(path: Path, ended: threading.Event) -> None:
    """Touch the heartbeat file every second."""
    while not ended.is_set():
        with contextlib.suppress(OSError):
            path.touch()
        ended.wait(HEARTBEAT_S)
    path.unlink(missing_ok=True)
