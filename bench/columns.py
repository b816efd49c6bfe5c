"""A workload as the columns that the engine matches: subscription rows and object probes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.workload import Workload
from placewire.kernels.blocks import codes_to_order
from placewire.kernels.space.cells import points_to_codes
from placewire.kernels.text.siphash import slices_hash
from placewire.kinds.boolean.kernels.probes import Probe
from placewire.kinds.boolean.match import make_probe
from placewire.model.expression import COVER_ALL, COVER_ONE
from placewire.model.kinds import BOOLEAN
from placewire.model.regions import BOX
from placewire.model.subscriptions import NEVER_US, SubscriptionRows
from placewire.text.analyzer import Analyzer

KEY = (0x0123456789ABCDEF, 0xFEDCBA9876543210)
BLOCK_OBJECTS = 65_536


def rows_of(workload: Workload, analyzer: Analyzer) -> SubscriptionRows:
    """The workload's subscriptions as rows, without the detour through JSON."""
    table = workload.subscriptions.combine_chunks()
    n = table.num_rows
    keywords = table["keywords"].chunk(0)
    offsets = keywords.offsets.to_numpy().astype(np.int64)
    words = keywords.values
    distinct = words.dictionary_encode()
    hashes = analyzer.hash_terms(distinct.dictionary.to_pylist())[distinct.indices.to_numpy()]
    is_any = pc.equal(table["operator"], "OR").combine_chunks().to_numpy(zero_copy_only=False)
    lengths = np.diff(offsets)
    owner_any = np.repeat(is_any, lengths)
    last = np.zeros(hashes.size, np.bool_)
    last[offsets[1:] - 1] = True
    following = (np.arange(hashes.size) - np.repeat(offsets[:-1], lengths) + 1).astype(np.int16)
    ids = table["id"].chunk(0)
    id_offsets = np.frombuffer(ids.buffers()[1], np.int32, n + 1).astype(np.int64)
    id_bytes = np.frombuffer(ids.buffers()[2], np.uint8)
    return SubscriptionRows(
        kind=np.full(n, BOOLEAN, np.uint8),
        k=np.zeros(n, np.uint16),
        begin_seq=np.arange(n, dtype=np.int64),
        expires_us=np.full(n, NEVER_US),
        id_hash=slices_hash(
            id_bytes, id_offsets[:-1], id_offsets[1:], np.uint64(KEY[0]), np.uint64(KEY[1])
        ),
        id_offsets=id_offsets,
        id_bytes=id_bytes,
        region_kind=np.full(n, BOX, np.uint8),
        box=np.stack([table[c].to_numpy() for c in ("west", "south", "east", "north")], 1),
        shape_offsets=np.zeros(n + 1, np.int64),
        shape=np.empty(0),
        cover_mode=np.where(is_any & (lengths > 1), COVER_ALL, COVER_ONE).astype(np.uint8),
        literal_offsets=offsets,
        literal_term=hashes,
        literal_true=np.where(owner_any | last, -1, following).astype(np.int16),
        literal_false=np.where(owner_any & ~last, following, -2).astype(np.int16),
        literal_cover=np.ones(hashes.size, np.uint8),
    )


def probe_of(objects: pa.Table, analyzer: Analyzer) -> Probe:
    """A block of objects, analysed and grouped."""
    lon, lat = objects["lon"].to_numpy(), objects["lat"].to_numpy()
    codes = points_to_codes(lon, lat)
    order = codes_to_order(codes)
    text = objects["text"].combine_chunks()
    text = text.cast(pa.large_string())
    if isinstance(text, pa.ChunkedArray):
        text = text.chunk(0)
    offsets = np.frombuffer(text.buffers()[1], np.int64)[text.offset : text.offset + len(text) + 1]
    raw = np.frombuffer(text.buffers()[2], np.uint8)
    terms = analyzer.analyse(raw, offsets[:-1][order], offsets[1:][order])
    nows = np.zeros(lon.size, np.int64)
    return make_probe(codes[order], lon[order], lat[order], nows, terms.offsets, terms.hashes)
