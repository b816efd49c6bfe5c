"""Sources of batches: log files, finished or growing, journals and recorded streams."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from placewire.ingest.columns import COLUMNS, decode_columns
from placewire.ingest.decode import DecodedBlock, decode_lines
from placewire.ingest.log import CHUNK_BYTES, BlockRef, batch_end, plan_batch, read_bytes
from placewire.model.errors import Unusable
from placewire.model.settings import Settings
from placewire.storage.intake import INTAKE, IntakeBatch
from placewire.storage.journal import Mark, list_files, read_id
from placewire.storage.layout import StateDir, open_lexicon
from placewire.storage.manifest import Offset
from placewire.storage.mirror import fetch_local
from placewire.text.analyzer import Analyzer, open_analyzer

BATCH_BYTES = 1 << 28
OBJECT = re.compile(rb'"type"\s*:\s*"object"')


class Source(Protocol):
    """A log that the coordinator cuts into batches."""

    def plan_capped(self, start: Offset, rows: int, cap: int, blocks: int) -> list[BlockRef]:
        """Return the blocks of the next batch, with at most `cap` events from the first object."""

    def end(self, refs: list[BlockRef]) -> Offset:
        """Return where a batch of these blocks ends."""


class LogSource(NamedTuple):
    """A log file: `jsonl`, or `parquet` with objects only; a growing one is followed."""

    path: str
    form: str = "jsonl"
    growing: bool = False

    def plan(self, start: Offset, rows: int, blocks: int) -> list[BlockRef]:
        """Return the blocks of the next batch, none at the end."""
        path = os.path.abspath(self.path)  # any other would be one of the state's own files
        if self.form == "parquet":
            return plan_row_groups(path, start, rows)
        return plan_batch(path, start, rows, BATCH_BYTES, blocks, self.growing)

    def plan_capped(self, start: Offset, rows: int, cap: int, blocks: int) -> list[BlockRef]:
        """Return the blocks of the next batch, with at most `cap` events from the first object."""
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
        """Return the number of bytes after an offset."""
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


def identify_journal(folder: Path) -> Callable[[Offset], str]:
    """Return a function that identifies a journal when a run resumes."""
    name = f"journal:{read_id(folder)}"
    return lambda _: name


def lines_before_object(path: str, start: int, end: int) -> int:
    """Count the lines before the first that looks like an object; all if none does."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as raw:
        found = OBJECT.search(raw, start, end)
        until = found.start() if found else end
        return sum(
            raw[at : min(at + CHUNK_BYTES, until)].count(b"\n")
            for at in range(start, until, CHUNK_BYTES)
        )


LEAST_ROWS, MOST_ROWS = 4_000, 32_768  # of a block


def block_rows(cap: int) -> int:
    """Return how many rows a block should have if a batch may have `cap`."""
    return min(max(cap, LEAST_ROWS), MOST_ROWS)


def next_blocks(recorded: IntakeBatch, start: Offset, cap: int) -> tuple[list[BlockRef], Offset]:
    """Return the blocks of the next batch, about `cap` rows, and where it ends.

    The `byte` of an offset counts the blocks of all batches. Paths are those in the state.
    """
    refs: list[BlockRef] = []
    seq, at = start.seq, start.byte
    for block in recorded.blocks[max(0, start.byte - recorded.first) :]:
        if refs and seq + block.rows - start.seq > cap:
            break
        path = f"{INTAKE}/{block.file}"
        end = block.bytes if block.form == "jsonl" else block.rows
        refs.append(BlockRef(len(refs), path, seq, 0, end, block.form))
        seq, at = seq + block.rows, at + 1
    return refs, Offset(seq, at)


def identify_stream(_: Offset) -> str:
    """Identify a stream when it resumes; its state has the rest."""
    return "stream"


def join_lines(lines: pa.LargeBinaryArray) -> pa.Buffer:
    """Join events as the lines of a block, without the last newline.

    A newline inside an event becomes a carriage return, which JSON treats alike.
    """
    plain = pc.replace_substring(lines, "\n", "\r")
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(plain)], pa.int64()), plain)
    return pc.binary_join(whole, pa.scalar(b"\n", pa.large_binary()))[0].as_buffer()


def plan_row_groups(path: str, start: Offset, rows: int) -> list[BlockRef]:
    """Return the next batch: whole row groups, at least one; `byte` counts row groups."""
    meta = pq.ParquetFile(path).metadata
    refs: list[BlockRef] = []
    seq = start.seq
    for group in range(start.byte, meta.num_row_groups):
        size = meta.row_group(group).num_rows
        if refs and seq + size - start.seq > rows:
            break
        refs.append(BlockRef(len(refs), path, seq, group, group + 1, "parquet"))
        seq += size
    return refs


def decode_row_group(
    ref: BlockRef, analyzer: Analyzer, now_us: int | None, ahead_us: int
) -> DecodedBlock:
    """Read and validate one row group of objects."""
    file = pq.ParquetFile(ref.path, memory_map=True)
    missing = [name for name in COLUMNS if name not in file.schema_arrow.names]
    if missing:
        raise Unusable(f"{ref.path}: needs columns {', '.join(COLUMNS)}, lacks {missing[0]}")
    table = file.read_row_groups(range(ref.start, ref.end), columns=list(COLUMNS))
    return decode_columns(table, analyzer, now_us, ahead_us)


class DecodeContext(NamedTuple):
    """What decoding a block depends on: the clock before its batch, and how far `ts` may be ahead.

    `key` is that of the term hashes, `root` the state directory.
    """

    root: str
    settings: Settings
    key: tuple[int, int]
    now_us: int | None
    ahead_us: int


def decode_block(context: DecodeContext, ref: BlockRef) -> DecodedBlock:
    """Read one block and decode it."""
    analyzer = open_analyzer(context.settings, context.key)
    state = StateDir.at(context.root)
    if ref.format == "parquet":
        return decode_row_group(ref, analyzer, context.now_us, context.ahead_us)
    if ref.format == "arrow":
        with pa.memory_map(str(fetch_local(state.root / ref.path))) as file:
            table = pa.ipc.open_file(file).read_all()
        return decode_columns(table, analyzer, context.now_us, context.ahead_us)
    # A log's path is whole; that of a block of the intake is from the state on.
    raw = read_bytes(str(fetch_local(state.root / ref.path)), ref.start, ref.end)
    return decode_lines(
        raw,
        ref.first_seq,
        analyzer,
        context.now_us,
        context.ahead_us,
        context.settings,
        open_lexicon(state, context.settings),
    )
