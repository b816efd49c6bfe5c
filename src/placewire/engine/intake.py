"""What a source gave, as blocks of the coordinator's batches."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from placewire.engine.log import BlockRef, Offset
from placewire.state.intake import FOLDER, IntakeBatch

LEAST_ROWS, MOST_ROWS = 4_000, 32_768  # of a block


def block_rows(cap: int) -> int:
    """How many rows a block should have if a batch may have `cap`."""
    return min(max(cap, LEAST_ROWS), MOST_ROWS)


def next_blocks(recorded: IntakeBatch, start: Offset, cap: int) -> tuple[list[BlockRef], Offset]:
    """The blocks of the next batch, about `cap` rows, and where it ends; none if all have run.

    The `byte` of an offset counts the blocks of all batches. Paths are those in the state.
    """
    refs: list[BlockRef] = []
    seq, at = start.seq, start.byte
    for block in recorded.blocks[max(0, start.byte - recorded.first) :]:
        if refs and seq + block.rows - start.seq > cap:
            break
        path = f"{FOLDER}/{block.file}"
        end = block.bytes if block.form == "jsonl" else block.rows
        refs.append(BlockRef(len(refs), path, seq, 0, end, block.form))
        seq, at = seq + block.rows, at + 1
    return refs, Offset(seq, at)


def name_stream(_: Offset) -> str:
    """What makes it the same source when a stream is resumed: its state has the rest."""
    return "stream"


def join_lines(lines: pa.LargeBinaryArray) -> pa.Buffer:
    """Events as the lines of a block, without the last newline.

    A newline inside one is no end of it, and JSON reads on.
    """
    plain = pc.replace_substring(lines, "\n", "\r")
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(plain)], pa.int64()), plain)
    return pc.binary_join(whole, pa.scalar(b"\n", pa.large_binary()))[0].as_buffer()
