"""Deliver results to files: one pair of files in the state, or a folder with a file per batch.

`FileSink` appends after each commit to files in the state directory and records their lengths.
After a crash it truncates them to the recorded lengths and resumes. `FolderSink` writes numbered
files.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from placewire.model.errors import Unusable
from placewire.sinks.delivery import Delivered
from placewire.sinks.outbox import dead_letter_lines, result_lines
from placewire.storage.filesystem import Folder
from placewire.storage.layout import StateDir, write_file
from placewire.storage.manifest import Manifest, read_manifest


class FileCursor(msgspec.Struct, frozen=True):
    """The last delivered batch, and the lengths of the files after it."""

    batch: int = -1
    results_bytes: int = 0
    dead_bytes: int = 0
    with_data: bool = False


class FileSink:
    """Appends committed batches to files of the state, each exactly once."""

    def __init__(self, state: StateDir, with_data: bool) -> None:
        self.state = state
        self.results = state.sink / "results.jsonl"
        self.dead = state.sink / "dead.jsonl"
        self.cursor_path = state.sink / "cursor.json"
        self.cursor = FileCursor(with_data=with_data)
        if self.cursor_path.exists():
            try:
                self.cursor = msgspec.json.decode(self.cursor_path.read_bytes(), type=FileCursor)
            except msgspec.DecodeError as error:
                raise Unusable(f"state {state}: sink/cursor.json is damaged: {error}") from None
        if self.cursor.with_data != with_data:
            raise Unusable(
                f"state {state}: results were started"
                f" {'with' if self.cursor.with_data else 'without'} --with-data"
            )
        for path, length in (
            (self.results, self.cursor.results_bytes),
            (self.dead, self.cursor.dead_bytes),
        ):
            with open(path, "ab") as file:
                if file.tell() < length:
                    raise Unusable(
                        f"{path}: must have {length} bytes or more, got {file.tell()}; another"
                        " process has changed it"
                    )
                file.truncate(length)

    def deliver(self, latest: Manifest) -> None:
        """Append the batches after the cursor, up to `latest`."""
        if self.cursor.batch >= latest.batch:
            return
        with open(self.results, "ab") as results, open(self.dead, "ab") as dead:
            for batch in range(self.cursor.batch + 1, latest.batch + 1):
                manifest = latest if batch == latest.batch else read_manifest(self.state, batch)
                for lines in result_lines(self.state, manifest, self.cursor.with_data):
                    results.write(lines)
                dead.write(dead_letter_lines(self.state, manifest))
            for file in (results, dead):
                file.flush()
                os.fsync(file.fileno())
            lengths = results.tell(), dead.tell()
        self.cursor = FileCursor(latest.batch, *lengths, with_data=self.cursor.with_data)
        write_file(self.cursor_path, msgspec.json.encode(self.cursor))

    def copy_out(self, results: Path, dead: Path | None) -> None:
        """Copy the finished files to the user's paths; raises Unusable."""
        for source, target in ((self.results, results), (self.dead, dead)):
            if target is not None:
                try:
                    shutil.copyfile(source, target)
                except OSError as error:
                    raise Unusable(f"{target}: cannot be written: {error.strerror}") from None


FORMS = ("parquet", "csv", "jsonl")
NUMBERED = re.compile(r"(\d{9,})\.(parquet|csv|jsonl)")
PARTIAL = re.compile(rf"\.{NUMBERED.pattern}\.[0-9a-f]{{8}}")
MARK = ".placewire"  # names the owner of the folder


class FolderSink:
    """Writes each batch to its own file, in a folder given by a local path or a URI.

    The first commit claims the folder: another sink or another state would write files of the same
    names.
    """

    def __init__(
        self, name: str, path: Path | str, form: str = "parquet", dead: bool = False
    ) -> None:
        if form not in FORMS:
            raise Unusable(f"sink {name}: form must be one of {', '.join(FORMS)}, got {form!r}")
        self.name = name
        self.form = form
        self.dead = dead
        self.owner = ""
        try:
            self.folder = Folder(path)
            self.folder.make()
        except Unusable as error:
            raise Unusable(f"sink {name}: {error}") from None

    def write(self, delivered: Delivered) -> None:
        """Write the file of a batch atomically."""
        self.claim(delivered.manifest.key)
        if self.form == "jsonl":
            content = b"".join(delivered.lines())
        else:
            buffer = pa.BufferOutputStream()
            if self.form == "parquet":
                pq.write_table(delivered.table, buffer)
            else:
                pa_csv.write_csv(flatten(delivered.table), buffer)
            content = buffer.getvalue()
        self.folder.write(f"{delivered.batch:09d}.{self.form}", content)

    def check(self, key: tuple[int, int]) -> None:
        """Raise Unusable if the folder belongs to another sink or state; change nothing."""
        if self.owner != self._named(key):
            self._find_owner(key)

    def claim(self, key: tuple[int, int]) -> None:
        """Claim the folder for this sink of the state with this key; raises Unusable."""
        owner = self._named(key)
        if self.owner == owner:
            return
        found = self._find_owner(key)
        for name in self.folder.list():
            if PARTIAL.fullmatch(name):  # left by a killed run
                self.folder.remove(name)
        if not found:
            self.folder.write(MARK, owner.encode())
        self.owner = owner

    def _find_owner(self, key: tuple[int, int]) -> str:
        """Return the owner if it is this sink, empty if the folder has none; raises Unusable."""
        try:
            found = self.folder.read(MARK).decode()
        except FileNotFoundError:
            found = ""
            if any(NUMBERED.fullmatch(name) for name in self.folder.list()):
                found = "another owner's"
        if found and found != self._named(key):
            raise Unusable(
                f"sink {self.name}: {self.folder} belongs to another sink or state;"
                " choose another folder"
            )
        return found

    def _named(self, key: tuple[int, int]) -> str:
        return "-".join(f"{part:016x}" for part in key) + f" {self.name}"


class LineSink:
    """Writes lines to an open file, at least once."""

    def __init__(self, name: str, file: BinaryIO, dead: bool = False) -> None:
        self.name = name
        self.file = file
        self.dead = dead

    def write(self, delivered: Delivered) -> None:
        self.file.writelines(delivered.lines())
        self.file.flush()


def flatten(table: pa.Table) -> pa.Table:
    """Convert nested columns to JSON, for CSV."""
    for at, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            texts = [
                None if value is None else msgspec.json.encode(value).decode()
                for value in table[field.name].to_pylist()
            ]
            table = table.set_column(at, field.name, pa.array(texts, pa.string()))
    return table


def list_batch_files(folder: Folder) -> dict[int, str]:
    """Return the names of a folder's files, by batch number."""
    found = (NUMBERED.fullmatch(name) for name in folder.list())
    return {int(name[1]): name[0] for name in found if name}
