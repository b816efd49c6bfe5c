"""Replays whose plan changes."""

from __future__ import annotations

from pathlib import Path

from placewire.engine.coordinator import Coordinator
from placewire.engine.local import replay_log
from placewire.engine.log import identify_log
from placewire.engine.reading import LogSource
from placewire.engine.rebalancing import read_rebalance
from placewire.engine.sink import FileSink
from placewire.model.settings import Settings
from placewire.state.layout import StateDir


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
    version = coordinator.latest.plan["version"]
    coordinator.close()
    return sink.results.read_bytes(), version
