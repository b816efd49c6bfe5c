"""A run that is killed at any moment of a change of plan goes on with the same results."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from logs import BUILT_KINDS
from oracle import replay
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log
from placewire.batch.resize import WorkerRange
from placewire.cli.main import app
from placewire.demo import CityLife, write_log
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.model.errors import Unusable
from placewire.model.settings import Settings
from placewire.plans.boolean.methods import METHODS
from placewire.sinks.files import FileSink
from placewire.storage.layout import StateDir
from placewire.storage.runtime_files import REQUEST_FILE, read_request, request_plan
from plan_changes import play

SLOW = pytest.mark.slow


def run_asking(
    folder: Path, plan: str, life: int | None, ask: Callable[[StateDir], object]
) -> list[Coordinator]:
    """Run a log whose batches are few events; every third somebody asks for something.

    It is resumed after `life` batches, and its results are those of the oracle. Gives all that
    coordinated it.
    """
    log = folder / "log.jsonl"
    write_log(CityLife(objects=420, subscriptions=160, churn=0.5, seed=12), str(log))
    state = StateDir(folder / "state")
    coordinators, left = [], True
    while left:
        coordinator = Coordinator(state, Settings(), identify_log(log), plan, 3, 60)
        coordinators.append(coordinator)
        sink = FileSink(state, with_data=True)
        sink.deliver(coordinator.latest)
        left = False
        for number, manifest in enumerate(replay_log(coordinator, LogSource(str(log)), 15, 3)):
            sink.deliver(manifest)
            if manifest.batch % 3 == 0:
                ask(state)
            if number + 1 == life:
                left = True
                break
        coordinator.close()
    expected = replay(log.read_bytes(), kinds=BUILT_KINDS, with_data=True)
    assert [json.loads(line) for line in sink.results.read_bytes().splitlines()] == expected.results
    return coordinators


@pytest.mark.parametrize("plan", ["shared", "kdt", "auto"])
@pytest.mark.parametrize("life", [pytest.param(None, marks=SLOW), pytest.param(1, marks=SLOW), 4])
def test_plans_asked_for_by_hand_change_no_result(
    plan: str, life: int | None, tmp_path: Path
) -> None:
    wanted = cycle([*METHODS, "shared", "nothing of the kind"])
    ended = run_asking(tmp_path, plan, life, lambda state: request_plan(state, next(wanted)))
    if life is None:
        assert ended[-1].latest.leaf_plan.version > 6
    elif life > 1:
        assert len({one.latest.leaf_plan.method or "shared" for one in ended}) > 4


@pytest.mark.parametrize(
    "plan", ["kdt", "shared", "boolean=qt,nearest=dkm,relevant=prefix", "nearest=sstd"]
)
@pytest.mark.parametrize("life", [pytest.param(None, marks=SLOW), 4])
def test_workers_come_and_go_without_a_trace(plan: str, life: int | None, tmp_path: Path) -> None:
    numbers = cycle([7, 1, 2, 12, 3])
    ended = run_asking(
        tmp_path, plan, life, lambda state: request_plan(state, workers=next(numbers))
    )
    if life is not None:
        assert len({one.planners.workers for one in ended}) > 3


def test_a_plan_is_asked_for_by_a_command(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    write_log(CityLife(objects=200, subscriptions=50, seed=12), str(log))
    state = StateDir(tmp_path / "state")
    play(log, state, "shared", "off")

    def ask(*words: str) -> Result:
        return CliRunner().invoke(app, ["rebalance", "--state", str(state.root), *words])

    assert "takes effect two batches after" in ask("--plan", "qt", "--wait", "0").stdout
    asked = read_request(state)
    assert asked is not None
    assert asked.plan == "qt"
    assert "12 workers is requested" in ask("--workers", "12", "--wait", "0").stdout
    assert isinstance(ask().exception, Unusable)
    # Who thinks better of it before anybody took the note up asks for what there is.
    assert "3 workers is requested" in ask("--workers", "3", "--wait", "0").stdout
    asked = read_request(state)
    assert asked is not None
    assert asked.workers == 3
    (state.root / REQUEST_FILE).unlink()
    assert "already at 3 workers" in ask("--workers", "3", "--wait", "0").stdout
    # A saved plan is for its own number of workers.
    survey = ["plan", "--objects", str(log), "--subscriptions", str(log), "--workers", "3"]
    made = CliRunner().invoke(app, [*survey, "--plan", "kdt", "--out", str(tmp_path)])
    assert made.exit_code == 0, made.output
    state = StateDir(tmp_path / "saved")
    play(log, state, str(tmp_path / "kdt.plan"), "off")
    refused = ask("--workers", "12").exception
    assert isinstance(refused, Unusable)
    assert "the saved plan is for 3, got 12" in str(refused)
    state = StateDir(tmp_path / "state")
    found = ask("--plan", "quite another")
    assert isinstance(found.exception, Unusable)
    assert "plan: must be one of grid" in str(found.exception)
    (state.root / REQUEST_FILE).write_bytes(b"{")
    assert read_request(state) is None
    # Two wishes do not get into each other's way.
    ask("--plan", "qt", "--wait", "0")
    ask("--workers", "12", "--wait", "0")
    asked = read_request(state)
    assert asked is not None
    assert asked.wish() == {"plan": "qt", "workers": 12}
    shown = CliRunner().invoke(app, ["status", "--state", str(state.root)])
    assert "plan qt and workers 12 are requested: they take effect" in shown.stdout


def test_a_plan_and_workers_by_hand_come_together(tmp_path: Path) -> None:
    goes_on(tmp_path, "kdt", 4, 12)
    request_plan(StateDir(tmp_path / "state"), "qt")
    request_plan(StateDir(tmp_path / "state"), workers=3)
    again = goes_on(tmp_path, "kdt", 4, 4).planners
    assert (again.workers, again.leaf.leaves_name) == (3, "qt")
    shown = CliRunner().invoke(app, ["status", "--state", str(tmp_path / "state")])
    assert "plan boolean=qt: version" in shown.stdout


def goes_on(
    folder: Path, plan: str, workers: int | WorkerRange, batches: int, sample: int = 300
) -> Coordinator:
    """Some more batches of a log of city life; gives who coordinated them."""
    log = folder / "log.jsonl"
    if not log.exists():
        write_log(CityLife(objects=3_000, subscriptions=300, seed=12), str(log))
    state = StateDir(folder / "state")
    coordinator = Coordinator(state, Settings(), identify_log(log), plan, workers, sample)
    for _ in zip(range(batches), replay_log(coordinator, LogSource(str(log)), 60), strict=False):
        pass
    coordinator.close()
    return coordinator


def test_other_workers_on_resume_have_a_plan_at_once(tmp_path: Path) -> None:
    assert goes_on(tmp_path, "kdt", 4, 12).planners.leaf.leaves_name == "kdt"
    again = goes_on(tmp_path, "kdt", 3, 2).planners
    assert (again.workers, again.leaf.leaves_name) == (3, "kdt")
    request_plan(StateDir(tmp_path / "state"), workers=5)
    again = goes_on(tmp_path, "kdt", 3, 3).planners
    assert (again.workers, again.leaf.leaves_name) == (5, "kdt")


def test_a_note_is_heeded_once(tmp_path: Path) -> None:
    goes_on(tmp_path, "kdt", 4, 12)
    request_plan(StateDir(tmp_path / "state"), "qt")
    assert goes_on(tmp_path, "kdt", 4, 3).planners.leaf.leaves_name == "qt"
    assert goes_on(tmp_path, "agrid", 2, 4).planners.leaf.leaves_name == "agrid"


def test_a_plan_by_hand_outlives_a_change_of_workers(tmp_path: Path) -> None:
    goes_on(tmp_path, "kdt", 4, 12)
    request_plan(StateDir(tmp_path / "state"), "qt")
    goes_on(tmp_path, "kdt", 4, 3)
    request_plan(StateDir(tmp_path / "state"), workers=3)
    again = goes_on(tmp_path, "kdt", 4, 3).planners
    assert (again.workers, again.leaf.leaves_name) == (3, "qt")


def test_workers_by_hand_stay_whatever_the_range(tmp_path: Path) -> None:
    goes_on(tmp_path, "kdt", WorkerRange(2, 4), 12)
    request_plan(StateDir(tmp_path / "state"), workers=7)
    assert goes_on(tmp_path, "kdt", WorkerRange(2, 4), 20).planners.workers == 7


@pytest.mark.parametrize("workers", [-3, 100_000])
def test_a_note_beyond_reason_is_ignored(workers: int, tmp_path: Path) -> None:
    goes_on(tmp_path, "kdt", 4, 2)
    (tmp_path / "state" / REQUEST_FILE).write_text(json.dumps({"id": "x", "workers": workers}))
    assert goes_on(tmp_path, "kdt", 4, 3).planners.workers == 4


def test_damaged_counts_are_counted_anew(tmp_path: Path) -> None:
    goes_on(tmp_path, "kdt", 4, 20)
    for path in (tmp_path / "state" / "files").glob("*-loads-*"):
        path.write_bytes(path.read_bytes()[:100])
    assert goes_on(tmp_path, "kdt", 4, 5).latest.batch == 24
