"""A run killed at any moment of a change of plan resumes with the same results."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

from crashes import kill_at
from placewire.demo import CityLife, write_log
from placewire.storage.layout import StateDir
from plan_changes import play

MOMENTS = [
    ("placewire.plans.boolean.planner", "write_plan", "before", 2),
    ("placewire.plans.rebalance.change", "write_plan", "before", 1),
    ("placewire.plans.rebalance.change", "write_plan", "after", 1),
    ("placewire.batch.coordinator", "write_manifest", "before", 4),
    ("placewire.batch.coordinator", "write_manifest", "after", 4),
    ("placewire.batch.coordinator", "write_manifest", "before", 5),
    ("placewire.batch.coordinator", "write_manifest", "after", 5),
    ("placewire.batch.match", "fetch", "before", 1),
    ("placewire.batch.match", "fetch", "after", 3),
    ("placewire.plans.rebalance.signals", "write_arrays", "after", 3),
    ("placewire.batch.coordinator", "collect_garbage", "after", 1),
]


def kill_and_resume(log: Path, folder: Path) -> None:
    """Every moment for two plans, each in a process of its own."""
    expected, _ = play(log, StateDir(folder / "still"), "shared", "off")
    assert expected.count(b"\n") > 100
    for plan, rebalance in (("kdt", "sstd"), ("qt", "ps2-global")):
        undisturbed, version = play(log, StateDir(folder / plan), plan, rebalance)
        assert undisturbed == expected
        assert version > 2
        for number, moment in enumerate(MOMENTS if plan == "kdt" else MOMENTS[2:5]):
            state = StateDir(folder / f"{plan}{number}")
            child = os.fork()
            if child == 0:
                kill_at(*moment)
                play(log, state, plan, rebalance)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            assert os.WIFSIGNALED(status), f"{plan} {moment}: was not killed"
            found, _ = play(log, state, plan, rebalance)
            assert found == expected, f"{plan} {moment}: other results"


def test_killed_at_any_moment_of_a_move(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    write_log(CityLife(objects=420, subscriptions=160, churn=0.5, seed=11), str(log))
    process = multiprocessing.get_context("spawn").Process(
        target=kill_and_resume, args=(log, tmp_path)
    )
    process.start()
    process.join(1_800)
    assert process.exitcode == 0
