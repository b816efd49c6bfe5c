"""Objects from Parquet: columns id, ts, lon, lat, text, a block for each row group."""

from __future__ import annotations

import pyarrow.parquet as pq

from placewire.engine.columns import COLUMNS, decode_columns
from placewire.engine.decode import DecodedBlock
from placewire.engine.log import BlockRef, Offset
from placewire.model.errors import Unusable
from placewire.text.analyzer import Analyzer


def plan_row_groups(path: str, start: Offset, rows: int) -> list[BlockRef]:
    """The blocks of the next batch: whole row groups, at least one; `byte` counts row groups."""
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
