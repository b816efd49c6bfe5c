"""A run killed at any moment of a change of workers resumes with the same results."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from crashes import kill_at
from placewire.batch.resize import Elastic
from placewire.storage.layout import StateDir
from placewire.storage.manifest import committed_batches
from resizes import WAYS, follow, play, write_resize_log

MOMENTS = [
    ("placewire.plans.boolean.planner", "write_plan", "before", 3),
    ("placewire.plans.boolean.planner", "write_plan", "after", 3),
    ("placewire.segments.compaction", "write_segment", "before", 4),
    ("placewire.segments.compaction", "write_segment", "after", 5),
    ("placewire.segments.compaction", "Rewrites.take", "before", 3),
    ("placewire.segments.compaction", "Rewrites.take", "after", 4),
    ("placewire.batch.match", "fetch", "before", 1),
    ("placewire.batch.match", "prefetch_rewrites", "before", 1),
    ("placewire.batch.match", "prefetch_rewrites", "after", 3),
    ("placewire.plans.planners", "Planners.prepare", "after", 2),
    ("placewire.batch.resize", "Resizer.switch", "after", 8),
    *(
        ("placewire.batch.coordinator", "write_manifest", when, count)
        for count in (6, 7, 8)
        for when in ("before", "after")
    ),
    ("placewire.batch.coordinator", "collect_garbage", "before", 2),
    ("placewire.batch.coordinator", "collect_garbage", "after", 2),
]


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
    prepared = (
        "placewire.plans.boolean.planner",
        "placewire.plans.planners",
        "placewire.batch.match",
    )
    some = [moment for moment in MOMENTS if way != "resuming" or moment[0] not in prepared]
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


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_resize_log(tmp_path_factory.mktemp("resizing") / "log.jsonl")


@pytest.mark.parametrize("way", WAYS)
def test_killed_at_any_moment_of_a_resize(way: str, log: Path, tmp_path: Path) -> None:
    in_a_process(kill_and_resume, log, tmp_path, way)
