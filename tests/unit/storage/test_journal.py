"""The journal: whole lines by seq, mended after a crash, taken back after a failed write."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from placewire.ingest.sources import JournalSource
from placewire.model.errors import Unusable
from placewire.storage.journal import (
    JournalReader,
    JournalWriter,
    Note,
    drop_files,
    list_files,
    read_entries,
    read_notes,
)
from placewire.storage.manifest import Offset


def lines(first: int, count: int) -> list[bytes]:
    return [b'{"n":%d}' % n for n in range(first, first + count)]


def fill(folder: Path, groups: int = 20, file_bytes: int = 100) -> JournalWriter:
    writer = JournalWriter(folder, file_bytes)
    for _ in range(groups):
        writer.append(lines(writer.next_seq, 3), [Note(writer.next_seq, 3, "me")])
        writer.publish()
    return writer


def test_lines_are_found_by_seq_in_all_files(tmp_path: Path) -> None:
    writer = fill(tmp_path)
    reader = JournalReader(tmp_path)
    assert len(list_files(tmp_path)) > 3
    assert [reader.read(seq) for seq in (59, 0, 17, 30)] == [
        b'{"n":%d}' % n for n in (59, 0, 17, 30)
    ]
    assert reader.read(60) is None
    assert reader.read(-1) is None
    assert list(read_entries(tmp_path, 58)) == [(58, b'{"n":58}'), (59, b'{"n":59}')]
    assert [note.seq for note in read_notes(tmp_path, 54)] == [54, 57]
    writer.close()


def test_long_lines_are_found(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path)
    long = [b"%d" % n * 100_000 for n in range(5)]
    writer.append([b"a", *long, b"z"], [])
    writer.publish()
    reader = JournalReader(tmp_path)
    assert [reader.read(seq) for seq in range(7)] == [b"a", *long, b"z"]
    writer.close()


def test_an_unfinished_line_and_notes_without_lines_are_cut_off(tmp_path: Path) -> None:
    writer = fill(tmp_path)
    file, size = writer.file, writer.end_byte
    writer.close()
    with open(file.path, "ab") as raw:
        raw.write(b'{"n":6')
    with open(file.notes, "ab") as raw:
        raw.write(b'{"seq":60,"owner":"me"}\n{"seq":6')
    again = JournalWriter(tmp_path)
    assert (again.next_seq, again.end_byte, again.mark.get()) == (60, size, size)
    assert [note.seq for note in read_notes(tmp_path, 57)] == [57]
    again.append([b"next"], [])
    again.publish()
    assert JournalReader(tmp_path).read(60) == b"next"
    again.close()


@pytest.mark.parametrize("there", [1, 2])
def test_a_request_of_which_only_some_lines_are_there_is_cut_off(
    tmp_path: Path, there: int
) -> None:
    """It is known by a key, and nobody was replied to: tried again, it is written whole."""
    writer = fill(tmp_path, 2)
    size = writer.end_byte
    notes = [Note(6, 1, "me"), Note(7, 0, "me", "key", 1, {"seq": 7}, lines=3)]
    writer.append([b"whole"], notes[:1])
    whole = writer.end_byte
    writer.append(lines(7, 3), notes[1:])
    file = writer.file
    writer.close()
    begin = (whole if file.first_byte < whole else file.first_byte) - file.first_byte
    os.truncate(file.path, begin + there * len(b'{"n":7}\n'))
    again = JournalWriter(tmp_path)
    assert (again.next_seq, again.end_byte) == (7, whole)
    assert size < whole
    assert [note.seq for note in read_notes(tmp_path, 0)] == [0, 3, 6]
    assert [line for _, line in read_entries(tmp_path, 6)] == [b"whole"]
    again.close()


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path)
    with pytest.raises(Unusable, match="in use by another process"):
        JournalWriter(tmp_path)
    writer.close()


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = fill(tmp_path, 2)
    before = writer.end_byte
    usual = os.write

    def full(descriptor: int, content: memoryview) -> int:
        if len(content) > 10:
            usual(descriptor, content[:5])
            raise OSError(errno.ENOSPC, "No space left on device")
        return usual(descriptor, content)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            writer.append([b"x" * 100], [Note(writer.next_seq, 1, "me")])
    assert (writer.end_byte, writer.next_seq) == (before, 6)
    writer.append([b"after"], [])
    writer.publish()
    assert JournalReader(tmp_path).read(6) == b"after"
    assert [note.seq for note in read_notes(tmp_path, 0)] == [0, 3]
    writer.close()


def test_readers_see_only_what_is_published(tmp_path: Path) -> None:
    writer = fill(tmp_path, 1)
    writer.append([b"later"], [])
    source = JournalSource(tmp_path)
    refs = source.plan_capped(Offset(), 100, 100, 1)
    assert source.end(refs).seq == 3
    assert JournalReader(tmp_path).read(3) is None
    writer.publish()
    assert source.end(source.plan_capped(Offset(), 100, 100, 1)).seq == 4
    writer.close()


@pytest.mark.parametrize("rows", [1, 7, 100])
def test_batches_go_through_all_files(tmp_path: Path, rows: int) -> None:
    writer = fill(tmp_path)
    source = JournalSource(tmp_path)
    at, seqs = Offset(), []
    while refs := source.plan_capped(at, rows, rows, 2):
        seqs += [ref.first_seq for ref in refs]
        at = source.end(refs)
    assert at == Offset(60, writer.end_byte)
    assert seqs == sorted(set(seqs))
    writer.close()


def test_old_files_may_go(tmp_path: Path) -> None:
    writer = fill(tmp_path)
    assert drop_files(tmp_path, 40, 0.0) == 0
    assert drop_files(tmp_path, 40, time.time() + 1) > 0
    reader = JournalReader(tmp_path)
    assert reader.read(0) is None
    assert reader.read(40) == b'{"n":40}'
    writer.close()
    again = JournalWriter(tmp_path)
    assert again.next_seq == 60
    again.close()
    with pytest.raises(Unusable, match="has no byte 0 any more"):
        JournalSource(tmp_path).plan_capped(Offset(), 10, 10, 1)
