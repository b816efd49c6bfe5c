"""Garbage collection keeps every file that is still needed."""

from __future__ import annotations

from manifests import make_manifest
from placewire.storage.garbage_collection import KEEP_MANIFESTS, collect_garbage
from placewire.storage.layout import StateDir
from placewire.storage.manifest import (
    LeafPlanEntry,
    PieceEntry,
    SegmentEntry,
    committed_batches,
    write_manifest,
)

# --- the directory and its lock ---


# --- sweeping ---


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
    old, dead, plan, late = (name_of(0, what) for what in ("segment", "ended", "plan", "refused"))
    merged, spared = name_of(1, "merged-away"), name_of(5, "merge-under-way")
    fill(state, old, dead, plan, late, merged, spared, name_of(3, "orphan"))
    fill(state, name_of(11, "of-a-batch-to-come"))
    for batch in range(11):
        write_manifest(
            state,
            make_manifest(
                batch,
                segments=[SegmentEntry(old, 5, 1, dead)],
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
