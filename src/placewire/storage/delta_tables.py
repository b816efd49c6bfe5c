"""Open Delta tables with delta-rs, read their logs as streams, and report errors in one line.

The package `deltalake` is optional and needs no JVM. A table is in a local folder or in a store,
given by its URI; options are those of delta-rs for the store.

A stream has the files of a snapshot, then those of each commit. delta-rs reads snapshots; commits
are read from their files as Delta's protocol defines them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import msgspec
import pyarrow as pa

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
            raise Unusable(f"{self.label}: delta-rs does not support '%' in a path")
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
        raise Unusable(f"{label}: requires unsupported reader features: {', '.join(unknown)}")
    if reader > LAST_READER:
        raise Unusable(f"{label}: its reader version must be 1..{LAST_READER}, got {reader}")
    mode = configuration.get(MAPPING) or "none"
    if mode != "none":
        raise Unusable(f"{label}: column mapping is not supported: {MAPPING} is {mode}")


def join_causes(error: Exception) -> str:
    """Join the lines of a delta-rs error, which lists causes below each other."""
    lines = COLOURS.sub("", str(error)).splitlines()
    return ": ".join(line.strip() for line in lines if line.strip()) or type(error).__name__


class DataFile(NamedTuple):
    """A Parquet file of a table, from its folder, with the values of its partition."""

    path: str
    values: dict[str, Any]


class Position(NamedTuple):
    """The position of a stream: the number of files read of a version, which has `of`.

    The version `snapshot` has all files of the table at that time, each later version those that it
    added. Both are -1 at the start.
    """

    table: str = ""
    snapshot: int = -1
    version: int = -1
    files: int = 0
    of: int = 0


class SkippedCommits(NamedTuple):
    """Commits that a stream skips instead of failing, after Delta's options."""

    deletes: bool = False  # ignoreDeletes: commits that only remove data
    changes: bool = False  # skipChangeCommits: all commits that remove data


