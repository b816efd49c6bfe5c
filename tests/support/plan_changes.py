"""Replays whose plan changes."""

from __future__ import annotations

from pathlib import Path

from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.model.settings import Settings
from placewire.plans.rebalance.rebalancer import read_rebalance
from placewire.sinks.files import FileSink
from placewire.storage.layout import StateDir


def play(log: Path, state: StateDir, plan: str, rebalance: str) -> tuple[bytes, int]:
    """Run what is left of a log; gives the results and the version of the plan."""
    coordinator = Coordinator(
        state,
        Settings(),
        identify_log(log),
        plan,
        3,
        60,
        rebalance=read_rebalance(rebalance)._replace(eager=True),
    )
    sink = FileSink(state, with_data=True)
    sink.deliver(coordinator.latest)
    for manifest in replay_log(coordinator, LogSource(str(log)), 40, 3):
        sink.deliver(manifest)
        coordinator.delivered = manifest.batch
    version = coordinator.latest.leaf_plan.version
    coordinator.close()
    return sink.results.read_bytes(), version
