"""The intake of a stream: batches of unordered sources, recorded in a fixed order.

A source delivers rows in partitions without a total order. They are written as blocks, and the
order of the blocks is recorded before any of them runs: from then on that order is the log. When a
source redelivers a batch after a crash, the recorded one is used.

intake/N.json        the blocks of the source's batch N, in order
intake/*.arrow       objects as columns
intake/*.jsonl       events as lines
checkpoint/          Spark's checkpoint: how far the stream has read its sources
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from placewire.model.errors import Unusable
from placewire.storage.layout import StateDir, write_file
from placewire.storage.mirror import list_names, mirror_of, read_file, remove_file, temporary_path

INTAKE, CHECKPOINT = "intake", "checkpoint"  # folders of a state
KEEP = 2  # recorded batches, in addition to the current one


class IntakeBlock(msgspec.Struct, frozen=True):
    """A block's file, its format, and its number of events and bytes."""

    file: str
    form: str
    rows: int
    bytes: int


class IntakeBatch(msgspec.Struct, frozen=True):
    """The blocks of one batch of a source; `first` counts the blocks of all earlier batches."""

    first: int
    blocks: list[IntakeBlock]


class Intake:
    """The intake folder of a state."""

    def __init__(self, state: StateDir) -> None:
        self.state = state
        self.folder = state.root / INTAKE

    def make(self) -> None:
        self.folder.mkdir(exist_ok=True)

    def write_block(self, form: str, rows: int, write: Callable[[Path], None]) -> IntakeBlock:
        """Write a block under a name that no other attempt will ever use."""
        path = self.folder / f"{secrets.token_hex(8)}.{form}"
        mirror = mirror_of(path)
        written = path if mirror is None else temporary_path(path)
        write(written)
        size = written.stat().st_size
        if mirror is not None:
            mirror.keep(path, written)
        return IntakeBlock(path.name, form, rows, size)

    def read(self, batch: int) -> IntakeBatch | None:
        """Read the record of a source's batch; None if there is none."""
        name = f"{batch}.json"
        try:
            return msgspec.json.decode(read_file(self.folder / name), type=IntakeBatch)
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, OSError) as error:
            raise Unusable(f"state {self.state}: {INTAKE}/{name} is damaged: {error}") from None

    def record(self, batch: int, recorded: IntakeBatch) -> None:
        """Record the order of a source's batch."""
        self.state.check_writer()
        write_file(self.folder / f"{batch}.json", msgspec.json.encode(recorded))

    def last(self) -> int | None:
        """Return the number of the last recorded batch."""
        return max(self._batches(), default=None)

    def tidy(self) -> None:
        """Delete blocks of committed batches and of failed attempts."""
        kept = sorted(self._batches())[-KEEP:]
        needed = {f"{batch}.json" for batch in kept}
        for batch in kept:
            found = self.read(batch)
            needed |= {block.file for block in found.blocks} if found else set()
        for name in set(list_names(self.folder)) - needed:
            remove_file(self.folder / name)

    def _batches(self) -> list[int]:
        names = [name for name in list_names(self.folder) if name.endswith(".json")]
        return [int(name[:-5]) for name in names if is_number(name[:-5])]


def is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


class Checkpoint:
    """Spark's checkpoint of a state, which Spark writes to a local directory.

    For a state in an object store it is uploaded before the order of a batch is recorded, so that a
    stream can resume on another machine.
    """

    def __init__(self, state: StateDir) -> None:
        self.folder = state.root / CHECKPOINT
        self.mirror = mirror_of(self.folder)
        self.sent: dict[str, tuple[int, int]] = {}  # sizes and times of the uploaded files

    @property
    def exists(self) -> bool:
        return self.folder.is_dir() and any(self.folder.iterdir())

    def pull(self) -> None:
        """Replace the local checkpoint by the one in the store."""
        if self.mirror is None:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in self.mirror.remote.list(CHECKPOINT, deep=True):
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            self.mirror.remote.fetch(f"{CHECKPOINT}/{name}", path)
        self.sent = self._there()

    def push(self) -> None:
        """Upload changed files, and delete those that no longer exist here."""
        if self.mirror is None:
            return
        there = self._there()
        # Offsets last: a trigger whose offsets exist has all its other files.
        changed = [name for name, facts in there.items() if self.sent.get(name) != facts]
        for name in sorted(changed, key=lambda name: name.startswith("offsets")):
            self.mirror.remote.write(f"{CHECKPOINT}/{name}", self.folder / name)
        for name in self.sent.keys() - there.keys():
            self.mirror.remote.remove(f"{CHECKPOINT}/{name}")
        self.sent = there

    def _there(self) -> dict[str, tuple[int, int]]:
        """List local files, without checksums and temporary files."""
        found = {}
        for folder, _, names in os.walk(self.folder):
            for name in names:
                if not name.startswith("."):
                    path = Path(folder) / name
                    facts = path.stat()
                    relative = path.relative_to(self.folder).as_posix()
                    found[relative] = facts.st_size, facts.st_mtime_ns
        return found
