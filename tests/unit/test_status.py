"""`placewire status`: what a state tells of its plans, workers and leaves."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from peers import need_peers
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log, run_blocks
from placewire.cli.main import app
from placewire.demo import CityLife, write_log
from placewire.ingest.log import BlockRef, batch_end, identify_log
from placewire.ingest.sources import LogSource
from placewire.model.errors import Unusable
from placewire.model.kinds import BOOLEAN, NEAREST
from placewire.model.settings import Settings
from placewire.plans.messages import BatchContext, Ran
from placewire.plans.rebalance.rebalancer import RebalanceRule
from placewire.plans.rebalance.signals import BY_LEAF
from placewire.storage.arrays import open_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import read_latest


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state whose plan was adjusted, and one whose objects are matched where they are read."""
    folder = tmp_path_factory.mktemp("status")
    log = folder / "log.jsonl"
    write_log(CityLife(objects=6_000, subscriptions=600, seed=5), log)
    for plan in ("kdt", "shared"):
        coordinator = Coordinator(
            StateDir(folder / plan),
            Settings(),
            identify_log(log),
            plan,
            3,
            1_000,
            rebalance=RebalanceRule("sstd", eager=True),
        )
        for manifest in replay_log(coordinator, LogSource(str(log)), 500, 3):
            # Right after a change there are no counts by leaf yet.
            if manifest.batch >= 8 and manifest.leaf_plan.changed != manifest.batch:
                break
        coordinator.close()
    return folder


def test_what_is_counted_by_leaf_adds_up_to_what_the_worker_did(tmp_path: Path) -> None:
    """Bytes and seconds too, although leaves are not timed one by one."""
    log = tmp_path / "log.jsonl"
    write_log(CityLife(objects=3_000, subscriptions=300, seed=5), log)
    state = StateDir(tmp_path / "state")
    coordinator = Coordinator(state, Settings(), identify_log(log), "kdt", 3, 600)
    seen: list[int] = []

    def check(context: BatchContext, refs: list[BlockRef]) -> Ran:
        ran = run_blocks(context, refs)
        for summary in ran.workers:
            if summary.kind == BOOLEAN and summary.file:
                arrays = open_arrays(state.file(summary.file)).arrays
                counts = dict(zip(BY_LEAF, arrays["load.counts"], strict=True))
                for name, by_leaf in counts.items():
                    assert by_leaf.sum() == pytest.approx(getattr(summary, name)), name
                assert (counts["bytes"] > 8 * counts["objects"]).all()
                assert (counts["busy_s"] > 0).all()
                seen.append(arrays["load.leaf"].size)
        return ran

    while refs := LogSource(str(log)).plan(coordinator.latest.offset, 400, 3):
        end = batch_end(refs)
        coordinator.step(coordinator.latest.batch + 1, end, partial(check, refs=refs))
    coordinator.close()
    assert len(seen) > 10
    assert max(seen) > 1


def test_dealt_subscriptions_are_counted_by_worker(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    write_log(CityLife(objects=3_000, subscriptions=600, seed=5), log)
    plan = "nearest=dkm,relevant=prefix"
    coordinator = Coordinator(
        StateDir(tmp_path / "state"), Settings(), identify_log(log), plan, 3, 600
    )
    for _ in replay_log(coordinator, LogSource(str(log)), 500, 3):
        pass
    coordinator.close()
    told = json.loads(ask("--state", str(tmp_path / "state"), "--json").stdout)
    assert told["history"]
    for kind, least in (("nearest", 1.0), ("relevant", 1.0)):
        held = told["workers"][kind]["subscriptions"]
        assert len(held) == 3
        # Each `nearest` one has one worker; postings of a `relevant` one may have several.
        assert sum(held) >= least * told["subscriptions"][kind] - 2
        assert max(held) < told["subscriptions"][kind]
    # What has expired is not live, but held until segments are merged.
    manifest = read_latest(StateDir(tmp_path / "state"))
    assert manifest is not None
    kept = sum(entry.rows - entry.ended for entry in manifest.segments if entry.kind == NEAREST)
    assert told["subscriptions"]["nearest"] < kept
    assert sum(told["workers"]["nearest"]["subscriptions"]) <= kept + 2


def ask(*words: str) -> Result:
    return CliRunner().invoke(app, ["status", *words])


def test_it_shows_plans_workers_and_leaves(states: Path) -> None:
    said = ask("--state", str(states / "kdt")).stdout
    assert " objects, " in said
    assert "plan boolean=kdt: version" in said
    assert "adjusted after batch" in said
    assert "boolean subscriptions, by worker in batch " in said
    assert "x the mean load" in said


def test_as_json_it_adds_up(states: Path) -> None:
    told = json.loads(ask("--state", str(states / "kdt"), "--json", "--leaves", "1000").stdout)
    assert told["objects"] > 3_000
    assert told["plans"]["boolean"]["version"] > 1
    workers = told["workers"]["boolean"]
    assert {len(workers[name]) for name in ("objects", "candidates", "busy_s")} == {3}
    assert sum(workers["candidates"]) >= sum(workers["matches"]) > 0
    assert told["imbalance"] >= 1.0
    held = sum(leaf["subscriptions"] for leaf in told["leaves"])
    assert held >= sum(workers["subscriptions"]) * 0.99
    assert sum(workers["subscriptions"]) > 0.9 * told["subscriptions"]["boolean"]
    assert max(workers["subscriptions"]) <= 1.01 * told["subscriptions"]["boolean"]
    for name in ("objects", "candidates", "matches", "bytes", "busy_s"):
        # Older batches fade: what was done by leaf lately is more than the last batch's.
        assert sum(leaf[name] for leaf in told["leaves"]) > 0.99 * sum(workers[name]) > 0
    assert told["history"][-1]["subscriptions"] == workers["subscriptions"]
    west, south, east, north = told["leaves"][0]["box"]
    assert -180 <= west < east <= 180
    assert -90 <= south < north <= 90


def test_metrics_are_lines_of_a_name_and_a_number(states: Path) -> None:
    said = ask("--state", str(states / "kdt"), "--metrics").stdout
    assert "placewire_objects_total " in said
    for name in ("subscriptions", "objects", "candidates", "matches", "bytes", "busy_s"):
        assert f'placewire_worker_{name}{{kind="boolean",worker="2"}}' in said
        assert f'placewire_leaf_{name}{{leaf="' in said
    for line in said.splitlines():
        if not line.startswith("# "):
            name, value = line.rsplit(" ", 1)
            assert name.startswith("placewire_")
            float(value)


@pytest.mark.slow  # only `make test-rest` installs matplotlib
def test_the_map_is_a_picture(states: Path, tmp_path: Path) -> None:
    need_peers("matplotlib")
    assert ask("--state", str(states / "kdt"), "--map", str(tmp_path / "m.png")).exit_code == 0
    assert (tmp_path / "m.png").read_bytes()[1:4] == b"PNG"


def test_a_plan_that_does_not_cut_has_no_leaves(states: Path, tmp_path: Path) -> None:
    told = json.loads(ask("--state", str(states / "shared"), "--json").stdout)
    assert "leaves" not in told
    found = ask("--state", str(states / "shared"), "--map", str(tmp_path / "m.png"))
    assert isinstance(found.exception, Unusable)
    assert "no load per leaf" in str(found.exception)


def test_what_is_no_state_is_told(tmp_path: Path) -> None:
    for root, said in ((tmp_path / "none", "does not exist"), (tmp_path, "is not a placewire")):
        found = ask("--state", str(root))
        assert isinstance(found.exception, Unusable)
        assert said in str(found.exception)
