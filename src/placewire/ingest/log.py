"""Log files: cut them into batches by lines and into blocks by bytes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from placewire.kernels.json.objects import count_lines, find_lines
from placewire.model.arrays import I64, U8
from placewire.model.errors import Unusable
from placewire.storage.manifest import Offset

CHUNK_BYTES = 1 << 24
BLOCK_BYTES = 1 << 23
FINGERPRINT_BYTES = 1 << 16
PARQUET_MAGIC = b"PAR1"
GZIP_MAGIC = b"\x1f\x8b"


class BlockRef(NamedTuple):
    """One block of a batch: whole lines of a file, by byte range, with the first one's seq.

    Of a Parquet file `start` and `end` count row groups, of an Arrow file rows.
    """

    number: int
    path: str
    first_seq: int
    start: int
    end: int
    format: str = "jsonl"


def check_log(path: Path) -> None:
    """Raise Unusable unless the log can be read."""
    try:
        if not path.is_file():
            what = "is a directory" if path.is_dir() else "does not exist"
            raise Unusable(f"log {path}: {what}")
        with open(path, "rb"):
            pass
    except OSError as error:
        raise Unusable(f"log {path}: cannot be read: {error.strerror}") from None


def detect_format(path: Path) -> str:
    """Return `parquet` or `jsonl` by the first bytes of a file; raises Unusable."""
    check_log(path)
    with open(path, "rb") as file:
        head = file.read(4)
    if head.startswith(GZIP_MAGIC):
        raise Unusable(f"log {path}: must be JSON Lines, got a gzip file; unpack it first")
    return "parquet" if head == PARQUET_MAGIC else "jsonl"


def check_lines(path: Path) -> None:
    """Raise Unusable unless the log can be read and may be JSON Lines."""
    if detect_format(path) != "jsonl":
        raise Unusable(f"log {path}: must be JSON Lines, got a Parquet file")


def identify_log(path: Path) -> Callable[[Offset], str]:
    """Return a function that identifies a log, which may have grown, when a run resumes."""
    return partial(fingerprint_log, path)


def fingerprint_log(path: Path, end: Offset) -> str:
    """Hash the beginning of a log and the bytes before an offset."""
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read(min(FINGERPRINT_BYTES, end.byte)))
        file.seek(max(0, end.byte - FINGERPRINT_BYTES))
        digest.update(file.read(min(FINGERPRINT_BYTES, end.byte)))
    return f"{end.byte}:{digest.hexdigest()}"


def check_growth(path: Path, end: Offset) -> None:
    """Raise Unusable if a log grew after a last line without a newline that was processed.

    The committed event would now be the beginning of another.
    """
    if not 0 < end.byte < path.stat().st_size:
        return
    with open(path, "rb") as file:
        file.seek(end.byte - 1)
        if file.read(1) != b"\n":
            raise Unusable(
                f"log {path}: has grown after line {end.seq - 1}, which had no newline when it"
                " was processed; run it with a new state"
            )


def read_bytes(path: str, start: int, end: int) -> U8:
    """Read a byte range of a file."""
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        raw = np.empty(end - start, np.uint8)
        view = raw.data
        filled = 0
        while filled < len(view):
            got = file.readinto(view[filled:])
            if not got:
                raise Unusable(f"log {path}: ends at byte {start + filled}, expected {end}")
            filled += got
    return raw


def plan_batch(
    path: str,
    start: Offset,
    rows: int,
    most_bytes: int,
    blocks: int,
    growing: bool = False,
    until: int | None = None,
) -> list[BlockRef]:
    """Return the blocks of the next batch: at most `rows` lines and about `most_bytes`.

    There are at least `blocks` blocks if there are that many lines, so that every worker has one.
    In a `growing` log the last line counts only once it has a newline. Bytes from `until` on are
    ignored.
    """
    size = os.path.getsize(path)
    if until is not None:
        size = min(size, until)
    if start.byte >= size:
        return []
    parts: list[I64] = []
    lines = 0
    at = start.byte
    tail = np.empty(0, np.uint8)
    while at < size and lines < rows and (lines == 0 or at - start.byte < most_bytes):
        end = min(size, at + CHUNK_BYTES)
        raw = np.concatenate([tail, read_bytes(path, at, end)])
        base = at - tail.size
        offsets = find_lines(raw)
        whole = offsets.size - 1
        if (end < size or growing) and whole and raw[-1] != 10:
            whole -= 1
        tail = raw[offsets[whole] :]
        parts.append(offsets[1 : whole + 1] + base)
        lines += whole
        at = end
    ends = np.concatenate(parts)[:rows]
    if ends.size == 0:
        return []
    cuts = cut_lines(ends, start.byte, max(blocks, 1))
    refs = []
    first = 0
    begin = start.byte
    for number, cut in enumerate(cuts):
        refs.append(BlockRef(number, path, start.seq + first, begin, int(ends[cut - 1])))
        first, begin = cut, int(ends[cut - 1])
    return refs


def cut_lines(ends: I64, start: int, blocks: int) -> list[int]:
    """Return the line counts that cut lines into `blocks` parts, or parts of BLOCK_BYTES."""
    total = int(ends[-1]) - start
    parts = min(ends.size, max(blocks, -(-total // BLOCK_BYTES)))
    targets = start + (np.arange(1, parts) * total) // parts
    cuts = np.searchsorted(ends, targets, "left") + 1
    return sorted({*cuts.tolist(), ends.size} - {0})


def batch_end(refs: list[BlockRef]) -> Offset:
    """Return where a batch ends."""
    last = refs[-1]
    if last.format == "parquet":
        rows = pq.ParquetFile(last.path).metadata.row_group(last.start).num_rows
    else:
        rows = count_lines(read_bytes(last.path, last.start, last.end))
    return Offset(last.first_seq + rows, last.end)
