"""State: array files, manifests, locks, sweeping and the choice of what to merge."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_np

from placewire.batch.coordinator import Coordinator
from placewire.ingest.log import identify_log
from placewire.model.errors import Unusable
from placewire.model.settings import Settings
from placewire.segments.compaction import FAN_IN, MOST_DEAD, SMALLEST_TIER, choose_merge, tier_of
from placewire.storage.arrays import (
    MAGIC,
    map_arrays,
    open_arrays,
    pack_arrays,
    unpack_arrays,
    write_arrays,
)
from placewire.storage.garbage import KEEP_MANIFESTS, sweep
from placewire.storage.layout import StateDir, write_file
from placewire.storage.manifest import (
    BlockEntry,
    Counters,
    Manifest,
    PieceEntry,
    SegmentEntry,
    committed_batches,
    manifest_path,
    read_latest,
    read_manifest,
    write_manifest,
)

# --- array files ---

DTYPES = [
    np.uint8,
    np.int8,
    np.int16,
    np.uint32,
    np.int32,
    np.uint64,
    np.int64,
    np.float64,
    np.bool_,
]
arrays_to_keep = st.dictionaries(
    st.text(min_size=1, max_size=12),
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: st_np.arrays(dtype, st_np.array_shapes(min_dims=1, max_dims=2, min_side=0))
    ),
    max_size=6,
)
facts_to_keep = st.dictionaries(st.text(max_size=5), st.integers(-(2**60), 2**60), max_size=3)


@settings(max_examples=80, deadline=None)
@given(arrays_to_keep, facts_to_keep)
def test_arrays_come_back(
    tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, Any], facts: dict[str, int]
) -> None:
    path = tmp_path_factory.mktemp("arrays") / "a.plw"
    assert write_arrays(path, arrays, facts) == path.stat().st_size
    packed = pack_arrays(arrays, facts)
    assert packed == path.read_bytes()
    for read in (map_arrays(path), open_arrays(path), unpack_arrays(packed)):
        assert read.facts == facts
        assert list(read.arrays) == list(arrays)
        for name, array in arrays.items():
            assert read.arrays[name].dtype == array.dtype
            assert read.arrays[name].shape == array.shape
            assert np.array_equal(read.arrays[name], array, equal_nan=array.dtype.kind == "f")


def test_arrays_that_are_not_contiguous_come_back(tmp_path: Path) -> None:
    square = np.arange(100.0).reshape(10, 10)
    arrays = {
        "t": square.T,
        "step": square[::2, ::3],
        "back": np.arange(10)[::-1],
        "none": square[:0],
    }
    write_arrays(tmp_path / "a.plw", arrays)
    for name, array in map_arrays(tmp_path / "a.plw").arrays.items():
        assert np.array_equal(array, arrays[name])


def test_large_and_small_arrays_stay_in_order(tmp_path: Path) -> None:
    arrays = {
        f"a{n}": np.full(size, n, np.uint8)
        for n, size in enumerate((1, 70_000, 0, 65_535, 65_536, 3))
    }
    write_arrays(tmp_path / "a.plw", arrays)
    for name, array in map_arrays(tmp_path / "a.plw").arrays.items():
        assert np.array_equal(array, arrays[name])
        assert array.size == 0 or array.ctypes.data % 64 == 0


def test_mapped_arrays_cannot_be_written(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a.plw", {"a": np.arange(3)})
    mapped = map_arrays(tmp_path / "a.plw").arrays["a"]
    with pytest.raises(ValueError, match="read-only"):
        mapped[0] = 7


def test_a_file_is_written_once(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a.plw", {})
    with pytest.raises(FileExistsError):
        write_arrays(tmp_path / "a.plw", {})


@pytest.mark.parametrize(
    "content",
    [b"", b"short", b"x" * 100, MAGIC + (2).to_bytes(4, "little") + bytes(100), MAGIC[::-1] * 20],
)
def test_what_is_no_array_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.plw"
    path.write_bytes(content)
    with pytest.raises(Unusable, match="is not an array file"):
        map_arrays(path)


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.plw"
    write_arrays(path, {"a": np.arange(1000)})
    for length in (5_000, 400, 100, 30):
        path.write_bytes(path.read_bytes()[:length])
        with pytest.raises(Unusable):
            map_arrays(path)


def test_a_missing_file_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match=r"gone\.plw"):
        map_arrays(tmp_path / "gone.plw")


# --- the directory and its lock ---


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    made = StateDir(tmp_path / "state")
    made.open()
    return made


def test_a_directory_is_made_and_recognised(state: StateDir) -> None:
    again = StateDir(state.root)
    again.open()
    assert json.loads((state.root / "FORMAT").read_bytes())["what"] == "placewire state"
    assert state.new_name(3, "x") != state.new_name(3, "x")


@pytest.mark.parametrize(
    "content",
    [b"", b"nonsense", b"\xff\xfe", b"[]", b'{"what":"placewire state","version":2}', b"{}"],
)
def test_another_format_is_refused(state: StateDir, content: bytes) -> None:
    (state.root / "FORMAT").write_bytes(content)
    with pytest.raises(Unusable, match="state"):
        state.open()


def test_a_foreign_directory_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("do not touch")
    log = tmp_path.parent / "log.jsonl"
    log.write_bytes(b"{}\n")
    with pytest.raises(Unusable, match="not empty"):
        Coordinator(StateDir(tmp_path), Settings(), identify_log(log))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    state = StateDir(tmp_path / "file")
    for use in (state.open, state.lock):
        with pytest.raises(Unusable, match="file"):
            use()


def test_a_run_killed_while_it_made_the_directory_can_be_resumed(tmp_path: Path) -> None:
    """Whatever was made before FORMAT: it is ours, and empty."""
    state = StateDir(tmp_path / "state")
    for part in (state.files, state.manifests, state.sink):
        part.mkdir(parents=True, exist_ok=True)
        (state.root / "LOCK").touch()
        StateDir(state.root).open()
        (state.root / "FORMAT").unlink()
    (state.root / ".FORMAT.0a1b2c3d").write_bytes(b'{"wh')
    StateDir(state.root).open()


HOLD = """
import sys
from pathlib import Path
from placewire.storage.layout import StateDir
StateDir(Path(sys.argv[1])).lock()
print("held", flush=True)
sys.stdin.read()
"""


def test_one_writer_at_a_time(state: StateDir) -> None:
    command = [sys.executable, "-c", HOLD, str(state.root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Unusable, match="in use by another process"):
            state.lock()
        holder.kill()
    state.lock()  # the lock died with its holder


def test_a_refused_coordinator_gives_the_directory_back(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"{}\n")
    state = StateDir(tmp_path / "state")
    with pytest.raises(Unusable, match="plan"):
        Coordinator(state, Settings(), identify_log(log), plan="nonsense")
    Coordinator(state, Settings(), identify_log(log)).close()
    Coordinator(state, Settings(), identify_log(log)).close()


def test_small_files_are_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "note"
    write_file(target, b"one")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("power cut")))
    with pytest.raises(OSError, match="power cut"):
        write_file(target, b"two")
    assert target.read_bytes() == b"one"


# --- manifests ---


def make_manifest(batch: int, *files: str, **more: Any) -> Manifest:
    fields: dict[str, Any] = {
        "batch": batch,
        "epoch": 1,
        "key": (2**64 - 1, 1),
        "settings": Settings()._asdict(),
        "source": "x",
        "offset": {"seq": 1, "byte": 2},
        "next_seq": 1,
        "now_us": None,
        "blocks": [BlockEntry(file, 0, 0) for file in files],
    }
    return Manifest(**{**fields, **more})


def test_manifests_come_back(state: StateDir) -> None:
    manifest = make_manifest(
        12,
        "b000000012-block0-aa.plw",
        now_us=-5,
        segments=[SegmentEntry("s", 10, 3, "d")],
        pieces=[PieceEntry(0, "f", "p", "s", 4)],
        late_dead="l",
        plan={"name": "grid", "file": "g", "version": 1},
        counters=Counters(1, 2, 3, 4, 5),
    )
    write_manifest(state, manifest)
    assert read_manifest(state, 12) == manifest
    assert read_latest(state) == manifest
    assert manifest.file_names() == {"b000000012-block0-aa.plw", "s", "d", "f", "l", "g"}


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


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"[]", b'{"batch":"0"}', b"\xff"])
def test_a_broken_manifest_is_refused_in_one_line(state: StateDir, content: bytes) -> None:
    manifest_path(state, 0).write_bytes(content)
    with pytest.raises(Unusable, match="manifest 0") as caught:
        read_latest(state)
    assert "\n" not in str(caught.value)


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
    assert sweep(state, -1, set) == 0
    assert left(state) == {name_of(0, "under-way")}


def test_sweeping_spares_what_is_not_delivered(state: StateDir) -> None:
    for batch in range(10):
        fill(state, name_of(batch, "block"), name_of(batch, "orphan"))
        write_manifest(state, make_manifest(batch, name_of(batch, "block")))
    sweep(state, 4, set)
    assert left(state) == {name_of(batch, "block") for batch in range(5, 10)}
    assert committed_batches(state) == list(range(5, 10))


def test_sweeping_spares_the_newest_manifests(state: StateDir) -> None:
    for batch in range(10):
        fill(state, name_of(batch, "block"))
        write_manifest(state, make_manifest(batch, name_of(batch, "block")))
    sweep(state, 9, set)
    assert committed_batches(state) == list(range(10 - KEEP_MANIFESTS, 10))
    assert left(state) == {name_of(batch, "block") for batch in range(10 - KEEP_MANIFESTS, 10)}
    assert sweep(state, 9, set) == 0


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
                plan={"file": plan},
                late_dead=late if batch == 10 else None,
                pieces=[PieceEntry(0, old, "p", merged, 1)] if batch == 9 else [],
            ),
        )
    assert sweep(state, 10, lambda: {spared}) == 1
    assert name_of(3, "orphan") not in left(state)
    assert {old, dead, plan, late, merged, spared} <= left(state)
    assert name_of(11, "of-a-batch-to-come") in left(state)


def test_sweeping_leaves_foreign_files_alone(state: StateDir) -> None:
    fill(state, "README", ".nfs0000000001", name_of(0, "orphan"))
    write_manifest(state, make_manifest(0))
    sweep(state, 0, set)
    assert left(state) == {"README", ".nfs0000000001"}


# --- what to merge ---

entries = st.lists(
    st.tuples(st.integers(1, 5_000_000), st.floats(0, 1)).map(
        lambda drawn: SegmentEntry("s", drawn[0], int(drawn[0] * drawn[1]))
    ),
    max_size=40,
)


@given(entries)
def test_chosen_merges_make_sense(segments: list[SegmentEntry]) -> None:
    chosen = choose_merge(segments)
    assert chosen == sorted(set(chosen))
    assert all(0 <= position < len(segments) for position in chosen)
    if len(chosen) == 1:
        (only,) = chosen
        assert segments[only].ended > MOST_DEAD * segments[only].rows
    elif chosen:
        assert len(chosen) >= FAN_IN


@given(entries)
def test_when_nothing_is_chosen_there_are_few_segments_and_none_mostly_dead(
    segments: list[SegmentEntry],
) -> None:
    if choose_merge(segments):
        return
    tiers = [tier_of(entry.rows - entry.ended) for entry in segments]
    assert all(tiers.count(tier) < FAN_IN for tier in tiers)
    assert all(entry.ended <= MOST_DEAD * entry.rows for entry in segments)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([1, 3, 1_000, 20_000, 300_000]), max_size=120), st.randoms())
def test_merging_ends_stays_bounded_and_is_not_too_much_work(adds: list[int], random: Any) -> None:
    """A log-structured tree: few segments, and each row is written a few times only."""
    segments: list[SegmentEntry] = []
    written = 0
    for rows in adds:
        segments.append(SegmentEntry("s", rows))
        rounds = 0
        while chosen := choose_merge(segments):
            rounds += 1
            assert rounds < 50, "merging does not come to an end"
            live = sum(segments[i].rows - segments[i].ended for i in chosen)
            written += live
            segments = [entry for i, entry in enumerate(segments) if i not in chosen]
            segments += [SegmentEntry("s", live)] if live else []
        assert len(segments) <= (FAN_IN - 1) * (1 + tier_of(sum(adds) + 1))
        if segments and random.random() < 0.2:
            at = random.randrange(len(segments))
            segments[at] = SegmentEntry("s", segments[at].rows, random.randrange(segments[at].rows))
    assert written <= 8 * sum(adds) + 8 * SMALLEST_TIER * (1 + len(adds))


def test_a_file_that_a_merge_writes_meanwhile_is_not_swept(state: StateDir) -> None:
    """It is not yet known to be spared when the sweep begins, and its batch is committed."""
    merged = name_of(0, "objects")
    write_manifest(state, make_manifest(0))

    def spared() -> set[str]:
        fill(state, merged)
        return set()

    sweep(state, 0, spared)
    assert merged in left(state)


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
