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
from placewire.batch.resize import Elastic
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
    assert len({manifest.leaf_plan.workers for manifest in manifests}) > 2
    for kind in ("boolean", "nearest", "relevant"):
        versions = [manifest.plans[kind].version for manifest in manifests]
        assert versions == sorted(versions), kind
        for one, other in pairwise(manifests):
            before, after = one.plans[kind], other.plans[kind]
            if before.workers != after.workers:
                assert before.version < after.version, kind


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
        if one.leaf_plan.workers != other.leaf_plan.workers
    ]
    assert [other.leaf_plan.workers for _, other in switches] == list(ASKED.values())
    for one, other in switches:
        assert one.leaf_plan.next.workers == other.leaf_plan.workers
        assert one.leaf_plan.next.file == other.leaf_plan.file
        assert one.rewrites
        assert set(one.rewrites.values()) <= {entry.name for entry in other.segments}
        assert not set(one.rewrites) & {entry.name for entry in other.segments}
        assert other.leaf_plan.next is None
        assert not other.rewrites
        assert other.leaf_plan.method == "kdt"  # no stripes in between
        assert fetched[other.batch] > 0
    still = [manifest.batch for manifest in manifests if manifest not in [b for _, b in switches]]
    assert not any(fetched.get(batch) for batch in still)
