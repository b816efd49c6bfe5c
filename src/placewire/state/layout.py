"""The state directory: what lies where, whose it is, and under which names.

FORMAT               what this directory is and which version of it
LOCK                 held by the one writer
manifests/N.json     what batch N committed
files/bN-*.plw       array files written by batch N: blocks, segments, ended rows
spark/               Spark's own checkpoint
sink/                results as delivered so far
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path

import msgspec

from placewire.model.errors import Unusable

VERSION = 1


class StateDir:
    """Paths of one state directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = root / "files"
        self.manifests = root / "manifests"
        self.checkpoint = root / "spark"
        self.sink = root / "sink"

    def open(self) -> None:
        """Make or recognise the directory; raises Unusable if it is something else."""
        mark = self.root / "FORMAT"
        expected = {"what": "placewire state", "version": VERSION}
        try:
            if mark.exists():
                found = msgspec.json.decode(mark.read_bytes())
                if found != expected:
                    raise Unusable(
                        f"state {self.root}: needs placewire state version {VERSION}, got {found}"
                    )
            elif self.root.exists() and (
                not self.root.is_dir() or any(p.name != "LOCK" for p in self.root.iterdir())
            ):
                raise Unusable(
                    f"state {self.root}: is not a placewire state directory and is not empty"
                )
            for part in (self.files, self.manifests, self.sink):
                part.mkdir(parents=True, exist_ok=True)
            if not mark.exists():
                write_file(mark, msgspec.json.encode(expected))
        except msgspec.DecodeError:
            raise Unusable(f"state {self.root}: FORMAT is not readable") from None
        except OSError as error:
            raise Unusable(f"state {self.root}: cannot be used: {error.strerror}") from None

    def lock(self) -> int:
        """Become the one writer, for the life of the descriptor; raises Unusable."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.root / "LOCK", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise Unusable(f"state {self.root}: cannot be used: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise Unusable(f"state {self.root}: is in use by another process") from None
        return descriptor

    def new_name(self, batch: int, what: str) -> str:
        """A file name that no other attempt will ever use."""
        return f"b{batch:09d}-{what}-{secrets.token_hex(6)}.plw"

    def file(self, name: str) -> Path:
        return self.files / name


def write_file(path: Path, content: bytes) -> None:
    """Write a small file so that it is either whole or not there, even after a power cut."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with open(temporary, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
