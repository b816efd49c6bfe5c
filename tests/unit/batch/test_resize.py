"""Another number of workers: prepared by one commit, in force with the next, killed at any moment.

Workers are changed in three ways: by hand, by a range that follows the load, and on resuming.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from logs import BUILT_KINDS
from oracle import replay
from placewire.batch.match import match_routed
from placewire.plans.rebalance.elastic import Elastic
from placewire.storage.layout import StateDir
from resizes import ASKED, WAYS, follow, play, write_resize_log


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_resize_log(tmp_path_factory.mktemp("resizing") / "log.jsonl")


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
