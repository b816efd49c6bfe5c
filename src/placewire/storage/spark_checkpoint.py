"""Spark's checkpoint of a state: how far a stream has read its sources.

Spark writes it to a local directory. For a state in an object store it is uploaded before the order
of a batch is recorded, so that a stream can resume on another machine.
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
        self.sent: dict[str, tuple[int, int]] = {}  # sizes and times of the uploaded files

    @property
    def exists(self) -> bool:
        return self.folder.is_dir() and any(self.folder.iterdir())

    def pull(self) -> None:
        """Replace the local checkpoint by the one in the store."""
        if self.mirror is None:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in self.mirror.remote.list(FOLDER, deep=True):
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            self.mirror.remote.fetch(f"{FOLDER}/{name}", path)
        self.sent = self._there()

    def push(self) -> None:
        """Upload changed files, and delete those that no longer exist here."""
        if self.mirror is None:
            return
        there = self._there()
        # Offsets last: a trigger whose offsets exist has all its other files.
        changed = [name for name, facts in there.items() if self.sent.get(name) != facts]
        for name in sorted(changed, key=lambda name: name.startswith("offsets")):
            self.mirror.remote.write(f"{FOLDER}/{name}", self.folder / name)
        for name in self.sent.keys() - there.keys():
            self.mirror.remote.remove(f"{FOLDER}/{name}")
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
