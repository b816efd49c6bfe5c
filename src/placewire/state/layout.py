"""The state directory: what lies where, whose it is, and under which names.

FORMAT               what this directory is and which version of it
LOCK                 held by the one writer
manifests/N.json     what batch N committed
files/bN-*.plw       array files written by batch N: blocks, segments, ended rows
sink/                results as delivered so far
lexicon-*.json       the lexicon of the settings, if they name one
intake/              what a source without a total order gave, see `state/intake.py`
checkpoint/          how far a stream has read its sources, as Spark notes it
ASKED.json           a plan that somebody asked for by hand
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path

import msgspec

from placewire.model.errors import Unusable

VERSION = 1
EXPECTED = {"what": "placewire state", "version": VERSION}


class StateDir:
    """Paths of one state directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = root / "files"
        self.manifests = root / "manifests"
        self.sink = root / "sink"

    @classmethod
    def at(cls, root: str) -> StateDir:
        """The directory by its name, as tasks carry it."""
        return cls(Path(root))

    def check(self) -> None:
        """Refuse a directory that is something else, and leave it as it is; raises Unusable."""
        mark = self.root / "FORMAT"
        try:
            if mark.exists():
                found = msgspec.json.decode(mark.read_bytes())
                if found != EXPECTED:
                    raise Unusable(
                        f"state {self.root}: needs placewire state version {VERSION}, got {found}"
                    )
            elif self.root.exists() and (
                not self.root.is_dir() or any(not is_ours(p) for p in self.root.iterdir())
            ):
                raise Unusable(
                    f"state {self.root}: is not a placewire state directory and is not empty"
                )
        except (msgspec.DecodeError, UnicodeError):
            raise Unusable(f"state {self.root}: FORMAT is not readable") from None
        except OSError as error:
            raise Unusable(f"state {self.root}: cannot be used: {error.strerror}") from None

    def open(self) -> None:
        """Recognise the directory or make it; raises Unusable."""
        self.check()
        self.make()

    def make(self) -> None:
        """Make what is missing of the directory; raises Unusable."""
        mark = self.root / "FORMAT"
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            if not mark.exists():
                write_file(mark, msgspec.json.encode(EXPECTED))
            for part in (self.files, self.manifests, self.sink):
                part.mkdir(exist_ok=True)
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

    def lexicon(self, digest: str) -> Path:
        """Where the lexicon of this digest is."""
        return self.root / f"lexicon-{digest[:16]}.json"

    def file(self, name: str) -> Path:
        return self.files / name


def is_ours(path: Path) -> bool:
    """Whether a run that died while making the directory may have left this."""
    return (
        path.name == "LOCK"
        or path.name.startswith(".FORMAT.")
        or (
            path.name in ("files", "manifests", "sink")
            and path.is_dir()
            and not any(path.iterdir())
        )
    )


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
