"""The file sink: results delivered into files, with a cursor of its own.

It appends after each commit to files inside the state directory and notes how far it has come;
after a crash it cuts them back to the note and goes on. The finished files are copied out whole.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec

from placewire.engine.outbox import dead_letter_lines, result_lines
from placewire.model.errors import Unusable
from placewire.state.layout import StateDir, write_file
from placewire.state.manifest import Manifest, read_manifest


class Cursor(msgspec.Struct, frozen=True):
    """The last delivered batch, and how long the files were after it."""

    batch: int = -1
    results_bytes: int = 0
    dead_bytes: int = 0
    with_data: bool = False


class FileSink:
    """Delivers committed batches in order, each exactly once."""

    def __init__(self, state: StateDir, with_data: bool) -> None:
        self.state = state
        self.results = state.sink / "results.jsonl"
        self.dead = state.sink / "dead.jsonl"
        self.note = state.sink / "cursor.json"
        self.cursor = Cursor(with_data=with_data)
        if self.note.exists():
            try:
                self.cursor = msgspec.json.decode(self.note.read_bytes(), type=Cursor)
            except msgspec.DecodeError as error:
                raise Unusable(f"state {state}: sink/cursor.json is damaged: {error}") from None
        if self.cursor.with_data != with_data:
            raise Unusable(
                f"state {state}: results were begun"
                f" {'with' if self.cursor.with_data else 'without'} --with-data"
            )
        for path, length in (
            (self.results, self.cursor.results_bytes),
            (self.dead, self.cursor.dead_bytes),
        ):
            with open(path, "ab") as file:
                if file.tell() < length:
                    raise Unusable(
                        f"{path}: must have {length} bytes or more, got {file.tell()}; it was"
                        " changed by somebody else"
                    )
                file.truncate(length)

    def deliver(self, latest: Manifest) -> None:
        """Append every batch after the cursor up to `latest`."""
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
        self.cursor = Cursor(latest.batch, *lengths, with_data=self.cursor.with_data)
        write_file(self.note, msgspec.json.encode(self.cursor))

    def copy_out(self, results: Path, dead: Path | None) -> None:
        """Put the finished files where the user wants them."""
        for source, target in ((self.results, results), (self.dead, dead)):
            if target is not None:
                try:
                    shutil.copyfile(source, target)
                except OSError as error:
                    raise Unusable(f"{target}: cannot be written: {error.strerror}") from None
