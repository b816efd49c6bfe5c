"""Writing the journal: one writer, whole lines, on disk before anybody hears of them."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path

import msgspec

from placewire.model.errors import Unusable
from placewire.state.journal import JournalFile, Mark, Note, list_files, name_file
from placewire.state.layout import write_file

FILE_BYTES = 1 << 27  # when a file is this long, the next begins
LOOK_BYTES = 1 << 24
LOCK_TRIES, LOCK_PAUSE_S = 4, 0.05
PROBE_BYTES = 1 << 14


class JournalWriter:
    """The one writer of a journal; opening it mends what a crash has left. Not for two threads."""

    def __init__(self, folder: Path, file_bytes: int = FILE_BYTES) -> None:
        self.folder = folder
        self.file_bytes = file_bytes
        self.broken = ""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder / "LOCK", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise Unusable(f"journal {folder}: cannot be used: {error.strerror}") from None
        self._take_lock()
        if not (folder / "ID").exists():
            write_file(folder / "ID", secrets.token_hex(16).encode())
        files = list_files(folder) or [name_file(folder, 0, 0)]
        self.file = files[-1]
        self._open(self.file)
        self.next_seq, self.size = self._mend(self.file)
        self.mark = Mark(folder, writing=True)
        self.publish()

    def _take_lock(self) -> None:
        """Become the one writer; whoever only looks has it for a moment."""
        for left in range(LOCK_TRIES, 0, -1):
            try:
                return fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if left > 1:
                    time.sleep(LOCK_PAUSE_S)
        os.close(self._lock)
        raise Unusable(f"journal {self.folder}: is in use by another process")

    def _open(self, file: JournalFile) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        lines = os.open(file.path, flags, 0o644)
        try:
            notes = os.open(file.notes, flags, 0o644)
        except OSError:
            os.close(lines)
            raise
        sync_folder(self.folder)
        self._lines, self._notes = lines, notes
        self.notes_size = os.fstat(self._notes).st_size

    def _mend(self, file: JournalFile) -> tuple[int, int]:
        """Cut off an unfinished line and notes of lines that are not there; gives seq and size."""
        rows = whole = at = 0
        while piece := os.pread(self._lines, LOOK_BYTES, at):
            rows += piece.count(b"\n")
            if (last := piece.rfind(b"\n")) >= 0:
                whole = at + last + 1
            at += len(piece)
        next_seq = file.first_seq + rows
        kept = 0
        for line in file.notes.read_bytes().splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break
            note = msgspec.json.decode(line, type=Note)
            if note.end_seq > next_seq:
                # A request of which only some lines are there was never replied to.
                next_seq = min(next_seq, note.seq)
            if note.seq >= next_seq:
                break
            kept += len(line)
        if next_seq < file.first_seq + rows:
            whole = self._find_row(next_seq - file.first_seq)
        os.ftruncate(self._lines, whole)
        os.ftruncate(self._notes, kept)
        self.notes_size = kept
        os.fsync(self._notes)
        os.fsync(self._lines)
        return next_seq, whole

    def _find_row(self, row: int) -> int:
        """Where a row of the file begins that is there."""
        with open(self.file.path, "rb") as raw:
            return sum(len(line) for line in islice(raw, row))

    @property
    def end_byte(self) -> int:
        return self.file.first_byte + self.size

    def append(self, lines: Sequence[bytes], notes: Sequence[Note]) -> None:
        """Write whole lines, each without its newline, and what is noted of them, for good.

        Readers see them only after `publish`. Raises OSError and leaves the journal as it was; if
        even that fails nothing more is written until it works.
        """
        if self.broken:
            self._take_back()
        if self.broken:
            raise OSError(errno.EIO, self.broken)
        if self.size >= self.file_bytes:
            self._turn()
        text = b"".join([line + b"\n" for line in lines])
        said = b"".join([msgspec.json.encode(note) + b"\n" for note in notes])
        try:
            if said:
                write_all(self._notes, said)
                os.fdatasync(self._notes)
            write_all(self._lines, text)
            os.fdatasync(self._lines)
        except OSError:
            self._take_back()
            raise
        self.size += len(text)
        self.notes_size += len(said)
        self.next_seq += len(lines)

    def publish(self) -> None:
        """Let readers see all that was appended."""
        self.mark.set(self.end_byte)

    def probe(self) -> None:
        """See whether there is room to write; raises OSError."""
        path = self.folder / "PROBE"
        try:
            path.write_bytes(bytes(PROBE_BYTES))
        finally:
            path.unlink(missing_ok=True)

    def _take_back(self) -> None:
        try:
            os.ftruncate(self._lines, self.size)
            os.ftruncate(self._notes, self.notes_size)
            os.fdatasync(self._lines)
            os.fdatasync(self._notes)
        except OSError as error:
            self.broken = f"what was half written cannot be taken back: {error.strerror}"
        else:
            self.broken = ""

    def _turn(self) -> None:
        """Begin the next file."""
        former = self._lines, self._notes
        file = name_file(self.folder, self.next_seq, self.end_byte)
        self._open(file)
        for descriptor in former:
            os.close(descriptor)
        self.file, self.size = file, 0

    def close(self) -> None:
        for descriptor in (self._lines, self._notes, self._lock):
            os.close(descriptor)


def drop_files(folder: Path, seq: int, before_s: float) -> int:
    """Delete files that end before an event and were written last before a time; gives how many."""
    gone = 0
    for file, following in pairwise(list_files(folder)):
        if following.first_seq > seq or file.path.stat().st_mtime >= before_s:
            break
        file.notes.unlink(missing_ok=True)
        file.path.unlink(missing_ok=True)
        gone += 1
    return gone


def files_from(folder: Path, seq: int) -> list[JournalFile]:
    """The files that have the line of this seq or later ones."""
    files = list_files(folder)
    ends = [file.first_seq for file in files[1:]] + [seq + 1]
    return [file for file, end in zip(files, ends, strict=True) if end > seq]


def read_entries(folder: Path, first_seq: int) -> Iterator[tuple[int, bytes]]:
    """All whole lines from a seq on with their seqs, for a restart that has to catch up."""
    for file in files_from(folder, first_seq):
        with open(file.path, "rb") as raw:
            for seq, line in enumerate(raw, file.first_seq):
                if seq >= first_seq and line.endswith(b"\n"):
                    yield seq, line[:-1]


def read_notes(folder: Path, first_seq: int) -> Iterator[Note]:
    """The notes of all lines from a seq on, also of some that begin before it."""
    for file in files_from(folder, first_seq):
        for line in file.notes.read_bytes().splitlines():
            note = msgspec.json.decode(line, type=Note)
            if max(note.end_seq, note.seq + 1) > first_seq:
                yield note


def write_all(descriptor: int, content: bytes) -> None:
    """Write all of it; raises OSError."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
