"""The state directory: what lies where, whose it is, and under which names.

FORMAT               what this directory is and which version of it
LOCK                 held by the one writer
manifests/N.json     what batch N committed
files/bN-*.plw       array files written by batch N: blocks, segments, ended rows
sink/                results as delivered so far
lexicon-*.json       the lexicon of the settings, if they name one
intake/              what a source without a total order gave, see `storage/intake_record.py`
checkpoint/          how far a stream has read its sources, as Spark notes it
ASKED.json           a plan that somebody asked for by hand
LAG.json             how far a run was behind when it looked last
WRITER.json          who writes a state that does not lie in a directory of this machine
SERVER.json          where the service that has the journal can be reached, see `storage/notes.py`
LEDGER               which ledger a service has had, see `serve/ledger/identity.py`
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
from placewire.storage.filesystem import as_uri, without_secrets
from placewire.storage.mirror import (
    MOST_BYTES,
    Mirrored,
    beside,
    here,
    list_names,
    mirror_of,
    open_mirror,
    read_file,
)
from placewire.text.lexicon import Lexicon, read_lexicon

FORMAT = 2  # of the state directory, its manifests and its files
EXPECTED = {"what": "placewire state", "version": FORMAT}


class StateDir:
    """Paths of one state directory; of one that lies elsewhere, those of its mirror.

    `name` is what tasks carry, so that each finds the state, or makes a mirror where it runs.
    """

    def __init__(self, root: Path, name: str | None = None) -> None:
        self.root = root
        self.name = name or str(root)
        self.token = ""  # by which the writer of a state that lies elsewhere is known
        self.files = root / "files"
        self.manifests = root / "manifests"
        self.sink = root / "sink"

    @classmethod
    def at(cls, name: str) -> StateDir:
        """The directory by its name, as tasks carry it."""
        if "#" in name and as_uri(name) is not None:
            return cls(open_mirror(Mirrored.named(name)).root, name)
        return cls(Path(name))

    @classmethod
    def given(cls, where: str | Path, cache: str = "", most_bytes: int = MOST_BYTES) -> StateDir:
        """The directory as a user names it: a path of this machine, or a URI; raises Unusable.

        A URI is used through mirrors in the folder `cache`; without it each process chooses one.
        """
        uri = as_uri(where)
        if uri is None:
            return cls(Path(where).absolute())
        if "#" in uri:
            raise Unusable(f"state {without_secrets(uri)}: must have no #")
        return cls.at(Mirrored(uri, cache, most_bytes).name)

    def __str__(self) -> str:
        mirror = mirror_of(self.files)
        return str(self.root) if mirror is None else str(mirror.place)

    def check(self) -> None:
        """Refuse a directory that is something else, and leave it as it is; raises Unusable."""
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
                    self.root.is_dir() and all(map(is_ours, self.root.iterdir()))
                )
        except OSError as error:
            raise Unusable(f"state {self}: cannot be used: {error.strerror}") from None
        if not empty:
            raise Unusable(f"state {self}: is not a placewire state directory and is not empty")

    def check_made(self) -> None:
        """Refuse what is no state yet; raises Unusable."""
        try:
            read_file(self.root / "FORMAT")
        except OSError:
            if mirror_of(self.files) is None and not self.root.exists():
                made = "does not exist; `placewire replay`, `run` and `serve` make one"
                raise Unusable(f"state {self}: {made}") from None
            raise Unusable(f"state {self}: is not a placewire state directory") from None
        self.check()

    def open(self) -> None:
        """Recognise the directory or make it; raises Unusable."""
        self.check()
        self.make()

    def make(self) -> None:
        """Make what is missing of the directory; raises Unusable."""
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
        """Become the one writer, for the life of the descriptor; raises Unusable.

        A store cannot tell whether a writer still lives: the last to come is the one, and whoever
        was before finds out at its next commit.
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
        """Refuse to go on if another has become the writer; raises Unusable."""
        if self.token:
            found = msgspec.json.decode(read_file(self.root / "WRITER.json"))
            if found != {"token": self.token}:
                raise Unusable(f"state {self}: another process has become its writer")

    def new_name(self, batch: int, what: str) -> str:
        """A file name that no other attempt will ever use."""
        return f"b{batch:09d}-{what}-{secrets.token_hex(6)}.plw"

    def lexicon(self, digest: str) -> Path:
        """Where the lexicon of this digest is."""
        return self.root / f"lexicon-{digest[:16]}.json"

    def folder(self, name: str) -> str:
        """A folder of the state that is written and read by its own path or URI."""
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
    mirror = mirror_of(path)
    if mirror is not None:
        mirror.place.write(mirror.name_of(path), content)
        return
    temporary = beside(path)
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


def keep_lexicon(state: StateDir, settings: Settings) -> None:
    """Copy the lexicon into the state: the user's file may change, move or go."""
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
    """The lexicon by which a state scores, none if it has none; raises Unusable."""
    if settings.lexicon_digest is None:
        return None
    return read_lexicon(str(here(state.lexicon(settings.lexicon_digest))))
