"""Mirrors: local caches of a state directory that lives in an object store.

Files of a state never change, so a cached copy is never stale. Writes go to the store before they
count, and missing files are fetched. Each machine or executor has its own mirror, which may be
deleted at any time; the least recently used files are evicted when it grows too large. A state in a
local directory has no mirror.
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
KEPT = ("files", "intake")  # folders of a state whose files are cached
SHARE = 16  # evict after 1/16 of the limit was added
FETCHES = 5  # another process may evict a file as soon as it is fetched


class Mirrored(NamedTuple):
    """A state's URI and the folder of its mirrors; empty lets each process choose."""

    uri: str
    cache: str = ""
    most_bytes: int = MOST_BYTES

    @property
    def name(self) -> str:
        """The fields as one string, which tasks carry."""
        return f"{self.uri}#{self.most_bytes}#{self.cache}"

    @classmethod
    def named(cls, name: str) -> Mirrored:
        uri, most, cache = name.split("#", 2)
        return cls(uri, cache, int(most))


class Mirror:
    """A local folder with copies of one state's files."""

    def __init__(self, mirrored: Mirrored) -> None:
        self.remote = Folder(mirrored.uri)
        self.most_bytes = mirrored.most_bytes
        digest = hashlib.sha256(without_secrets(mirrored.uri).encode()).hexdigest()[:16]
        self.root = Path(mirrored.cache or choose_cache()).absolute() / digest
        self.arrived = self.most_bytes  # bytes added since the last eviction
        try:
            for folder in ("", *KEPT):
                (self.root / folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Unusable(f"cache {self.root}: cannot be used: {error.strerror}") from None

    def name_of(self, path: Path) -> str:
        """Return the name in the store of a path in the mirror."""
        return "" if path == self.root else path.relative_to(self.root).as_posix()

    def keep(self, path: Path, written: Path) -> None:
        """Upload a locally `written` file, then move it to `path` in the mirror."""
        size = written.stat().st_size
        self.remote.write(self.name_of(path), written)
        os.replace(written, path)
        self._evict(size)

    def fetch(self, path: Path) -> None:
        """Fetch a missing file; raises FileNotFoundError."""
        self.remote.fetch(self.name_of(path), path)
        self._evict(path.stat().st_size)

    def _evict(self, size: int) -> None:
        """Count an added file; evict the least recently used ones beyond the limit."""
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
    """Open this process's mirror of a state."""
    mirror = _mirrors.get(mirrored.name)
    if mirror is None:
        mirror = _mirrors[mirrored.name] = Mirror(mirrored)
        _roots[str(mirror.root)] = mirror
    return mirror


def mirror_of(path: Path) -> Mirror | None:
    """Return the mirror that contains a path, if any."""
    if not _roots:
        return None
    tops = (path, *path.parents)
    return next((_roots[str(top)] for top in tops if str(top) in _roots), None)


def choose_cache() -> str:
    """Return the default folder of mirrors: Spark's local directory, or one per user and machine.

    Spark deletes its local directory with the executor.
    """
    given = os.environ.get("PLACEWIRE_CACHE")
    if given:
        return given
    spark = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return f"{spark}/placewire" if spark else machine_cache()


def machine_cache() -> str:
    """Return the cache folder that all processes of a user share on a machine."""
    return os.path.join(tempfile.gettempdir(), f"placewire-{os.getuid()}")


def fetch_local(path: Path) -> Path:
    """Return the local path of a state's file, fetched if missing; raises FileNotFoundError."""
    mirror = mirror_of(path)
    if mirror is None:
        return path
    for _ in range(FETCHES):
        try:
            os.utime(path)  # marks it as recently used
            return path
        except FileNotFoundError:
            mirror.fetch(path)
    return path


def temporary_path(path: Path) -> Path:
    """Return a name for a file that is renamed to `path` once it is complete."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


def list_names(folder: Path) -> list[str]:
    """List the names in a folder of a state."""
    mirror = mirror_of(folder)
    if mirror is not None:
        return mirror.remote.list(mirror.name_of(folder))
    return os.listdir(folder)


def read_file(path: Path) -> bytes:
    """Read the current content of a small file; raises FileNotFoundError."""
    mirror = mirror_of(path)
    return path.read_bytes() if mirror is None else mirror.remote.read(mirror.name_of(path))


def remove_file(path: Path) -> None:
    """Delete a file of a state, if it exists."""
    mirror = mirror_of(path)
    if mirror is not None:
        mirror.remote.remove(mirror.name_of(path))
    path.unlink(missing_ok=True)
