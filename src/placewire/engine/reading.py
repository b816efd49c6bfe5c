"""Where a log is read from: which file, in which form, finished or still growing."""

from __future__ import annotations

import mmap
import re
from typing import NamedTuple

from placewire.engine.log import CHUNK_BYTES, BlockRef, Offset, plan_batch
from placewire.engine.parquet import plan_row_groups

BATCH_BYTES = 1 << 28
OBJECT = re.compile(rb'"type"\s*:\s*"object"')


class LogSource(NamedTuple):
    """A log file: `jsonl`, or `parquet` with objects only; a growing one is followed."""

    path: str
    form: str = "jsonl"
    growing: bool = False

    def plan(self, start: Offset, rows: int, blocks: int) -> list[BlockRef]:
        """The blocks of the next batch, none when there is nothing more."""
        if self.form == "parquet":
            return plan_row_groups(self.path, start, rows)
        return plan_batch(self.path, start, rows, BATCH_BYTES, blocks, self.growing)

    def plan_capped(self, start: Offset, rows: int, cap: int, blocks: int) -> list[BlockRef]:
        """The same, with at most `cap` events from the first object on."""
        refs = self.plan(start, rows, blocks)
        if not refs or cap >= rows or self.form == "parquet":
            return refs
        before = lines_before_object(self.path, start.byte, refs[-1].end)
        return refs if before + cap >= rows else self.plan(start, before + cap, blocks)


def lines_before_object(path: str, start: int, end: int) -> int:
    """How many lines stand before the first that looks like an object's; all if none does."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as raw:
        found = OBJECT.search(raw, start, end)
        until = found.start() if found else end
        return sum(
            raw[at : min(at + CHUNK_BYTES, until)].count(b"\n")
            for at in range(start, until, CHUNK_BYTES)
        )
