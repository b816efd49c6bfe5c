"""Where a log is read from: a file, finished or still growing, or the journal of a service."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from placewire.engine.log import CHUNK_BYTES, BlockRef, Offset, batch_end, plan_batch
from placewire.engine.parquet import plan_row_groups
from placewire.model.errors import Unusable
from placewire.state.journal import Mark, list_files, read_id

BATCH_BYTES = 1 << 28
OBJECT = re.compile(rb'"type"\s*:\s*"object"')


class Source(Protocol):
    """What the coordinator's batches are cut from."""

    def plan_capped(self, start: Offset, rows: int, cap: int, blocks: int) -> list[BlockRef]:
        """The blocks of the next batch, with at most `cap` events from the first object on."""

    def end(self, refs: list[BlockRef]) -> Offset:
        """Where a batch of these blocks ends."""


class LogSource(NamedTuple):
    """A log file: `jsonl`, or `parquet` with objects only; a growing one is followed."""

    path: str
    form: str = "jsonl"
    growing: bool = False

    def plan(self, start: Offset, rows: int, blocks: int) -> list[BlockRef]:
        """The blocks of the next batch, none when there is nothing more."""
        path = os.path.abspath(self.path)  # any other would be one of the state's own files
        if self.form == "parquet":
            return plan_row_groups(path, start, rows)
        return plan_batch(path, start, rows, BATCH_BYTES, blocks, self.growing)

    def plan_capped(self, start: Offset, rows: int, cap: int, blocks: int) -> list[BlockRef]:
        """The same, with at most `cap` events from the first object on."""
        refs = self.plan(start, rows, blocks)
        if not refs or cap >= rows or self.form == "parquet":
            return refs
        before = lines_before_object(self.path, start.byte, refs[-1].end)
        return refs if before + cap >= rows else self.plan(start, before + cap, blocks)

    def end(self, refs: list[BlockRef]) -> Offset:
        return batch_end(refs)


class JournalSource:
    """A journal, followed as it grows; a batch has lines of one of its files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = Mark(folder)

    def waiting(self, start: Offset) -> int:
        """How many bytes there are after an offset."""
        return self.mark.get() - start.byte

    def plan_capped(self, start: Offset, rows: int, cap: int, blocks: int) -> list[BlockRef]:
        until = self.mark.get()
        if start.byte >= until:
            return []
        begun = [file for file in list_files(self.folder) if file.first_byte <= start.byte]
        if not begun:
            raise Unusable(f"journal {self.folder}: has no byte {start.byte} any more")
        file = begun[-1]
        local = Offset(start.seq, start.byte - file.first_byte)
        path, limit = str(file.path), until - file.first_byte
        refs = plan_batch(path, local, rows, BATCH_BYTES, blocks, True, limit)
        if not refs or cap >= rows:
            return refs
        before = lines_before_object(path, local.byte, refs[-1].end)
        if before + cap >= rows:
            return refs
        return plan_batch(path, local, before + cap, BATCH_BYTES, blocks, True, limit)

    def end(self, refs: list[BlockRef]) -> Offset:
        local = batch_end(refs)
        first_byte = int(Path(refs[-1].path).stem.split("-")[1])
        return Offset(local.seq, first_byte + local.byte)


def name_journal(folder: Path) -> Callable[[Offset], str]:
    """What makes it the same journal when a state goes on."""
    name = f"journal:{read_id(folder)}"
    return lambda _: name


def lines_before_object(path: str, start: int, end: int) -> int:
    """How many lines stand before the first that looks like an object's; all if none does."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as raw:
        found = OBJECT.search(raw, start, end)
        until = found.start() if found else end
        return sum(
            raw[at : min(at + CHUNK_BYTES, until)].count(b"\n")
            for at in range(start, until, CHUNK_BYTES)
        )
