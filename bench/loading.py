"""Loading: subscriptions from a JSON Lines log into the state, reopened, and what they weigh."""

from __future__ import annotations

import time

from bench.settings import Choice
from bench.tables import save_table
from bench.workload import write_log
from placewire.batch.coordinator import Coordinator
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.model.settings import Settings
from placewire.spark.replay import replay_on_spark
from placewire.spark.session import make_session
from placewire.storage.layout import StateDir

BATCH_ROWS = 500_000


def run(choice: Choice) -> None:
    """5 M subscriptions as events through Spark; then a new process's first look at them."""
    rows = []
    session = make_session("local[2]")
    for subscriptions in (1_000_000, 5_000_000):
        log = choice.folder / "subscriptions.jsonl"
        write_log(choice.workload(1, subscriptions), log)
        state = StateDir(choice.folder / f"state-{subscriptions}")
        coordinator = Coordinator(state, Settings(), identify_log(log), "shared", 2)
        started = time.perf_counter()
        replay_on_spark(
            session,
            coordinator,
            LogSource(str(log)),
            batch_rows=BATCH_ROWS,
            workers=2,
            after=lambda _: None,
        )
        loaded_s = time.perf_counter() - started
        segments = len(coordinator.latest.segments)
        coordinator.close()
        coordinator.sweep()
        on_disk = sum(
            state.file(name).stat().st_size
            for entry in coordinator.latest.segments
            for name in (entry.name, entry.dead)
            if name is not None
        )
        started = time.perf_counter()
        again = Coordinator(state, Settings(), identify_log(log), "shared", 2)
        live = sum(segment.rows.total for segment, _ in again.live.pairs())
        reopened_s = time.perf_counter() - started
        again.close()
        assert live >= subscriptions
        rows.append(
            (
                subscriptions,
                loaded_s,
                subscriptions / loaded_s,
                segments,
                reopened_s,
                on_disk / subscriptions,
            )
        )
    session.stop()
    save_table(
        "loading",
        (
            "subscriptions",
            "loaded, s",
            "subscribes/s",
            "segments",
            "reopened, s",
            "bytes a subscription",
        ),
        rows,
    )
