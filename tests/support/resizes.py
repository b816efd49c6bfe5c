"""Replays that change their number of workers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log
from placewire.batch.resize import Elastic, WorkerRange
from placewire.demo import CityLife, write_log
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.model.settings import Settings
from placewire.sinks.files import FileSink
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest, WorkersEntry, read_latest
from placewire.storage.runtime_files import request_plan

PLAN = "boolean=kdt,nearest=dkm,relevant=prefix"
ASKED = {4: 5, 8: 2, 12: 7}  # after which batch how many workers are requested


def follow(elastic: Elastic, history: Sequence[WorkersEntry], workers: int) -> int:
    """A load that asks for other workers every third batch."""
    batch = max((entry.batch for entry in history), default=0)
    elastic.why = "as the test has it"
    return (3, 5, 2, 7)[batch // 3 % 4]


def play(log: Path, state: StateDir, way: str) -> tuple[bytes, list[Manifest]]:
    """Run what is left of a log, workers changing; gives the results and this run's manifests."""
    manifests: list[Manifest] = []
    while True:
        latest = read_latest(state) if state.root.exists() else None
        done = 0 if latest is None else latest.batch + 1
        workers: int | WorkerRange = WorkerRange(1, 7) if way == "range" else 3
        if way == "resuming":
            workers = (3, 5, 2, 7)[done // 5 % 4]
        coordinator = Coordinator(state, Settings(), identify_log(log), PLAN, workers, 60)
        sink = FileSink(state, with_data=True)
        sink.deliver(coordinator.latest)
        left = False
        for manifest in replay_log(coordinator, LogSource(str(log)), 40, 3):
            manifests.append(manifest)
            sink.deliver(manifest)
            coordinator.delivered = manifest.batch
            if way == "hand" and manifest.batch in ASKED:
                request_plan(state, workers=ASKED[manifest.batch])
            if way == "resuming" and (manifest.batch + 1) % 5 == 0:
                left = True
                break
        coordinator.close()
        if not left:
            return sink.results.read_bytes(), manifests


def write_resize_log(path: Path) -> Path:
    write_log(CityLife(objects=420, subscriptions=160, churn=0.5, seed=11), str(path))
    return path


WAYS = ["hand", "range", "resuming"]
