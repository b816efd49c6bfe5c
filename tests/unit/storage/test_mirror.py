"""Mirrors of a state that lies in an object store."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from placewire import Unusable
from placewire.batch.coordinator import Coordinator
from placewire.ingest.sources import identify_stream
from placewire.model.settings import Settings
from placewire.storage.arrays import forget_deleted, open_arrays, write_arrays
from placewire.storage.layout import StateDir
from placewire.storage.mirror import Mirrored, mirror_of


def two_mirrors(uri: str, folder: Path, most_bytes: int = 1 << 30) -> tuple[StateDir, StateDir]:
    """The same state on two machines."""
    one, two = (
        StateDir.at(Mirrored(uri, str(folder / name), most_bytes).name) for name in ("one", "two")
    )
    return one, two


def test_files_are_found_on_other_machines(tmp_path: Path) -> None:
    one, two = two_mirrors(f"file://{tmp_path}/state", tmp_path)
    assert one.root != two.root
    one.open()
    path = one.file("b000000001-x-1.plw")
    write_arrays(path, {"numbers": np.arange(1_000)})
    assert not two.file(path.name).exists()
    assert (open_arrays(two.file(path.name)).arrays["numbers"] == np.arange(1_000)).all()
    assert two.file(path.name).exists()
    assert (tmp_path / "state" / "files" / path.name).exists()
    with pytest.raises(Unusable, match="cannot be read"):
        open_arrays(two.file("b000000001-y-1.plw"))
    assert str(two) == f"file://{tmp_path}/state"


def test_a_mirror_stays_small(tmp_path: Path) -> None:
    """What was used least lately goes, and comes back when it is wanted."""
    size = 1_000_000
    one, two = two_mirrors(f"file://{tmp_path}/state", tmp_path, 5 * size)
    one.open()
    names = [f"b000000001-x-{number}.plw" for number in range(8)]
    for number, name in enumerate(names):
        write_arrays(one.file(name), {"bytes": np.full(size, number, np.uint8)})
    assert len(list((tmp_path / "state" / "files").iterdir())) == 8
    for state in (one, two, one):
        for number, name in enumerate(names):
            assert open_arrays(state.file(name)).arrays["bytes"][-1] == number
            os.utime(state.file(names[0]))  # always in use
            forget_deleted()
    for state in (one, two):
        here = [path.name for path in state.files.iterdir()]
        assert 3 <= len(here) <= 6
        assert names[0] in here
        assert names[-1] in here


def test_the_last_to_come_is_the_writer(tmp_path: Path) -> None:
    one, two = two_mirrors(f"file://{tmp_path}/state", tmp_path)
    first = Coordinator(one, Settings(), identify_stream)
    first.state.check_writer()
    second = Coordinator(two, Settings(), identify_stream)
    second.state.check_writer()
    with pytest.raises(Unusable, match=r"file:///.*/state: another process has become its writer"):
        first.state.check_writer()
    same = StateDir.at(two.name)
    with pytest.raises(Unusable, match="is in use by another process"):
        Coordinator(same, Settings(), identify_stream)
    second.state.check_writer()
    first.close()
    second.close()


def test_a_directory_has_no_mirror(tmp_path: Path) -> None:
    state = StateDir.given(tmp_path / "state")
    state.open()
    assert mirror_of(state.files) is None
    assert state.name == str(tmp_path / "state")
