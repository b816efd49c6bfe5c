"""Storing: how long objects are needed, and a block's objects without those the clock refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placewire.engine.facts import BlockFacts
from placewire.index.retained import build_retained, rows_of, take_retained, used_words
from placewire.model.settings import Settings
from placewire.model.subscriptions import read_pace
from placewire.state.layout import StateDir
from placewire.state.livesegment import LiveSegment
from placewire.state.manifest import StoreEntry
from placewire.state.store import Keeping, describe, open_retained, write_retained
from placewire.text.lexicon import Lexicon


def keeping_of(settings: Settings, longest_window_us: int = 0) -> Keeping:
    """As long as the longest of retention, sliding window and live trending windows needs."""
    keep_us = max(settings.retention_us, settings.window_us or 0, longest_window_us)
    return Keeping(keep_us, settings.window_count or 0)


def longest_window_us(segments: Sequence[LiveSegment]) -> int:
    """The longest window of live `trending` rows; ended ones count until they are merged away."""
    return max(
        (int(read_pace(live.segment.rows).window_us.max(initial=0)) for live in segments),
        default=0,
    )


def leave_out(
    state: StateDir,
    batch: int,
    entry: StoreEntry,
    fact: BlockFacts,
    lexicon: Lexicon | None,
) -> list[StoreEntry]:
    """A block's file of objects; written anew if the clock refused some of its events."""
    if fact.clock.refused_event.size == 0:
        return [entry]
    retained = open_retained(state.file(entry.name))
    stay = np.flatnonzero(~np.isin(retained.seq - fact.first_seq, fact.clock.refused_event))
    if stay.size == retained.total:
        return [entry]
    if stay.size == 0:
        return []
    rows, words = used_words(take_retained(rows_of(retained), stay), retained.words)
    name = state.new_name(batch, "objects")
    write_retained(state.file(name), build_retained(rows, words, lexicon))
    return [describe(name, open_retained(state.file(name)), entry.plan)]
