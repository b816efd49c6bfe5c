"""Spark's checkpoint of a state: how far a stream has read its sources.

Spark writes it in a directory of this machine. Of a state that lies elsewhere it is copied there
before the order of a batch is recorded: what is recorded, Spark knows of wherever it is resumed.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from placewire.storage.layout import StateDir
from placewire.storage.mirror import mirror_of

FOLDER = "checkpoint"


class Checkpoint:
    """The checkpoint folder of a state."""

    def __init__(self, state: StateDir) -> None:
        self.folder = state.root / FOLDER
        self.mirror = mirror_of(self.folder)
        self.sent: dict[str, tuple[int, int]] = {}  # sizes and times of what is there

    @property
    def exists(self) -> bool:
        return self.folder.is_dir() and any(self.folder.iterdir())

    def pull(self) -> None:
        """Have here what the state has, and nothing else."""
        if self.mirror is None:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in self.mirror.place.list(FOLDER, deep=True):
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            self.mirror.place.fetch(f"{FOLDER}/{name}", path)
        self.sent = self._there()

    def push(self) -> None:
        """Let the state have what is here, and nothing else."""
        if self.mirror is None:
            return
        there = self._there()
        # Offsets last: a trigger that they tell of has all else.
        changed = [name for name, facts in there.items() if self.sent.get(name) != facts]
        for name in sorted(changed, key=lambda name: name.startswith("offsets")):
            self.mirror.place.write(f"{FOLDER}/{name}", self.folder / name)
        for name in self.sent.keys() - there.keys():
            self.mirror.place.remove(f"{FOLDER}/{name}")
        self.sent = there

    def _there(self) -> dict[str, tuple[int, int]]:
        """The files here; checksums and what is being written are not worth copying."""
        found = {}
        for folder, _, names in os.walk(self.folder):
            for name in names:
                if not name.startswith("."):
                    path = Path(folder) / name
                    facts = path.stat()
                    relative = path.relative_to(self.folder).as_posix()
                    found[relative] = facts.st_size, facts.st_mtime_ns
        return found
