"""Where a log is read from: which file, in which form, finished or still growing."""

from __future__ import annotations

from typing import NamedTuple

from placewire.engine.log import BlockRef, Offset, plan_batch
from placewire.engine.parquet import plan_row_groups

BATCH_BYTES = 1 << 28


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