class DeltaLog:
    """The files of a table by version; `known` is the version whose columns the stream has."""

    def __init__(self, place: TableLocation, known: int, skipped: SkippedCommits) -> None:
        self.place = place
        self.known = known
        self.skipped = skipped
        self.system = place.files()
        self.found: dict[int, list[DataFile]] = {}

    def latest(self, start: Position) -> Position:
        """Return the last version of the table, for a stream at `start`; raises Unusable."""
        table = self.place.open()
        id_ = str(table.metadata().id)
        if start.table and (id_ != start.table or table.version() < start.version):
            raise Unusable(
                f"{self.place.label}: is another table than the one that the state has read"
            )
        snapshot = table.version() if start.snapshot < 0 else start.snapshot
        return Position(id_, snapshot, table.version())

    def advance(self, start: Position, last: Position, most: int) -> Position:
        """Return the end of a portion of at most `most` files.

        Raises Unusable for a version that cannot be taken, if it is the first of the portion.
        """
        end = start._replace(table=last.table, snapshot=last.snapshot)
        self.found = {v: files for v, files in self.found.items() if v >= end.version}
        left = most
        while left and (end.files < end.of or end.version < last.version):
            if end.files == end.of:
                version = end.version + 1 if end.version >= 0 else end.snapshot
                try:
                    files = self.files(version, end.snapshot)
                except Unusable:
                    if left < most:
                        return end  # read the versions before it first
                    raise
                end = end._replace(version=version, files=0, of=len(files))
            some = min(left, end.of - end.files)
            end, left = end._replace(files=end.files + some), left - some
        return end

    def between(self, start: Position, end: Position) -> Iterator[DataFile]:
        """Yield the files from one position to another, in order."""
        at = max(start.version, end.snapshot)
        if start.version >= 0 and start.files == start.of:
            at += 1
        for version in range(at, end.version + 1):
            files = self.files(version, end.snapshot)
            first = start.files if version == start.version else 0
            yield from files[first : end.files if version == end.version else None]

    def files(self, version: int, snapshot: int) -> list[DataFile]:
        """Return the files of a version; raises Unusable."""
        if version not in self.found:
            whole = version == snapshot
            self.found[version] = self._list(version) if whole else self._read(version)
        return self.found[version]

    def _list(self, version: int) -> list[DataFile]:
        """Return all files of a snapshot, in the order of their times."""
        table = self.place.open(version)
        check_table(self.place, table)
        adds = pa.table(table.get_add_actions()).to_pylist()
        adds.sort(key=lambda add: (add["modification_time"], add["path"]))
        return [self._file(add["path"], add.get("partition") or {}) for add in adds]

    def _read(self, version: int) -> list[DataFile]:
        """Return the files that a commit adds."""
        try:
            with self.system.open_input_stream(log_file(version)) as stream:
                actions = list(read_actions(stream.read()))
        except FileNotFoundError:
            raise Unusable(
                f"{self.place.label}: version {version} is gone from its log before it was read;"
                " begin a new state"
            ) from None
        except OSError as error:
            raise Unreachable(
                f"{self.place.label}: version {version} cannot be read: {join_causes(error)}"
            ) from None
        adds = [facts for name, facts in actions if name == "add" and facts["dataChange"]]
        removes = [facts for name, facts in actions if name == "remove" and facts["dataChange"]]
        self._check(version, actions)
        if removes:
            self._check_removal(version, bool(adds))
            return []
        if any(add.get("deletionVector") for add in adds):
            raise Unusable(
                f"{self.place.label}: version {version} has deletion vectors,"
                " which are not supported"
            )
        return [self._file(add["path"], add["partitionValues"]) for add in adds]

    def _check(self, version: int, actions: list[tuple[str, dict[str, Any]]]) -> None:
        """Check that a table is still readable after a commit; raises Unusable."""
        label = f"{self.place.label}: version {version}"
        for name, facts in actions:
            if name == "protocol":
                features = facts.get("readerFeatures") or ()
                check_readable(label, facts["minReaderVersion"], features, {})
            elif name == "metaData":
                check_readable(label, 1, (), facts.get("configuration") or {})
                if version > self.known:
                    raise Unreachable(f"{label} may have other columns; it is read with these next")

    def _check_removal(self, version: int, adds: bool) -> None:
        """Raise Unusable for a commit that removes data, unless an option skips it."""
        if self.skipped.changes or (self.skipped.deletes and not adds):
            return
        what = "changes rows" if adds else "deletes rows"
        option = "skipChangeCommits" if adds else "ignoreDeletes"
        raise Unusable(
            f"{self.place.label}: version {version} {what}, and a stream only takes what is added;"
            f" with the option {option} it is left out"
        )

    def _file(self, path: str, values: dict[str, Any]) -> DataFile:
        if "://" in path or path.startswith("/"):
            raise Unusable(f"{self.place.label}: has files of another table, got {path}")
        return DataFile(unquote(path), values)


def check_table(place: TableLocation, table: Any) -> None:
    """A snapshot that would be read wrong is refused; raises Unusable."""
    protocol = table.protocol()
    features = protocol.reader_features or ()
    check_readable(
        place.label, protocol.min_reader_version, features, table.metadata().configuration
    )
    if "deletionVectors" in features:
        with place.reporting_errors("its deletion vectors cannot be read"):
            rows = pa.RecordBatchReader.from_stream(table.deletion_vectors()).read_all().num_rows
        if rows:
            raise Unusable(f"{place.label}: has deletion vectors, which are not supported")
    for name in table.metadata().partition_columns:
        if pa.types.is_binary(pa.schema(table.schema()).field(name).type):
            raise Unusable(f"{place.label}: binary partition column {name} is not supported")


def log_file(version: int) -> str:
    """Return the path of a commit's file."""
    return f"_delta_log/{version:020d}.json"


def read_actions(commit: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the actions of a commit with their names."""
    for line in commit.splitlines():
        if line.strip():
            yield from msgspec.json.decode(line).items()
