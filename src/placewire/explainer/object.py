"""The object to explain: given as JSON, or retained by a state."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from placewire.explainer.context import ExplainContext, NotRetained, read_given
from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import points_to_codes
from placewire.model.arrays import F64, I64, U8, U32, U64
from placewire.model.errors import InvalidEvent
from placewire.model.events import ObjectEvent, check_point, check_text, compact_data
from placewire.model.times import format_timestamp
from placewire.objects.sections import Section, rows_of_id
from placewire.text.words import words_of_terms


class ExplainedObject(NamedTuple):
    """The object; `terms` are the ascending hashes of `words`, `seq` is None if it is in no log.

    `namesakes` counts earlier retained objects of the same id.
    """

    id: str | None
    seq: int | None
    ts_us: int | None
    lon: float
    lat: float
    words: dict[int, str]
    terms: U64
    namesakes: int = 0

    def columns(self, now_us: int) -> tuple[U32, F64, F64, I64, I64, U64]:
        """Return the object as a block of one: the columns that `make_probe` takes."""
        lon, lat = read_only(np.array([self.lon])), read_only(np.array([self.lat]))
        return (
            read_only(points_to_codes(lon, lat)),
            lon,
            lat,
            read_only(np.array([now_us])),
            read_only(np.array([0, self.terms.size])),
            read_only(self.terms),
        )


def read_given_object(context: ExplainContext, given: dict[str, Any]) -> ExplainedObject:
    """Read an object from JSON, which is in no log; raises InvalidEvent."""
    event, ts_us = read_given(given, "object", "object")
    assert isinstance(event, ObjectEvent)
    try:
        check_point(event.lon, event.lat)
        text = check_text(event.text)
        compact_data(event.data)
        now_us = context.manifest.now_us if context.manifest is not None else None
        ahead_us = context.settings.max_ahead_us
        if ts_us is not None and now_us is not None and ts_us - now_us > ahead_us:
            now = format_timestamp(now_us)
            raise InvalidEvent(f"ts is more than max_ahead past now, got {event.ts}, now is {now}")
    except InvalidEvent as error:
        raise InvalidEvent(f"object: {error}") from None
    texts = np.frombuffer(text, np.uint8), np.array([0]), np.array([len(text)])
    terms = context.analyzer.analyse(*texts)
    words, _ = words_of_terms(context.analyzer, terms, *texts)
    return ExplainedObject(
        event.id if "id" in given else None,
        None,
        ts_us,
        float(event.lon),
        float(event.lat),
        words_by_hash(words.hashes, words.offsets, words.raw),
        terms.hashes,
    )


def words_by_hash(hashes: U64, offsets: I64, raw: U8) -> dict[int, str]:
    """Map hashes to words."""
    edges, whole = offsets.tolist(), raw.tobytes()
    return {h: whole[edges[i] : edges[i + 1]].decode() for i, h in enumerate(hashes.tolist())}


def find_object(context: ExplainContext, wanted: int | str) -> ExplainedObject:
    """Find a retained object by its seq, or the latest of an id; raises NotRetained."""
    if context.manifest is None:
        raise InvalidEvent(f"object {wanted!r}: needs a state to be found in")
    found: list[tuple[int, Section, int]] = []
    for section in context.sections:
        kept = section.retained
        if isinstance(wanted, int):
            rows = np.flatnonzero(kept.seq == wanted)
        else:
            rows = rows_of_id(kept.id_offsets, kept.id_bytes, wanted)
        found += [(int(kept.seq[row]), section, row) for row in rows.tolist()]
    if not found:
        raise NotRetained(describe_missing(context, wanted))
    seq, section, row = max(found, key=lambda one: one[0])
    kept = section.retained
    numbers = kept.terms[kept.term_offsets[row] : kept.term_offsets[row + 1]]
    words = {
        int(kept.word_hash[n]): kept.word_bytes[kept.word_offsets[n] : kept.word_offsets[n + 1]]
        .tobytes()
        .decode()
        for n in numbers.tolist()
    }
    return ExplainedObject(
        kept.id_bytes[kept.id_offsets[row] : kept.id_offsets[row + 1]].tobytes().decode(),
        seq,
        int(kept.ts_us[row]),
        float(kept.lon[row]),
        float(kept.lat[row]),
        words,
        np.sort(kept.word_hash[numbers]),
        len(found) - 1,
    )


def describe_missing(context: ExplainContext, wanted: int | str) -> str:
    """Say why there is no such object."""
    assert context.manifest is not None
    if isinstance(wanted, str):
        return f"object {wanted!r}: no retained object has this id"
    if wanted >= context.manifest.next_seq:
        return f"object {wanted}: the state ends before seq {context.manifest.next_seq}"
    return f"object {wanted}: is not retained, or the event of this seq is no object"
