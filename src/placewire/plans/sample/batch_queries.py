"""Questions for planners: queries of late batches and live `trending` rows, as SSTD has them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from placewire.ingest.queries import Query, read_query
from placewire.kinds.trending.rows import trending_columns
from placewire.model.events import QueryEvent, decode_event
from placewire.model.expression import COVER_ALL
from placewire.model.regions import circle_bounds
from placewire.model.settings import Settings
from placewire.model.subscriptions import concat_offsets, lengths_to_offsets
from placewire.model.times import SECOND_US
from placewire.plans.sample.questions import Questions
from placewire.plans.sample.sample import CTQ, SKQ, SRQ, STQ
from placewire.plans.sample.sampler import choose_evenly
from placewire.queries.answer import Answered, AskedQuery
from placewire.segments.live_segment import LiveSegment
from placewire.text.analyzer import Analyzer

MOST_QUERIES = 10_000
MOST_TRENDING = 100_000
QUERIES_A_BATCH = 256
OF_KINDS = {"boolean": SRQ, "nearest": SKQ, "trending": STQ}  # SSTD has nothing like `relevant`


def note_queries(
    known: Questions | None,
    asked: Sequence[AskedQuery],
    answered: Sequence[Answered],
    analyzer: Analyzer,
    settings: Settings,
) -> Questions | None:
    """The questions known, with some of a batch's queries; the oldest go when there are many."""
    lines = [line for part in answered for line in part.lines]
    fresh = []
    for at in choose_evenly(np.arange(len(asked)), QUERIES_A_BATCH).tolist():
        event = decode_event(asked[at].line)
        assert isinstance(event, QueryEvent)
        if event.kind in OF_KINDS:
            fresh.append(ask_query(read_query(event, analyzer, settings), lines[at], analyzer))
    if not fresh:
        return known
    return join_questions(([known] if known is not None else []) + fresh, MOST_QUERIES)


def ask_query(query: Query, answer: bytes, analyzer: Analyzer) -> Questions:
    """One query; a `nearest` one looked as far as its answer reaches."""
    box, words, every = query.region.box, list(query.terms), query.every
    if query.kind == "nearest":
        found = msgspec.json.decode(answer)["objects"]
        if len(found) == query.k:
            box = circle_bounds(query.lon, query.lat, max(found[-1]["distance_m"], 1.0))
    elif query.kind == "boolean":
        words = [query.program.terms[literal] for literal in query.program.cover]
        every = query.program.cover_mode != COVER_ALL
    return Questions(
        np.array([OF_KINDS[query.kind]], np.int8),
        np.array([box]),
        np.array([0, len(words)]),
        analyzer.hash_terms(words),
        np.array([every or not words]),
        np.array([query.last_us / SECOND_US]),
    )


def ask_trending(segments: Sequence[LiveSegment]) -> Questions | None:
    """The `trending` rows that are live; each looks at what comes while it lives."""
    parts = []
    for live in segments:
        rows = live.segment.rows
        picked = choose_evenly(np.flatnonzero(~live.ended_mask()), MOST_TRENDING)
        count = picked.size
        parts.append(
            Questions(
                np.full(count, CTQ, np.int8),
                rows.box[picked],
                np.zeros(count + 1, np.int64),
                np.empty(0, np.uint64),
                np.ones(count, np.bool_),
                trending_columns(rows).window_us[picked] / SECOND_US,
            )
        )
    return join_questions(parts, MOST_TRENDING) if parts else None


def join_questions(parts: Sequence[Questions], most: int) -> Questions:
    """All questions, or the last `most` of them."""
    joined = Questions(
        np.concatenate([part.kind for part in parts]),
        np.concatenate([part.box for part in parts]),
        concat_offsets([part.term_offsets for part in parts]),
        np.concatenate([part.terms for part in parts]),
        np.concatenate([part.every for part in parts]),
        np.concatenate([part.duration for part in parts]),
    )
    first = max(0, joined.total - most)
    lengths = np.diff(joined.term_offsets)[first:]
    return Questions(
        joined.kind[first:],
        joined.box[first:],
        lengths_to_offsets(lengths),
        joined.terms[joined.term_offsets[first] :],
        joined.every[first:],
        joined.duration[first:],
    )
