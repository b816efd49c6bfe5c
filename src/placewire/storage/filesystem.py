"""Places: folders on any file system that pyarrow opens by a URI, object stores above all.

A file is written whole or not at all. Stores of objects see to that themselves; elsewhere it is
written beside its place and renamed.
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
NAMING = ("abfs", "abfss")  # in which what stands before the @ is no key, but names a place


class Unreachable(Unusable):
    """A place that cannot be reached or refuses: another time it may not."""


def as_uri(text: str | Path) -> str | None:
    """A URI, also one whose slashes a path has swallowed; None for a path of this machine.

    Raises Unusable for a URI of another kind.
    """
    found = URI.fullmatch(str(text))
    if found is None:
        if OTHER.match(str(text)):
            known = ", ".join(SCHEMES)
            raise Unusable(f"{without_secrets(str(text))}: its scheme must be one of {known}")
        return None
    return f"{found[1]}://{'/' if found[1] == 'file' else ''}{found[2].rstrip('/')}"


def without_secrets(where: str) -> str:
    """A URI as it may be shown: keys and options are left out; a path as it is.

    A secret with a slash that is not written as %2F ends what a URI has for keys. Then it cannot
    be told where the secret ends, and only the scheme is shown.
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
    """A folder somewhere; files in it go by their names, with slashes between folders.

    It is given by a URI, or by a path of this machine.
    """

    def __init__(self, where: str | Path) -> None:
        uri = as_uri(where)
        self.label = str(where) if uri is None else without_secrets(uri)
        if uri is not None and not re.search("//+[^/]", self.label):
            raise Unusable(f"{self.label}: must name a bucket or a folder")
        try:
            if uri is None:
                self.system, self.root = fs.LocalFileSystem(), str(Path(where).absolute())
            else:
                self.system, self.root = fs.FileSystem.from_uri(send_at_once(uri))
        except (OSError, ValueError, NotImplementedError) as error:
            why = first_line(error)
            if uri is not None:
                why = why.replace(send_at_once(uri), self.label)  # pyarrow says it as it is
            raise Unusable(f"{self.label}: cannot be opened: {why}") from None

    def __str__(self) -> str:
        return self.label

    def make(self) -> None:
        """Make the folder, where folders have to be made; raises Unusable."""
        if self.system.type_name in OBJECTS:
            return
        try:
            self.system.create_dir(self.root, recursive=True)
        except OSError as error:
            raise Unusable(f"{self.label}: cannot be written: {first_line(error)}") from None

    def exists(self) -> bool:
        """Whether there is a folder, or something in it where folders are not made."""
        with self._telling("cannot be listed", ""):
            kind: fs.FileType = self.system.get_file_info(self.root).type
            return bool(kind == fs.FileType.Directory)

    def write(self, name: str, content: bytes | pa.Buffer | Path) -> None:
        """Put a file, from memory or from this machine, in the place of any other."""
        with self._telling("cannot be written", name):
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
        """The content of a file; raises FileNotFoundError."""
        with (
            self._telling("cannot be read", name),
            self.system.open_input_stream(f"{self.root}/{name}") as stream,
        ):
            content: bytes = stream.read()
            return content

    def fetch(self, name: str, to: Path) -> None:
        """Copy a file to this machine, whole or not at all; raises FileNotFoundError."""
        partial = to.with_name(f".{to.name}.{secrets.token_hex(4)}")
        try:
            with (
                self._telling("cannot be read", name),
                self.system.open_input_stream(f"{self.root}/{name}") as stream,
                open(partial, "xb") as file,
            ):
                shutil.copyfileobj(stream, file, 1 << 22)
            os.replace(partial, to)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise

    def list(self, folder: str = "", deep: bool = False) -> list[str]:
        """The names of what is in a folder, folders too; if `deep`, of all files below it."""
        with self._telling("cannot be listed", folder):
            top = f"{self.root}/{folder}".rstrip("/")
            selector = fs.FileSelector(top, allow_not_found=True, recursive=deep)
            found = self.system.get_file_info(selector)
            if deep:
                return [
                    os.path.relpath(one.path, top) for one in found if one.type == fs.FileType.File
                ]
            return [one.base_name for one in found]

    def remove(self, name: str) -> None:
        """Delete a file, if it is there."""
        with (
            self._telling("cannot be deleted", name),
            contextlib.suppress(FileNotFoundError),
        ):
            self.system.delete_file(f"{self.root}/{name}")

    @contextlib.contextmanager
    def _telling(self, what: str, name: str) -> Iterator[None]:
        """Tell what goes wrong with a file in one line."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise Unreachable(f"{self.label}: {name} {what}: {first_line(error)}") from None


def send_at_once(uri: str) -> str:
    """The URI with S3's option to send what is small in one request instead of three."""
    if not uri.startswith("s3:") or "allow_delayed_open=" in uri:
        return uri
    return f"{uri}{'&' if '?' in uri else '?'}allow_delayed_open=true"


def sync(path: str) -> None:
    """Let a file survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
