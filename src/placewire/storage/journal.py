"""The journal: an append-only log of accepted events, in files of lines.

journal/ID                    identifies the journal
journal/LOCK                  held by the writer
journal/MARK                  durable length in bytes, mapped by readers
journal/SEQ-BYTE.jsonl        lines from this seq on, which starts at this byte of the journal
journal/SEQ-BYTE.notes        metadata of some of these lines: their owners, replies

A line's number is its seq. Offsets count the bytes of all files, so that old files can be deleted.
"""

from __future__ import annotations

import bisect
import errno
import fcntl
import mmap
import os
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from placewire.model.errors import Unusable
from placewire.storage.filesystem import sync, write_all
from placewire.storage.layout import StateDir, write_file

NAME = re.compile(r"(\d{15})-(\d{18})\.jsonl$")
MARK_BYTES = 8
READ_BYTES = 1 << 16


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """Metadata of `rows` lines from `seq` on: their owner, and the reply to their request.

    A reply belongs to a request of `lines` lines, which are kept together or not at all.
    """

    seq: int
    rows: int = 1
    owner: str = ""
    key: str = ""  # an idempotency key
    at_us: int = 0
    reply: dict[str, Any] | None = None
    lines: int = 0

    @property
    def end_seq(self) -> int:
        """The seq after the described lines."""
        return self.seq + max(self.rows, self.lines)


class JournalFile(NamedTuple):
    """One file of the journal, and the seq and byte at its start."""

    path: Path
    first_seq: int
    first_byte: int

    @property
    def notes(self) -> Path:
        return self.path.with_suffix(".notes")

    @property
    def end_byte(self) -> int:
        return self.first_byte + self.path.stat().st_size


def journal_folder(state: StateDir) -> Path:
    return state.root / "journal"


def name_file(folder: Path, first_seq: int, first_byte: int) -> JournalFile:
    path = folder / f"{first_seq:015d}-{first_byte:018d}.jsonl"
    return JournalFile(path, first_seq, first_byte)


def list_files(folder: Path) -> list[JournalFile]:
    """List the files in order."""
    names = (NAME.match(path.name) for path in folder.iterdir())
    return sorted(
        (name_file(folder, int(name[1]), int(name[2])) for name in names if name),
        key=lambda file: file.first_byte,
    )


def read_id(folder: Path) -> str:
    """Read the journal's id; raises Unusable if there is none."""
    try:
        return (folder / "ID").read_text().strip()
    except OSError as error:
        raise Unusable(f"journal {folder}: cannot be read: {error.strerror}") from None


class Mark:
    """The durable length of the journal: eight bytes that processes share."""

    def __init__(self, folder: Path, writing: bool = False) -> None:
        path = folder / "MARK"
        flags = os.O_RDWR | os.O_CREAT if writing else os.O_RDONLY
        try:
            descriptor = os.open(path, flags, 0o644)
        except OSError as error:
            raise Unusable(f"journal {folder}: cannot be read: {error.strerror}") from None
        try:
            if writing and os.fstat(descriptor).st_size < MARK_BYTES:
                os.ftruncate(descriptor, MARK_BYTES)
            access = mmap.ACCESS_WRITE if writing else mmap.ACCESS_READ
            self.view = memoryview(mmap.mmap(descriptor, MARK_BYTES, access=access)).cast("q")
        finally:
            os.close(descriptor)

    def get(self) -> int:
        return int(self.view[0])

    def set(self, byte: int) -> None:
        self.view[0] = byte


