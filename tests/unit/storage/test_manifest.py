"""Manifests: commits, round trips, damaged files and garbage collection."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from manifests import make_manifest
from placewire.model.errors import Unusable
from placewire.storage.layout import FORMAT, StateDir
from placewire.storage.manifest import (
    KEEP_MANIFESTS,
    Counters,
    LeafPlanEntry,
    NextPlanEntry,
    PieceEntry,
    PreviousPlanEntry,
    RowPlanEntry,
    SegmentEntry,
    collect_garbage,
    committed_batches,
    manifest_path,
    read_latest,
    read_manifest,
    write_manifest,
)


def test_manifests_come_back(state: StateDir) -> None:
    manifest = make_manifest(
        12,
        "b000000012-block0-aa.plw",
        now_us=-5,
        segments=[SegmentEntry("s", 0, 10, 3, "d")],
        pieces=[PieceEntry(0, "f", "p", "s", 4)],
        late_dead="l",
        plans={"boolean": LeafPlanEntry(name="grid", file="g", live="v", version=1)},
        counters=Counters(1, 2, 3, 4, 5),
    )
    write_manifest(state, manifest)
    assert read_manifest(state, 12) == manifest
    assert read_latest(state) == manifest
    assert manifest.file_names() == {"b000000012-block0-aa.plw", "s", "d", "f", "l", "g", "v"}


def test_a_batch_is_committed_once(state: StateDir) -> None:
    write_manifest(state, make_manifest(0))
    with pytest.raises(Unusable, match="committed by another writer"):
        write_manifest(state, make_manifest(0))


def test_the_newest_manifest_counts(state: StateDir) -> None:
    assert read_latest(state) is None
    for batch in (0, 9, 10, 1_000_000):
        write_manifest(state, make_manifest(batch))
    (state.manifests / ".000001000001.json.ab12").write_bytes(b"{")  # died while writing
    assert committed_batches(state) == [0, 9, 10, 1_000_000]
    latest = read_latest(state)
    assert latest is not None
    assert latest.batch == 1_000_000


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"format":%d}' % FORMAT, b"[]", b'{"format":"2"}', b"\xff"]
)
def test_a_broken_manifest_is_refused_in_one_line(state: StateDir, content: bytes) -> None:
    manifest_path(state, 0).write_bytes(content)
    with pytest.raises(Unusable, match="manifest 0") as caught:
        read_latest(state)
    assert "\n" not in str(caught.value)


def test_every_plan_keeps_its_files() -> None:
    """Garbage collection keeps the files of the plan, the previous one, the next and all kinds."""
    leaves = LeafPlanEntry(
        name="kdt",
        file="file",
        live="live",
        previous=PreviousPlanEntry("qt", 1, "old file", "old live", ["s"], 3),
        next=NextPlanEntry("why", "next file", 4, ["next rule", "next leaves"]),
    )
    rows = RowPlanEntry(
        name="dkm", rule="rule", circles="circles", terms="terms", leaves="leaves", live="its live"
    )
    manifest = make_manifest(0, plans={"boolean": leaves, "nearest": rows})
    assert manifest.file_names() == {
        *("file", "live", "old file", "old live", "next file", "next rule", "next leaves"),
        *("rule", "circles", "terms", "leaves", "its live"),
    }
    assert manifest.leaf_plan == leaves
    assert manifest.row_plan("nearest") == rows
    assert manifest.row_plan("relevant") == RowPlanEntry()
    assert make_manifest(0).leaf_plan == LeafPlanEntry()
    assert make_manifest(0).file_names() == set()


def test_plans_come_back_by_type(state: StateDir) -> None:
    """Both shapes of plan are told apart when a manifest is read."""
    plans = {"boolean": LeafPlanEntry(name="shared"), "nearest": RowPlanEntry(loads=[0.5])}
    write_manifest(state, make_manifest(0, plans=plans))
    assert read_manifest(state, 0).plans == plans


def change_manifest(state: StateDir, change: Callable[[dict[str, Any]], None]) -> None:
    fields = json.loads(msgspec.json.encode(make_manifest(0)))
    change(fields)
    manifest_path(state, 0).write_bytes(json.dumps(fields).encode())


@pytest.mark.parametrize("found", [1, FORMAT + 1, None])
def test_a_manifest_of_another_format_is_rejected_in_one_line(
    state: StateDir, found: int | None
) -> None:
    """Manifests of format 1 have no format field."""
    change_manifest(
        state, lambda fields: fields.pop("format") if found is None else fields.update(format=found)
    )
    with pytest.raises(Unusable) as caught:
        read_latest(state)
    assert str(caught.value) == (
        f"state {state.root}: has format {found or 1}, and this version of placewire reads format"
        f" {FORMAT}; start with a new state directory"
    )


@pytest.mark.parametrize("part", [None, "counters"])
def test_unknown_fields_are_rejected(state: StateDir, part: str | None) -> None:
    change_manifest(state, lambda fields: (fields[part] if part else fields).update(near_plan={}))
    with pytest.raises(Unusable, match="unknown field `near_plan`"):
        read_latest(state)


AT_ONCE = """
import sys, threading
from pathlib import Path
from placewire.storage.layout import StateDir
from placewire.storage.manifest import read_manifest

