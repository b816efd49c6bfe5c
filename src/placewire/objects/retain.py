"""Convert a block's objects to the form that the store keeps, in the process that read them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from placewire.ingest.clock import BlockFacts
from placewire.ingest.decode import DecodedBlock
from placewire.kernels.blocks import slices_to_buffer
from placewire.kernels.jit import read_only
from placewire.model.settings import Settings
from placewire.objects.index import (
    NO_BYTES,
    NO_OFFSETS,
    Retained,
    Rows,
    build_retained,
    rows_of,
    take_retained,
    used_words,
)
from placewire.objects.store import Keeping, describe, open_retained, write_retained
from placewire.storage.layout import StateDir
from placewire.storage.manifest import StoreEntry
from placewire.text.analyzer import Analyzer, TermSets
from placewire.text.words import Lexicon, words_of_terms

PlaceObjects = Callable[
    [NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint64]], NDArray[np.int32]
]  # codes and terms of objects to their parts of a plan


def retain_block(
    block: DecodedBlock,
    first_seq: int,
    analyzer: Analyzer,
    lexicon: Lexicon | None,
    place: PlaceObjects | None = None,
    with_text: bool = False,
) -> Retained:
    """Index a block's objects; keep their texts only if an archive will need them."""
    o = block.objects
    words, numbers = words_of_terms(analyzer, TermSets(o.term_offsets, o.terms), *block.texts)
    part = np.zeros(o.total, np.int32)
    if place is not None:
        part = place(block.codes, o.term_offsets, o.terms)
    text_offsets, text_bytes = NO_OFFSETS, NO_BYTES
    if with_text:
        text_offsets, text_bytes = slices_to_buffer(*map(read_only, block.texts))
    has_data = o.data_bytes.size > 0
    rows = Rows(
        seq=first_seq + o.event.astype(np.int64),
        ts_us=o.ts_us,
        lon=o.lon,
        lat=o.lat,
        code=block.codes,
        part=part,
        id_offsets=o.id_offsets,
        id_bytes=o.id_bytes,
        data_offsets=o.data_offsets if has_data else o.data_offsets[:1],
        data_bytes=o.data_bytes,
        text_offsets=text_offsets,
        text_bytes=text_bytes,
        term_offsets=o.term_offsets,
        terms=numbers,
    )
    return build_retained(rows, words, lexicon)


def keeping_of(settings: Settings, longest_window_us: int = 0) -> Keeping:
    """How long objects are needed: the longest of retention, sliding and trending windows."""
    keep_us = max(settings.retention_us, settings.window_us or 0, longest_window_us)
    return Keeping(keep_us, settings.window_count or 0)


def leave_out(
    state: StateDir,
    batch: int,
    entry: StoreEntry,
    fact: BlockFacts,
    lexicon: Lexicon | None,
) -> list[StoreEntry]:
    """Return a block's file of objects, rewritten if the clock rejected some of its events."""
    if fact.clock.rejected_event.size == 0:
        return [entry]
    retained = open_retained(state.file(entry.name))
    stay = np.flatnonzero(~np.isin(retained.seq - fact.first_seq, fact.clock.rejected_event))
    if stay.size == retained.total:
        return [entry]
    if stay.size == 0:
        return []
    rows, words = used_words(take_retained(rows_of(retained), stay), retained.words)
    name = state.new_name(batch, "objects")
    write_retained(state.file(name), build_retained(rows, words, lexicon))
    return [describe(name, open_retained(state.file(name)), entry.plan)]
