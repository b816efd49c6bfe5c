"""Open what an explanation reads: settings, and a state's last commit if there is a state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from placewire.model.arrays import U64
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.events import AnyEvent, decode_event
from placewire.model.settings import Settings
from placewire.model.times import parse_timestamp
from placewire.objects.sections import Section, open_sections
from placewire.queries.snapshot import NO_TS
from placewire.segments.segment import Segment, open_segments
from placewire.storage.layout import StateDir, open_lexicon
from placewire.storage.manifest import Manifest, SegmentEntry, read_latest
from placewire.text.analyzer import Analyzer, open_analyzer
from placewire.text.words import Lexicon, read_lexicon

DEFAULT_KEY = (1, 2)  # of term hashes, without a state that has its own


class NotRetained(InvalidEvent):
    """The state does not retain an object or subscription of that seq or id."""


class OpenSegment(NamedTuple):
    """A mapped segment with its manifest entry and its bitmap of ended rows."""

    entry: SegmentEntry
    segment: Segment
    dead: U64

    def ended(self, row: int) -> bool:
        """Whether a row has ended."""
        return bool(self.dead.size and int(self.dead[row >> 6]) >> (row & 63) & 1)


class ExplainContext(NamedTuple):
    """Settings and analyzer; with a state also its manifest, retained objects and segments."""

    settings: Settings
    analyzer: Analyzer
    lexicon: Lexicon | None
    state: StateDir | None = None
    manifest: Manifest | None = None
    sections: Sequence[Section] = ()
    segments: Sequence[OpenSegment] = ()

    def words_of(self, hashes: U64) -> dict[int, str]:
        """Look up the words of term hashes; only words of retained objects are known."""
        found: dict[int, str] = {}
        for section in self.sections:
            words = section.retained.words
            for at in np.flatnonzero(np.isin(words.hashes, hashes)).tolist():
                raw = words.raw[words.offsets[at] : words.offsets[at + 1]]
                found[int(words.hashes[at])] = raw.tobytes().decode()
        return found


def open_context(state: StateDir | None, settings: Settings | None) -> ExplainContext:
    """Open a state's last commit, or settings alone without a state; raises Unusable."""
    if state is None:
        chosen = settings or Settings()
        lexicon = None if chosen.lexicon is None else read_lexicon(chosen.lexicon)
        return ExplainContext(chosen, open_analyzer(chosen, DEFAULT_KEY), lexicon)
    manifest = read_latest(state)
    if manifest is None:
        raise Unusable(f"state {state.root}: has no committed batch yet")
    kept = manifest.settings
    if settings is not None and settings != kept:
        raise Unusable(f"state {state.root}: already has settings; do not give others")
    return ExplainContext(
        kept,
        open_analyzer(kept, manifest.key),
        open_lexicon(state, kept),
        state,
        manifest,
        open_sections(state, manifest.store),
        open_manifest_segments(state, manifest.segments),
    )


def open_manifest_segments(state: StateDir, entries: Sequence[SegmentEntry]) -> list[OpenSegment]:
    """Map the segments of a manifest."""
    opened = open_segments(state, entries)
    return [OpenSegment(entry, *pair) for entry, pair in zip(entries, opened, strict=True)]


def read_given(given: dict[str, Any], kind: str, unnamed: str) -> tuple[AnyEvent, int | None]:
    """Read an event whose `type`, `id` and `ts` are optional; returns it and its time, if given."""
    if given.get("type", kind) != kind:
        raise InvalidEvent(f"{unnamed}: type must be {kind!r}, got {given['type']!r}")
    try:
        line = msgspec.json.encode({"type": kind, "id": unnamed, "ts": NO_TS, **given})
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidEvent(f"{unnamed}: cannot be written as JSON: {error}") from None
    try:
        event = decode_event(line)
        stamp = parse_timestamp(event.ts)
    except InvalidEvent as error:
        raise InvalidEvent(f"{unnamed}: {error}") from None
    return event, stamp if "ts" in given else None
