"""Folders on local disks and object stores, through the file systems of pyarrow.

Files are written atomically: object stores do so themselves, elsewhere a temporary file is renamed.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from placewire.model.errors import Unusable, first_line

SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs", "file")
OBJECTS = ("s3", "gcs", "abfs")  # pyarrow's types of file systems that have objects
OTHER = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
URI = re.compile(rf"({'|'.join(SCHEMES)}):/+(.*)", re.DOTALL)
PARTS = re.compile(r"([^:/]+)://([^/?#]*)(([^?#]*).*)", re.DOTALL)
HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(:\d*)?")
NAMING = ("abfs", "abfss")  # schemes in which the part before the @ names a container, not a key


class Unreachable(Unusable):
    """A store that cannot be reached or denies access; a retry may succeed."""


def as_uri(text: str | Path) -> str | None:
    """Return a URI, with slashes restored that `Path` removed; None for a local path.

    Raises Unusable for an unknown scheme.
    """
    found = URI.fullmatch(str(text))
    if found is None:
        if OTHER.match(str(text)):
            known = ", ".join(SCHEMES)
            raise Unusable(f"{without_secrets(str(text))}: its scheme must be one of {known}")
        return None
    return f"{found[1]}://{'/' if found[1] == 'file' else ''}{found[2].rstrip('/')}"


def without_secrets(where: str) -> str:
    """Return a URI without keys and options, for messages; a path stays as it is.

    Where a secret has a slash that is not escaped as %2F, its end is unknown and only the scheme is
    shown.
    """
    parts = PARTS.fullmatch(where)
    if parts is None:
        return where
    scheme, authority, rest, path = parts.groups()
    keys, at, host = authority.rpartition("@")
    if not HOST.fullmatch(host) or (":" in host and "@" in rest):
        return f"{scheme}://..."
    if scheme in NAMING and at:
        host = f"{keys.partition(':')[0]}@{host}"
    return f"{scheme}://{host}{path}"


class Folder:
    """A folder given by a URI or a local path; file names may contain slashes."""

    def __init__(self, where: str | Path) -> None:
        uri = as_uri(where)
        self.label = str(where) if uri is None else without_secrets(uri)
        if uri is not None and not re.search("//+[^/]", self.label):
            raise Unusable(f"{self.label}: must name a bucket or a folder")
        try:
            if uri is None:
                self.system, self.root = fs.LocalFileSystem(), str(Path(where).absolute())
            else:
                self.system, self.root = fs.FileSystem.from_uri(allow_single_request(uri))
        except (OSError, ValueError, NotImplementedError) as error:
            why = first_line(error)
            if uri is not None:
                why = why.replace(
                    allow_single_request(uri), self.label
                )  # pyarrow quotes it with secrets
            raise Unusable(f"{self.label}: cannot be opened: {why}") from None

    def __str__(self) -> str:
        return self.label

    def make(self) -> None:
        """Create the folder, unless the store has no folders; raises Unusable."""
        if self.system.type_name in OBJECTS:
            return
        try:
            self.system.create_dir(self.root, recursive=True)
        except OSError as error:
            raise Unusable(f"{self.label}: cannot be written: {first_line(error)}") from None

    def exists(self) -> bool:
        """Return whether the folder exists; in an object store, whether it has files."""
        with self._reporting_errors("cannot be listed", ""):
            kind: fs.FileType = self.system.get_file_info(self.root).type
            return bool(kind == fs.FileType.Directory)

    def write(self, name: str, content: bytes | pa.Buffer | Path) -> None:
        """Write or replace a file, from memory or from a local file."""
        with self._reporting_errors("cannot be written", name):
            target = f"{self.root}/{name}"
            if self.system.type_name in OBJECTS:
                self._send(target, content)
                return
            folder, _, last = target.rpartition("/")
            partial = f"{folder}/.{last}.{secrets.token_hex(4)}"
            self.system.create_dir(folder, recursive=True)
            self._send(partial, content)
            if self.system.type_name == "local":
                sync(partial)
            self.system.move(partial, target)

    def _send(self, target: str, content: bytes | pa.Buffer | Path) -> None:
        with self.system.open_output_stream(target) as stream:
            if not isinstance(content, Path):
                stream.write(content)
                return
            with open(content, "rb") as source:
                shutil.copyfileobj(source, stream, 1 << 22)

    def read(self, name: str) -> bytes:
        """Read a file; raises FileNotFoundError."""
        with (
            self._reporting_errors("cannot be read", name),
            self.system.open_input_stream(f"{self.root}/{name}") as stream,
        ):
            return stream.read()

    def fetch(self, name: str, to: Path) -> None:
        """Download a file atomically; raises FileNotFoundError."""
        partial = to.with_name(f".{to.name}.{secrets.token_hex(4)}")
        try:
            with (
                self._reporting_errors("cannot be read", name),
                self.system.open_input_stream(f"{self.root}/{name}") as stream,
                open(partial, "xb") as file,
            ):
                shutil.copyfileobj(stream, file, 1 << 22)
            os.replace(partial, to)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise

    def list(self, folder: str = "", deep: bool = False) -> list[str]:
        """List the names in a folder, folders included; if `deep`, all files below it."""
        with self._reporting_errors("cannot be listed", folder):
            top = f"{self.root}/{folder}".rstrip("/")
            selector = fs.FileSelector(top, allow_not_found=True, recursive=deep)
            found = self.system.get_file_info(selector)
            if deep:
                return [
                    os.path.relpath(one.path, top) for one in found if one.type == fs.FileType.File
                ]
            return [one.base_name for one in found]

    def remove(self, name: str) -> None:
        """Delete a file, if it exists."""
        with (
            self._reporting_errors("cannot be deleted", name),
            contextlib.suppress(FileNotFoundError),
        ):
            self.system.delete_file(f"{self.root}/{name}")

    @contextlib.contextmanager
    def _reporting_errors(self, what: str, name: str) -> Iterator[None]:
        """Turn errors of the file system into one line."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise Unreachable(f"{self.label}: {name} {what}: {first_line(error)}") from None


def allow_single_request(uri: str) -> str:
    """Add S3's option to write small files with one request instead of three."""
    if not uri.startswith("s3:") or "allow_delayed_open=" in uri:
        return uri
    return f"{uri}{'&' if '?' in uri else '?'}allow_delayed_open=true"


def write_all(descriptor: int, content: bytes | memoryview) -> None:
    """Write all bytes: one call writes at most 2 GiB. Raises OSError."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def sync(path: str | Path) -> None:
    """Flush a file or folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
