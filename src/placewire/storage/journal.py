"""The journal: events that were accepted from outside, an append-only log in files of lines.

journal/ID                    what tells this journal from any other
journal/LOCK                  held by the one writer, see `storage/journal.py`
journal/MARK                  up to which byte the journal is on disk for good, mapped by readers
journal/SEQ-BYTE.jsonl        lines from the one with this seq, which begins at this byte of all
journal/SEQ-BYTE.notes        what the log itself cannot say of some of these lines: whose they are

A line's number is its seq. Offsets count the bytes of all files, so that old files may go.
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
from placewire.storage.layout import StateDir, write_file

NAME = re.compile(r"(\d{15})-(\d{18})\.jsonl$")
MARK_BYTES = 8
LOOK_BYTES = 1 << 16


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is noted of the `rows` lines from `seq` on: whose they are, and what was replied.

    A reply is to a request of so many `lines`, which are there together or not at all.
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
        """The seq after what it speaks of."""
        return self.seq + max(self.rows, self.lines)


class JournalFile(NamedTuple):
    """One file of the journal, and where it begins."""

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
    """The files that are there, in order."""
    names = (NAME.match(path.name) for path in folder.iterdir())
    return sorted(
        (name_file(folder, int(name[1]), int(name[2])) for name in names if name),
        key=lambda file: file.first_byte,
    )


def read_id(folder: Path) -> str:
    """What tells this journal from any other; raises Unusable if there is none."""
    try:
        return (folder / "ID").read_text().strip()
    except OSError as error:
        raise Unusable(f"journal {folder}: cannot be read: {error.strerror}") from None


class Mark:
    """Up to which byte the journal is on disk for good: eight bytes that processes share."""

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
    """Reads lines of the journal by their seq; made for the few that somebody looks at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = Mark(folder)
        self.known: dict[int, list[tuple[int, int]]] = {}  # by file: seqs and their local bytes

    def read(self, seq: int) -> bytes | None:
        """The line, without its newline; None if it is not there, or not there any more."""
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
        """Walk to the line from another one, noting some places on the way."""
        limit = self.mark.get() - file.first_byte
        places = self.known[file.first_byte]
        with open(file.path, "rb") as raw:
            raw.seek(start)
            while start < limit:
                # Whole lines: at least one, however long it is.
                lines = raw.readlines(min(LOOK_BYTES, limit - start))
                if seq + len(lines) > wanted:
                    end = start + sum(map(len, lines[: wanted - seq + 1]))
                    return lines[wanted - seq].removesuffix(b"\n") if end <= limit else None
                seq += len(lines)
                start += sum(map(len, lines))
                # Several threads may walk: whichever notes a place later finds it there, or
                # between two others.
                if (seq, start) > places[-1]:
                    bisect.insort(places, (seq, start))
        return None


FILE_BYTES = 1 << 27  # when a file is this long, the next begins
JOURNALWRITER_LOOK_BYTES = 1 << 24
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
        while piece := os.pread(self._lines, JOURNALWRITER_LOOK_BYTES, at):
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
