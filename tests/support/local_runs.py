"""Replay a log in this process and compare the results with the oracle."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

from logs import BUILT_KINDS
from oracle import replay
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log
from placewire.batch.resize import WorkerRange
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.model.kinds import check_buffer
from placewire.model.settings import parse_settings
from placewire.plans.planners import USUAL_REBALANCE
from placewire.plans.rebalance.rebalancer import RebalanceRule
from placewire.plans.sample.sampler import SAMPLE_EVENTS
from placewire.sinks.files import FileSink
from placewire.storage.layout import StateDir


class Run(NamedTuple):
    results: list[dict[str, Any]]
    dead: list[dict[str, Any]]
    idle_unsubscribes: int


def run_local(
    log: bytes,
    *,
    plan: str | Sequence[str],
    workers: int | WorkerRange,
    rows: int,
    sample_events: int = SAMPLE_EVENTS,
    table: dict[str, Any] | None = None,
    slice_us: int | None = None,
    life: int | None = None,
    buffer: str | Sequence[str] = "cskyband",
    rebalance: RebalanceRule = USUAL_REBALANCE,
) -> Run:
    """Replay a log in this process; with `life` a new one takes over after so many batches.

    Each takes the next of several plans and rules of buffers.
    """
    plans = cycle([plan] if isinstance(plan, str) else plan)
    buffers = cycle([buffer] if isinstance(buffer, str) else buffer)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        path.write_bytes(log)
        state = StateDir(Path(folder) / "state")
        left = True
        while left:
            coordinator = Coordinator(
                state,
                parse_settings(table or {}),
                identify_log(path),
                next(plans),
                workers,
                sample_events,
                slice_us,
                buffer=check_buffer(next(buffers)),
                rebalance=rebalance,
            )
            sink = FileSink(state, with_data=True)
            left = False
            batches = replay_log(coordinator, LogSource(str(path)), rows)
            for number, manifest in enumerate(batches):
                sink.deliver(manifest)
                if life is not None and number + 1 == life:
                    left = True
                    break
            counters = coordinator.latest.counters
            coordinator.close()
        results = [json.loads(line) for line in sink.results.read_bytes().splitlines()]
        dead = [json.loads(line) for line in sink.dead.read_bytes().splitlines()]
    assert counters.results == len(results)
    assert counters.dead_letters == len(dead)
    return Run(results, dead, counters.idle_unsubscribes)


def check_equals_oracle(log: bytes, run: Run, table: dict[str, Any] | None = None) -> None:
    expected = replay(log, kinds=BUILT_KINDS, with_data=True, settings=table)
    assert run.results == expected.results
    assert [(d["seq"], d["event"]) for d in run.dead] == [
        (d["seq"], d["event"]) for d in expected.dead
    ]
    assert run.idle_unsubscribes == expected.idle_unsubscribes
