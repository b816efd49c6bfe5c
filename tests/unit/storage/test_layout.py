"""State: array files, manifests, locks, sweeping and the choice of what to merge."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from placewire.batch.coordinator import Coordinator
from placewire.ingest.log import identify_log
from placewire.model.errors import Unusable
from placewire.model.settings import Settings
from placewire.storage.layout import StateDir, write_file

# --- the directory and its lock ---


def test_a_directory_is_made_and_recognised(state: StateDir) -> None:
    again = StateDir(state.root)
    again.open()
    assert json.loads((state.root / "FORMAT").read_bytes())["what"] == "placewire state"
    assert state.new_name(3, "x") != state.new_name(3, "x")


@pytest.mark.parametrize(
    "content",
    [b"", b"nonsense", b"\xff\xfe", b"[]", b'{"what":"other","version":3}', b"{}"],
)
def test_an_unreadable_format_is_rejected(state: StateDir, content: bytes) -> None:
    (state.root / "FORMAT").write_bytes(content)
    with pytest.raises(Unusable, match="FORMAT is not readable"):
        state.open()


def test_an_old_state_is_rejected_in_one_line(state: StateDir) -> None:
    (state.root / "FORMAT").write_bytes(b'{"what":"placewire state","version":2}')
    for use in (state.open, state.check_made):
        with pytest.raises(Unusable) as caught:
            use()
        assert str(caught.value) == (
            f"state {state.root}: has format 2, and this version of placewire reads format 3;"
            " start with a new state directory"
        )


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
