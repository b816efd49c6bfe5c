"""Mirrors: the folder of this machine through which a state that lies elsewhere is used.

Files of a state never change, so a copy is never stale: whatever is written goes to the state's
place before it counts, and whatever is missing here is fetched. Every machine has a mirror of its
own, or every executor; it may be deleted at any time, and what was used least lately goes when it
grows too large. A state in a directory of this machine has none, and nothing is copied.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from pathlib import Path
from typing import NamedTuple

from placewire.model.errors import Unusable
from placewire.storage.filesystem import Folder, without_secrets

MOST_BYTES = 20 << 30
KEPT = ("files", "intake")  # folders of a state whose files are kept here
SHARE = 16  # of the most bytes that may come before it is counted what there is
FETCHES = 5  # a file may be dropped by another process as soon as it is there


class Mirrored(NamedTuple):
    """A state's URI, and where its mirrors are; the empty cache lets each process choose."""

    uri: str
    cache: str = ""
    most_bytes: int = MOST_BYTES

    @property
    def name(self) -> str:
        """All this as a text that tasks carry."""
        return f"{self.uri}#{self.most_bytes}#{self.cache}"

    @classmethod
    def named(cls, name: str) -> Mirrored:
        uri, most, cache = name.split("#", 2)
        return cls(uri, cache, int(most))


class Mirror:
    """A folder of copies of the files of one state."""

    def __init__(self, mirrored: Mirrored) -> None:
        self.place = Folder(mirrored.uri)
        self.most_bytes = mirrored.most_bytes
        digest = hashlib.sha256(without_secrets(mirrored.uri).encode()).hexdigest()[:16]
        self.root = Path(mirrored.cache or choose_cache()).absolute() / digest
        self.arrived = self.most_bytes  # bytes since it was counted what there is: not yet
        try:
            for folder in ("", *KEPT):
                (self.root / folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Unusable(f"cache {self.root}: cannot be used: {error.strerror}") from None

    def name_of(self, path: Path) -> str:
        """What a path of the mirror is called in the state's place."""
        return "" if path == self.root else path.relative_to(self.root).as_posix()

    def keep(self, path: Path, written: Path) -> None:
        """Take a file that was `written` here into the state, then into the mirror as `path`."""
        size = written.stat().st_size
        self.place.write(self.name_of(path), written)
        os.replace(written, path)
        self._note(size)

    def fetch(self, path: Path) -> None:
        """Get a file that is missing here; raises FileNotFoundError."""
        self.place.fetch(self.name_of(path), path)
        self._note(path.stat().st_size)

    def _note(self, size: int) -> None:
        """Drop what was used least lately, if there may be too much."""
        self.arrived += size
        if self.arrived < self.most_bytes // SHARE:
            return
        self.arrived = 0
        there = []
        for folder in KEPT:
            for path in (self.root / folder).iterdir():
                if not path.name.startswith("."):
                    try:
                        found = path.stat()
                    except OSError:
                        continue
                    there.append((found.st_mtime, found.st_size, path))
        total = sum(bytes_ for _, bytes_, _ in there)
        for _, bytes_, path in sorted(there):
            if total <= self.most_bytes:
                break
            path.unlink(missing_ok=True)
            total -= bytes_


_mirrors: dict[str, Mirror] = {}
_roots: dict[str, Mirror] = {}


def open_mirror(mirrored: Mirrored) -> Mirror:
    """The mirror of a state in this process."""
    mirror = _mirrors.get(mirrored.name)
    if mirror is None:
        mirror = _mirrors[mirrored.name] = Mirror(mirrored)
        _roots[str(mirror.root)] = mirror
    return mirror


def mirror_of(path: Path) -> Mirror | None:
    """The mirror that a path is in, if it is in one."""
    if not _roots:
        return None
    tops = (path, *path.parents)
    return next((_roots[str(top)] for top in tops if str(top) in _roots), None)


def choose_cache() -> str:
    """Where mirrors are if nobody says: what Spark gives an executor, or a folder of the machine's.

    What Spark gives goes away with the executor.
    """
    given = os.environ.get("PLACEWIRE_CACHE")
    if given:
        return given
    spark = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return f"{spark}/placewire" if spark else machine_cache()


def machine_cache() -> str:
    """The folder that all processes of a user share on a machine."""
    return os.path.join(tempfile.gettempdir(), f"placewire-{os.getuid()}")


def here(path: Path) -> Path:
    """A file of a state on this machine, fetched if it has to be; raises FileNotFoundError."""
    mirror = mirror_of(path)
    if mirror is None:
        return path
    for _ in range(FETCHES):
        try:
            os.utime(path)  # so that it is dropped later than others
            return path
        except FileNotFoundError:
            mirror.fetch(path)
    return path


def beside(path: Path) -> Path:
    """A name for a file that is being written, and becomes `path` when it is whole."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


def list_names(folder: Path) -> list[str]:
    """What is in a folder of a state."""
    mirror = mirror_of(folder)
    if mirror is not None:
        return mirror.place.list(mirror.name_of(folder))
    return os.listdir(folder)


def read_file(path: Path) -> bytes:
    """A small file of a state as it is now; raises FileNotFoundError."""
    mirror = mirror_of(path)
    return path.read_bytes() if mirror is None else mirror.place.read(mirror.name_of(path))


def remove_file(path: Path) -> None:
    """Delete a file of a state, if it is there."""
    mirror = mirror_of(path)
    if mirror is not None:
        mirror.place.remove(mirror.name_of(path))
    path.unlink(missing_ok=True)
