"""Open Delta tables with delta-rs, and report its errors in one line.

The package `deltalake` is optional and needs no JVM. A table is in a local folder or in a store,
given by its URI; options are those of delta-rs for the store.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from placewire.model.errors import Unusable
from placewire.storage.filesystem import Unreachable, without_secrets

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyarrow import fs

MAPPING = "delta.columnMapping.mode"
# Features whose tables are read correctly, some only while the table makes no use of them.
READABLE = {
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}
LAST_READER = 3  # the version of the protocol that names features
COLOURS = re.compile("\x1b\\[\\d+m|\u21b3")


class TableLocation:
    """The path and store options of a table; messages begin with `label`."""

    def __init__(self, who: str, path: str, options: Mapping[str, str] | None = None) -> None:
        if importlib.util.find_spec("deltalake") is None:
            raise Unusable(
                "format delta: the package deltalake is not there; pip install 'placewire[delta]'"
            )
        self.path = path
        self.options = dict(options or {})
        self.label = f"{who} {without_secrets(path) if '://' in path else path}"
        if self.folder is not None and "%" in path:
            raise Unusable(f"{self.label}: delta-rs takes no '%' in a path")
        if self.folder is not None and self.folder.is_file():
            raise Unusable(f"{self.label}: must be a folder, got a file")

    @property
    def folder(self) -> Path | None:
        """The folder, if it is a local one."""
        return None if "://" in self.path else Path(self.path)

    def find(self) -> DeltaTable | None:
        """Open the table; None if it does not exist yet. Raises Unusable."""
        from deltalake import DeltaTable

        with self.reporting_errors("cannot be opened"):
            if not DeltaTable.is_deltatable(self.path, storage_options=self.options):
                return None
            return DeltaTable(self.path, storage_options=self.options)

    def open(self, version: int | None = None) -> DeltaTable:
        """Open the latest or a given version of the table; raises Unusable."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        what = "cannot be opened" if version is None else f"version {version} cannot be opened"
        with self.reporting_errors(what):
            try:
                return DeltaTable(self.path, version=version, storage_options=self.options)
            except TableNotFoundError:
                raise Unusable(f"{self.label}: has no Delta table") from None

    def files(self) -> fs.FileSystem:
        """Return the file system of the table's folder."""
        from deltalake.fs import DeltaStorageHandler
        from pyarrow import fs

        with self.reporting_errors("cannot be opened"):
            return fs.PyFileSystem(DeltaStorageHandler(self.path, self.options))

    @contextlib.contextmanager
    def reporting_errors(self, what: str, lasting: bool = True) -> Iterator[None]:
        """Turn delta-rs errors into one line; if not `lasting`, a retry may succeed."""
        from deltalake.exceptions import (
            CommitFailedError,
            DeltaError,
            DeltaProtocolError,
            SchemaMismatchError,
        )

        try:
            yield
        except (DeltaError, OSError) as error:
            ends = isinstance(error, (DeltaProtocolError, SchemaMismatchError)) or (
                lasting and not isinstance(error, (CommitFailedError, OSError))
            )
            kind = Unusable if ends else Unreachable
            raise kind(f"{self.label}: {what}: {join_causes(error)}") from None


def check_readable(
    label: str, reader: int, features: Collection[str], configuration: Mapping[str, str | None]
) -> None:
    """Reject a table whose rows would be read incorrectly; raises Unusable."""
    unknown = sorted(set(features) - READABLE)
    if unknown:
        raise Unusable(f"{label}: needs what is not read here: {', '.join(unknown)}")
    if reader > LAST_READER:
        raise Unusable(f"{label}: its reader version must be 1..{LAST_READER}, got {reader}")
    mode = configuration.get(MAPPING) or "none"
    if mode != "none":
        raise Unusable(f"{label}: columns that are mapped are not read here: {MAPPING} is {mode}")


def join_causes(error: Exception) -> str:
    """Join the lines of a delta-rs error, which lists causes below each other."""
    lines = COLOURS.sub("", str(error)).splitlines()
    return ": ".join(line.strip() for line in lines if line.strip()) or type(error).__name__
