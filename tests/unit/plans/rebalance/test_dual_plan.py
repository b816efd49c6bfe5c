"""Two plans side by side: an older one for subscriptions that there were, until few are left."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from logs import BUILT_KINDS
from oracle import replay
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log
from placewire.cli.main import app
from placewire.demo import CityLife, write_log
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.model.settings import Settings
from placewire.plans.rebalance.rebalancer import RebalanceRule, read_rebalance
from placewire.sinks.files import FileSink
from placewire.storage.layout import StateDir
from placewire.storage.manifest import LeafPlanEntry, Manifest
from placewire.storage.runtime_files import request_plan

EAGER = read_rebalance("ps2-global")._replace(eager=True)


def nothing(manifest: Manifest, state: StateDir) -> None:
    """Nobody asks for anything."""


def run(
    folder: Path,
    *,
    rule: RebalanceRule = EAGER,
    rows: int = 40,
    life: int | None = None,
    ask: Callable[[Manifest, StateDir], None] = nothing,
    most: int | None = None,
    churn: float = 0.5,
) -> list[Manifest]:
    """Run a log, or some batches of it; what is run to the end equals the oracle."""
    log = folder / "log.jsonl"
    if not log.exists():
        write_log(CityLife(objects=420, subscriptions=160, churn=churn, seed=12), str(log))
    state = StateDir(folder / "state")
    seen: list[Manifest] = []
    left = True
    while left:
        left = False
        coordinator = Coordinator(
            state, Settings(), identify_log(log), "kdt", 3, 60, rebalance=rule
        )
        sink = FileSink(state, with_data=True)
        sink.deliver(coordinator.latest)
        for number, manifest in enumerate(replay_log(coordinator, LogSource(str(log)), rows, 3)):
            sink.deliver(manifest)
            coordinator.delivered = manifest.batch
            coordinator.collect_garbage()
            seen.append(manifest)
            ask(manifest, state)
            if len(seen) == most:
                break
            if number + 1 == life:
                left = True
                break
        coordinator.close()
    if most is None:
        expected = replay(log.read_bytes(), kinds=BUILT_KINDS, with_data=True).results
        found = sink.results.read_bytes().splitlines()
        assert [json.loads(line) for line in found] == expected
    return seen


def test_only_the_global_adjustment_keeps_two_plans() -> None:
    assert read_rebalance("ps2-global").dual
    assert not read_rebalance("auto").dual
    assert not read_rebalance("sstd").dual


@pytest.mark.parametrize("life", [None, 1, 3])
def test_old_subscriptions_go_by_the_old_plan_until_few_are_left(
    tmp_path: Path, life: int | None
) -> None:
    seen = run(tmp_path, life=life)
    began = ended = 0
    for before, after in pairwise(seen):
        was, now = before.leaf_plan.previous, after.leaf_plan.previous
        names = {entry.name for entry in after.segments}
        if now is not None:
            assert set(now.segments) <= names
            assert now.subscriptions > 0
        if now is not None and was is None:
            began += 1
            assert before.leaf_plan.next.keeps_previous
            assert now.version == before.leaf_plan.version == after.leaf_plan.version - 1
            assert now.file == before.leaf_plan.file
            assert after.leaf_plan.file == before.leaf_plan.next.file
        if was is not None and now is None:
            ended += 1
            assert after.leaf_plan.version == before.leaf_plan.version
        if was is not None and now is not None:
            assert now.version == was.version
            assert set(now.segments) <= set(was.segments)
            assert before.leaf_plan.next is None
    assert began > 1
    assert ended > 0


@pytest.mark.parametrize("life", [pytest.param(None, marks=pytest.mark.slow), 2])
def test_who_comes_just_before_the_change_is_known_to_the_older_plan(
    tmp_path: Path, life: int | None
) -> None:
    """Every batch has subscriptions to words of their own, and objects with those of before."""
    lines = [
        event("subscribe", f"s{n}", n, region=AROUND, where=f"old{n % 50}") for n in range(900)
    ]
    for batch in range(30):
        first = 900 + 40 * batch
        for n in range(first, first + 20):
            lines.append(event("subscribe", f"s{n}", n, region=AROUND, where=f"word{n}"))
        for n in range(first + 20, first + 40):
            text = f"old{n % 50} word{n - 20} word{n - 60} word{n - 100}"
            place = {"lon": (n * 37 % 160) - 80, "lat": (n * 53 % 80) - 40}
            lines.append(event("object", f"o{n}", n, **place, text=text))
    (tmp_path / "log.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    seen = run(tmp_path, rows=40, life=life)
    assert sum(manifest.leaf_plan.previous is not None for manifest in seen) > 5


AROUND = {"box": [-90, -60, 90, 60]}


def event(kind: str, name: str, seconds: int, **fields: Any) -> bytes:
    ts = f"2026-03-01T12:{seconds // 60:02d}:{seconds % 60:02d}Z"
    told = {"type": kind, "id": name, "ts": ts} | fields
    if kind == "subscribe":
        told["kind"] = "boolean"
    return json.dumps(told).encode()


def test_a_plan_or_workers_by_hand_end_it(tmp_path: Path) -> None:
    asked: list[LeafPlanEntry] = []

    def ask(manifest: Manifest, state: StateDir) -> None:
        if manifest.leaf_plan.previous is not None and len(asked) < 2:
            request_plan(state, **({"workers": 5} if asked else {"plan": "qt"}))
            asked.append(manifest.leaf_plan)

    seen = run(tmp_path, ask=ask, churn=0.1)
    assert len(asked) == 2
    whys = [m.leaf_plan.why for m in seen]
    assert "qt, requested" in whys
    assert seen[whys.index("qt, requested")].leaf_plan.previous is None
    assert seen[-1].leaf_plan.workers == 5


def test_status_and_explain_tell_of_it(tmp_path: Path) -> None:
    def stop(manifest: Manifest, state: StateDir) -> None:
        if manifest.leaf_plan.previous is not None and not told:
            told.append(manifest)

    told: list[Manifest] = []
    seen: list[Manifest] = []
    while not told:
        seen = run(tmp_path, ask=stop, most=1, churn=0.1)
        assert seen
    plan = told[0].leaf_plan
    state = str(tmp_path / "state")
    shown = CliRunner().invoke(app, ["status", "--state", state])
    assert f"and kdt, version {plan.previous.version}, for" in shown.output
    facts = json.loads(CliRunner().invoke(app, ["status", "--state", state, "--json"]).stdout)
    beside = facts["plans"]["boolean"]["beside"]
    assert beside == {
        name: getattr(plan.previous, name) for name in ("method", "version", "subscriptions")
    }
    assert sum(facts["workers"]["boolean"]["objects"]) > 0
    live = replay((tmp_path / "log.jsonl").read_bytes(), kinds=BUILT_KINDS).results
    pair = next(r for r in live if r["type"] == "match")
    words = ["explain", "--state", state, "--subscription", pair["subscription"], "--json"]
    words += ["--object", json.dumps({"id": "o", "lon": 0, "lat": 0, "text": "x"})]
    explained = CliRunner().invoke(app, words)
    assert explained.exit_code in (0, 1), explained.output
    assert json.loads(explained.stdout)["plan"]["version"] in (
        plan.version,
        plan.previous.version,
    )
