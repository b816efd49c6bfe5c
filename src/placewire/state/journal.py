"""The journal: events that were accepted from outside, an append-only log in files of lines.

journal/ID                    what tells this journal from any other
journal/LOCK                  held by the one writer, see `state/journalwriter.py`
journal/MARK                  up to which byte the journal is on disk for good, mapped by readers
journal/SEQ-BYTE.jsonl        lines from the one with this seq, which begins at this byte of all
journal/SEQ-BYTE.notes        what the log itself cannot say of some of these lines: whose they are

A line's number is its seq. Offsets count the bytes of all files, so that old files may go.
"""

from __future__ import annotations

import bisect
import mmap
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from placewire.model.errors import Unusable
from placewire.state.layout import StateDir

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
