"""The state directory: its files, its lock and its format.

FORMAT               marks the directory, with the version of its format
LOCK                 held by the one writer
manifests/N.json     what batch N committed
files/bN-*.plw       array files written by batch N: blocks, segments, tombstones
sink/                delivered results
sinks/               the cursors of sinks, see `sinks/delivery.py`
lexicon-*.json       the lexicon of the settings, if they name one
intake/              recorded batches of unordered sources, see `storage/intake.py`
checkpoint/          Spark's checkpoint of a stream
ASKED.json           a plan request, see `storage/runtime_files.py`
LAG.json             the last measured lag of a run
WRITER.json          the writer of a state in an object store
SERVER.json          the address of the server
LEDGER               the ledger of the server, see `serve/ledger/__init__.py`
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
from pathlib import Path

import msgspec

from placewire.model.errors import Unusable
from placewire.model.settings import Settings
from placewire.storage.filesystem import as_uri, sync, without_secrets
from placewire.storage.mirror import (
    MOST_BYTES,
    Mirrored,
    fetch_local,
    list_names,
    mirror_of,
    open_mirror,
    read_file,
    temporary_path,
)
from placewire.text.words import Lexicon, read_lexicon

FORMAT = 3  # of the state directory, its manifests and its files
EXPECTED = {"what": "placewire state", "version": FORMAT}


class StateDir:
    """Paths of one state directory; for one in an object store, those of its mirror.

    Tasks carry `name`, by which each opens the state, or a mirror where it runs.
    """

    def __init__(self, root: Path, name: str | None = None) -> None:
        self.root = root
        self.name = name or str(root)
        self.token = ""  # identifies the writer of a state in an object store
        self.files = root / "files"
        self.manifests = root / "manifests"
        self.sink = root / "sink"

    @classmethod
    def at(cls, name: str) -> StateDir:
        """Open the directory by the name that tasks carry."""
        if "#" in name and as_uri(name) is not None:
            return cls(open_mirror(Mirrored.named(name)).root, name)
        return cls(Path(name))

    @classmethod
    def given(cls, where: str | Path, cache: str = "", most_bytes: int = MOST_BYTES) -> StateDir:
        """Open the directory that a user names, a local path or a URI; raises Unusable.

        A URI is mirrored in the folder `cache`; without it each process chooses one.
        """
        uri = as_uri(where)
        if uri is None:
            return cls(Path(where).absolute())
        if "#" in uri:
            raise Unusable(f"state {without_secrets(uri)}: must have no #")
        return cls.at(Mirrored(uri, cache, most_bytes).name)

    def __str__(self) -> str:
        mirror = mirror_of(self.files)
        return str(self.root) if mirror is None else str(mirror.remote)

    def check(self) -> None:
        """Reject a directory that is not a state, without changing it; raises Unusable."""
        try:
            found = msgspec.json.decode(read_file(self.root / "FORMAT"))
            if not isinstance(found, dict) or found.keys() != EXPECTED.keys():
                raise Unusable(f"state {self}: FORMAT is not readable")
            check_format(self, found["version"])
            if found != EXPECTED:
                raise Unusable(f"state {self}: FORMAT is not readable")
        except (FileNotFoundError, NotADirectoryError):
            self._check_empty()
        except (msgspec.DecodeError, UnicodeError):
            raise Unusable(f"state {self}: FORMAT is not readable") from None
        except OSError as error:
            raise Unusable(f"state {self}: cannot be used: {error.strerror}") from None

    def _check_empty(self) -> None:
        try:
            if mirror_of(self.files) is not None:
                empty = not set(list_names(self.root)) - {"WRITER.json"}
            else:
                empty = not self.root.exists() or (
                    self.root.is_dir() and all(map(is_leftover, self.root.iterdir()))
                )
        except OSError as error:
            raise Unusable(f"state {self}: cannot be used: {error.strerror}") from None
        if not empty:
            raise Unusable(f"state {self}: is not a placewire state directory and is not empty")

    def check_made(self) -> None:
        """Reject a directory that is not a state yet; raises Unusable."""
        try:
            read_file(self.root / "FORMAT")
        except OSError:
            if mirror_of(self.files) is None and not self.root.exists():
                made = "does not exist; `placewire replay`, `run` and `serve` make one"
                raise Unusable(f"state {self}: {made}") from None
            raise Unusable(f"state {self}: is not a placewire state directory") from None
        self.check()

    def open(self) -> None:
        """Check the directory or create it; raises Unusable."""
        self.check()
        self.make()

    def make(self) -> None:
        """Create missing parts of the directory; raises Unusable."""
        mark = self.root / "FORMAT"
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            try:
                read_file(mark)
            except FileNotFoundError:
                write_file(mark, msgspec.json.encode(EXPECTED))
            for part in (self.files, self.manifests, self.sink):
                part.mkdir(exist_ok=True)
        except OSError as error:
            raise Unusable(f"state {self}: cannot be used: {error.strerror}") from None

    def lock(self) -> int:
        """Lock the directory for the one writer, while the descriptor is open; raises Unusable.

        An object store has no locks: the last writer wins, and an earlier one fails at its next
        commit.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.root / "LOCK", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise Unusable(f"state {self}: cannot be used: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise Unusable(f"state {self}: is in use by another process") from None
        if mirror_of(self.files) is not None:
            self.token = secrets.token_hex(8)
            try:
                write_file(self.root / "WRITER.json", msgspec.json.encode({"token": self.token}))
            except BaseException:
                os.close(descriptor)
                raise
        return descriptor

    def check_writer(self) -> None:
        """Raise Unusable if another process has become the writer."""
        if self.token:
            found = msgspec.json.decode(read_file(self.root / "WRITER.json"))
            if found != {"token": self.token}:
                raise Unusable(f"state {self}: another process has become its writer")

    def new_name(self, batch: int, what: str) -> str:
        """Return a unique file name."""
        return f"b{batch:09d}-{what}-{secrets.token_hex(6)}.plw"

    def lexicon(self, digest: str) -> Path:
        """Return the path of the lexicon with this digest."""
        return self.root / f"lexicon-{digest[:16]}.json"

    def folder(self, name: str) -> str:
        """Return the path or URI of a folder of the state, for direct access."""
        if mirror_of(self.files) is None:
            return str(self.root / name)
        uri, mark, options = Mirrored.named(self.name).uri.partition("?")
        return f"{uri}/{name}{mark}{options}"

    def file(self, name: str) -> Path:
        return self.files / name


def check_format(state: StateDir, found: object) -> None:
    """Reject a state of another format; raises Unusable."""
    if found != FORMAT:
        raise Unusable(
            f"state {state}: has format {found}, and this version of placewire reads format"
            f" {FORMAT}; start with a new state directory"
        )


def is_leftover(path: Path) -> bool:
    """Return whether a run that died while creating the directory may have left this."""
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
    """Write a small file atomically and durably."""
    mirror = mirror_of(path)
    if mirror is not None:
        mirror.remote.write(mirror.name_of(path), content)
        return
    temporary = temporary_path(path)
    with open(temporary, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    sync(path.parent)


def keep_lexicon(state: StateDir, settings: Settings) -> None:
    """Copy the lexicon into the state: the user's file may change or disappear."""
    if settings.lexicon is None or settings.lexicon_digest is None:
        return
    target = state.lexicon(settings.lexicon_digest)
    if target.name not in list_names(state.root):
        try:
            raw = Path(settings.lexicon).read_bytes()
        except OSError as error:
            raise Unusable(
                f"lexicon {settings.lexicon}: cannot be read: {error.strerror}"
            ) from None
        if hashlib.sha256(raw).hexdigest() != settings.lexicon_digest:
            raise Unusable(f"lexicon {settings.lexicon}: has changed since it was checked")
        write_file(target, raw)


def open_lexicon(state: StateDir, settings: Settings) -> Lexicon | None:
    """Open the lexicon of a state; None if it has none. Raises Unusable."""
    if settings.lexicon_digest is None:
        return None
    return read_lexicon(str(fetch_local(state.lexicon(settings.lexicon_digest))))