sys.setswitchinterval(1e-6)
state, start = StateDir(Path(sys.argv[1])), threading.Barrier(8)

def read():
    start.wait()
    for _ in range(3):
        read_manifest(state, 0)

threads = [threading.Thread(target=read) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize("times", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_threads_may_read_their_first_manifest_at_the_same_moment(
    state: StateDir, times: int
) -> None:
    """A gateway's recorder and its queries; a decoder that both would make brings them down."""
    write_manifest(state, make_manifest(0, "b", segments=[SegmentEntry("s", 0, 1, 1)]))
    for _ in range(times):
        subprocess.run([sys.executable, "-c", AT_ONCE, str(state.root)], check=True)


def name_of(batch: int, what: str) -> str:
    return f"b{batch:09d}-{what}.plw"


def fill(state: StateDir, *names: str) -> None:
    for name in names:
        state.file(name).write_bytes(b"")


def left(state: StateDir) -> set[str]:
    return {path.name for path in state.files.iterdir()}


def test_sweeping_an_empty_state(state: StateDir) -> None:
    fill(state, name_of(0, "under-way"))
    assert collect_garbage(state, -1, set) == 0
    assert left(state) == {name_of(0, "under-way")}


def test_sweeping_spares_what_is_not_delivered(state: StateDir) -> None:
    for batch in range(10):
        fill(state, name_of(batch, "block"), name_of(batch, "orphan"))
        write_manifest(state, make_manifest(batch, name_of(batch, "block")))
    collect_garbage(state, 4, set)
    assert left(state) == {name_of(batch, "block") for batch in range(5, 10)}
    assert committed_batches(state) == list(range(5, 10))


def test_sweeping_spares_the_newest_manifests(state: StateDir) -> None:
    for batch in range(10):
        fill(state, name_of(batch, "block"))
        write_manifest(state, make_manifest(batch, name_of(batch, "block")))
    collect_garbage(state, 9, set)
    assert committed_batches(state) == list(range(10 - KEEP_MANIFESTS, 10))
    assert left(state) == {name_of(batch, "block") for batch in range(10 - KEEP_MANIFESTS, 10)}
    assert collect_garbage(state, 9, set) == 0


def test_sweeping_spares_old_files_that_are_still_live(state: StateDir) -> None:
    old, dead, plan, late = (name_of(0, what) for what in ("segment", "ended", "plan", "rejected"))
    merged, spared = name_of(1, "merged-away"), name_of(5, "merge-under-way")
    fill(state, old, dead, plan, late, merged, spared, name_of(3, "orphan"))
    fill(state, name_of(11, "of-a-batch-to-come"))
    for batch in range(11):
        write_manifest(
            state,
            make_manifest(
                batch,
                segments=[SegmentEntry(old, 0, 5, 1, dead)],
                plans={"boolean": LeafPlanEntry(name="grid", file=plan, live=plan)},
                late_dead=late if batch == 10 else None,
                pieces=[PieceEntry(0, old, "p", merged, 1)] if batch == 9 else [],
            ),
        )
    assert collect_garbage(state, 10, lambda: {spared}) == 1
    assert name_of(3, "orphan") not in left(state)
    assert {old, dead, plan, late, merged, spared} <= left(state)
    assert name_of(11, "of-a-batch-to-come") in left(state)


def test_sweeping_leaves_foreign_files_alone(state: StateDir) -> None:
    fill(state, "README", ".nfs0000000001", name_of(0, "orphan"))
    write_manifest(state, make_manifest(0))
    collect_garbage(state, 0, set)
    assert left(state) == {"README", ".nfs0000000001"}


def test_a_file_that_a_merge_writes_meanwhile_is_not_swept(state: StateDir) -> None:
    """It is not yet known to be spared when the sweep begins, and its batch is committed."""
    merged = name_of(0, "objects")
    write_manifest(state, make_manifest(0))

    def spared() -> set[str]:
        fill(state, merged)
        return set()

    collect_garbage(state, 0, spared)
    assert merged in left(state)
