"""Manifests: commits, round trips and damaged files."""

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
from placewire.storage.layout import StateDir
from placewire.storage.manifest import (
    Counters,
    LeafPlanEntry,
    NextPlanEntry,
    PieceEntry,
    PreviousPlanEntry,
    RowPlanEntry,
    SegmentEntry,
    committed_batches,
    manifest_path,
    read_latest,
    read_manifest,
    write_manifest,
)

# --- the directory and its lock ---


def test_manifests_come_back(state: StateDir) -> None:
    manifest = make_manifest(
        12,
        "b000000012-block0-aa.plw",
        now_us=-5,
        segments=[SegmentEntry("s", 10, 3, "d")],
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


@pytest.mark.parametrize("content", [b"", b"{", b'{"format":2}', b"[]", b'{"format":"2"}', b"\xff"])
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


@pytest.mark.parametrize("found", [1, 3, None])
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
        " 2; start with a new state directory"
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


def test_threads_may_read_their_first_manifest_at_the_same_moment(state: StateDir) -> None:
    """A gateway's recorder and its queries; a decoder that both would make brings them down."""
    write_manifest(state, make_manifest(0, "b", segments=[SegmentEntry("s", 1, 1)]))
    for _ in range(8):
        subprocess.run([sys.executable, "-c", AT_ONCE, str(state.root)], check=True)
