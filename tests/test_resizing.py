"""Another number of workers: prepared by one commit, in force with the next, killed at any moment.

Workers are changed in three ways: by hand, by a range that follows the load, and on resuming.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from oracle import replay
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log
from placewire.batch.match import match_routed
from placewire.demo import CityLife, write_log
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.model.settings import Settings
from placewire.plans.rebalance.elastic import Elastic, WorkerRange
from placewire.sinks.files import FileSink
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest, WorkersEntry, committed_batches, read_latest
from placewire.storage.notes import ask_plan
from test_law import BUILT_KINDS
from test_moves import kill_at

PLAN = "boolean=kdt,nearest=dkm,relevant=prefix"
ASKED = {4: 5, 8: 2, 12: 7}  # after which batch how many workers are asked for by hand
MOMENTS = [
    ("placewire.plans.boolean.planner", "write_plan", "before", 3),
    ("placewire.plans.boolean.planner", "write_plan", "after", 3),
    ("placewire.segments.compaction", "write_segment", "before", 4),
    ("placewire.segments.compaction", "write_segment", "after", 5),
    ("placewire.segments.compaction", "Heirs.take", "before", 3),
    ("placewire.segments.compaction", "Heirs.take", "after", 4),
    ("placewire.batch.match", "fetch", "before", 1),
    ("placewire.batch.match", "prefetch_rewrites", "before", 1),
    ("placewire.batch.match", "prefetch_rewrites", "after", 3),
    ("placewire.plans.planners", "Planners.prepare", "after", 2),
    ("placewire.batch.resize", "Resizer.go_over", "after", 8),
    *(
        ("placewire.batch.coordinator", "write_manifest", when, count)
        for count in (6, 7, 8)
        for when in ("before", "after")
    ),
    ("placewire.batch.coordinator", "sweep", "before", 2),
    ("placewire.batch.coordinator", "sweep", "after", 2),
]


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
                ask_plan(state, workers=ASKED[manifest.batch])
            if way == "resuming" and (manifest.batch + 1) % 5 == 0:
                left = True
                break
        coordinator.close()
        if not left:
            return sink.results.read_bytes(), manifests


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("resizing") / "log.jsonl"
    write_log(CityLife(objects=420, subscriptions=160, churn=0.5, seed=11), str(path))
    return path


WAYS = ["hand", "range", "resuming"]


@pytest.mark.parametrize("way", WAYS)
def test_versions_never_go_back_and_results_stay(
    way: str, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Elastic, "wanted", follow)
    results, manifests = play(log, StateDir(tmp_path / "state"), way)
    expected = replay(log.read_bytes(), kinds=BUILT_KINDS, with_data=True).results
    assert [json.loads(line) for line in results.splitlines()] == expected
    assert len({manifest.plan["workers"] for manifest in manifests}) > 2
    for plan in ("plan", "near_plan", "relevant_plan"):
        versions = [getattr(manifest, plan)["version"] for manifest in manifests]
        assert versions == sorted(versions), plan
        for one, other in pairwise(manifests):
            before, after = getattr(one, plan), getattr(other, plan)
            if before["workers"] != after["workers"]:
                assert before["version"] < after["version"], plan


def test_a_plan_for_other_workers_is_named_before_it_is_in_force(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One commit names the next plan and the rewrites; workers fetch; the next commit has both."""
    fetched: dict[int, int] = {}

    def noting(context, worker, parts):  # type: ignore[no-untyped-def]
        pieces, did = match_routed(context, worker, parts)
        fetched[context.batch] = fetched.get(context.batch, 0) + sum(s.fetched for s in did)
        return pieces, did

    monkeypatch.setattr("placewire.batch.local_runner.match_routed", noting)
    _, manifests = play(log, StateDir(tmp_path / "state"), "hand")
    switches = [
        (one, other)
        for one, other in pairwise(manifests)
        if one.plan["workers"] != other.plan["workers"]
    ]
    assert [other.plan["workers"] for _, other in switches] == list(ASKED.values())
    for one, other in switches:
        assert one.plan["next_workers"] == other.plan["workers"]
        assert one.plan["next"] == other.plan["file"]
        assert one.rewrites
        assert set(one.rewrites.values()) <= {entry.name for entry in other.segments}
        assert not set(one.rewrites) & {entry.name for entry in other.segments}
        assert "next_workers" not in other.plan
        assert not other.rewrites
        assert other.plan["method"] == "kdt"  # no stripes in between
        assert fetched[other.batch] > 0
    still = [manifest.batch for manifest in manifests if manifest not in [b for _, b in switches]]
    assert not any(fetched.get(batch) for batch in still)


def in_a_process(target: Callable[..., None], *arguments: object) -> None:
    """Run a function that forks, away from the threads of this process."""
    process = multiprocessing.get_context("spawn").Process(target=target, args=arguments)
    process.start()
    process.join(1_800)
    assert process.exitcode == 0


def kill_and_resume(log: Path, folder: Path, way: str) -> None:
    """Every moment, each in a process of its own."""
    Elastic.wanted = follow  # type: ignore[method-assign, assignment]
    expected, manifests = play(log, StateDir(folder / "still"), way)
    assert expected.count(b"\n") > 100
    last = manifests[-1].batch
    # On resuming, plans are made for the new workers at once: nothing is prepared.
    some = [moment for moment in MOMENTS if way != "resuming" or "engine.p" not in moment[0]]
    for number, moment in enumerate(some):
        state = StateDir(folder / f"{way}{number}")
        child = os.fork()
        if child == 0:
            kill_at(*moment)
            play(log, state, way)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"{way} {moment}: was not killed"
        assert committed_batches(state)[-1] < last, f"{way} {moment}: killed at the end"
        found, _ = play(log, state, way)
        assert found == expected, f"{way} {moment}: other results"


@pytest.mark.parametrize("way", WAYS)
def test_killed_at_any_moment_of_a_resize(way: str, log: Path, tmp_path: Path) -> None:
    in_a_process(kill_and_resume, log, tmp_path, way)