class JournalReader:
    """Reads single lines of the journal by seq."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = Mark(folder)
        self.known: dict[int, list[tuple[int, int]]] = {}  # by file: seqs and their local bytes

    def read(self, seq: int) -> bytes | None:
        """Read a line without its newline; None if it does not exist or was deleted."""
        files = [file for file in list_files(self.folder) if file.first_seq <= seq]
        if seq < 0 or not files:
            return None
        file = files[-1]
        places = self.known.setdefault(file.first_byte, [(file.first_seq, 0)])
        nearest, start = places[bisect.bisect_left(places, (seq + 1, 0)) - 1]
        try:
            return self._walk(file, seq, nearest, start)
        except FileNotFoundError:
            return None

    def _walk(self, file: JournalFile, wanted: int, seq: int, start: int) -> bytes | None:
        """Scan to the line from an earlier one, and remember some positions on the way."""
        limit = self.mark.get() - file.first_byte
        places = self.known[file.first_byte]
        with open(file.path, "rb") as raw:
            raw.seek(start)
            while start < limit:
                # Whole lines: at least one, however long it is.
                lines = raw.readlines(min(READ_BYTES, limit - start))
                if seq + len(lines) > wanted:
                    end = start + sum(map(len, lines[: wanted - seq + 1]))
                    return lines[wanted - seq].removesuffix(b"\n") if end <= limit else None
                seq += len(lines)
                start += sum(map(len, lines))
                # Several threads may scan; positions stay sorted.
                if (seq, start) > places[-1]:
                    bisect.insort(places, (seq, start))
        return None


FILE_BYTES = 1 << 27  # a longer file is followed by a new one
SCAN_BYTES = 1 << 24
LOCK_TRIES, LOCK_PAUSE_S = 4, 0.05
PROBE_BYTES = 1 << 14


class JournalWriter:
    """The only writer of a journal; opening it recovers from a crash. Not thread-safe."""

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
        self.next_seq, self.size = self._recover(self.file)
        self.mark = Mark(folder, writing=True)
        self.publish()

    def _take_lock(self) -> None:
        """Take the writer's lock; retry, since readers hold it for a moment."""
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
        sync(self.folder)
        self._lines, self._notes = lines, notes
        self.notes_size = os.fstat(self._notes).st_size

    def _recover(self, file: JournalFile) -> tuple[int, int]:
        """Truncate an unfinished line and notes of missing lines; returns next seq and size."""
        rows = whole = at = 0
        while piece := os.pread(self._lines, SCAN_BYTES, at):
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
                # A request with only some of its lines was never acknowledged.
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
        """Return the byte at which a row of the file starts."""
        with open(self.file.path, "rb") as raw:
            return sum(len(line) for line in islice(raw, row))

    @property
    def end_byte(self) -> int:
        return self.file.first_byte + self.size

    def append(self, lines: Sequence[bytes], notes: Sequence[Note]) -> None:
        """Write lines, given without newlines, and their notes durably.

        Readers see them after `publish`. On OSError the journal is rolled back; if that fails too,
        nothing is written until a rollback succeeds.
        """
        if self.broken:
            self._roll_back()
        if self.broken:
            raise OSError(errno.EIO, self.broken)
        if self.size >= self.file_bytes:
            self._start_file()
        text = b"".join([line + b"\n" for line in lines])
        said = b"".join([msgspec.json.encode(note) + b"\n" for note in notes])
        try:
            if said:
                write_all(self._notes, said)
                os.fdatasync(self._notes)
            write_all(self._lines, text)
            os.fdatasync(self._lines)
        except OSError:
            self._roll_back()
            raise
        self.size += len(text)
        self.notes_size += len(said)
        self.next_seq += len(lines)

    def publish(self) -> None:
        """Make all appended lines visible to readers."""
        self.mark.set(self.end_byte)

    def probe(self) -> None:
        """Raise OSError if the disk is full."""
        path = self.folder / "PROBE"
        try:
            path.write_bytes(bytes(PROBE_BYTES))
        finally:
            path.unlink(missing_ok=True)

    def _roll_back(self) -> None:
        try:
            os.ftruncate(self._lines, self.size)
            os.ftruncate(self._notes, self.notes_size)
            os.fdatasync(self._lines)
            os.fdatasync(self._notes)
        except OSError as error:
            self.broken = f"what was half written cannot be taken back: {error.strerror}"
        else:
            self.broken = ""

    def _start_file(self) -> None:
        """Start the next file."""
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
    """Delete files that end before a seq and were last written before a time; returns how many."""
    gone = 0
    for file, following in pairwise(list_files(folder)):
        if following.first_seq > seq or file.path.stat().st_mtime >= before_s:
            break
        file.notes.unlink(missing_ok=True)
        file.path.unlink(missing_ok=True)
        gone += 1
    return gone


def files_from(folder: Path, seq: int) -> list[JournalFile]:
    """List the files that have lines from this seq on."""
    files = list_files(folder)
    ends = [file.first_seq for file in files[1:]] + [seq + 1]
    return [file for file, end in zip(files, ends, strict=True) if end > seq]


def read_entries(folder: Path, first_seq: int) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines from a seq on with their seqs, to catch up after a restart."""
    for file in files_from(folder, first_seq):
        with open(file.path, "rb") as raw:
            for seq, line in enumerate(raw, file.first_seq):
                if seq >= first_seq and line.endswith(b"\n"):
                    yield seq, line[:-1]


def read_notes(folder: Path, first_seq: int) -> Iterator[Note]:
    """Yield the notes of all lines from a seq on, including notes that start before it."""
    for file in files_from(folder, first_seq):
        for line in file.notes.read_bytes().splitlines():
            note = msgspec.json.decode(line, type=Note)
            if max(note.end_seq, note.seq + 1) > first_seq:
                yield note
