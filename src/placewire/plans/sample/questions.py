"""Questions: queries and subscriptions of SSTD's six kinds, added to a sample.

They are taken from the queries of recent batches and from live `trending` rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from placewire.ingest.queries import Query, read_query
from placewire.kinds.trending.rows import trending_columns
from placewire.model.arrays import F64, I8, I32, I64, U64, Bools
from placewire.model.events import QueryEvent, decode_event
from placewire.model.expression import COVER_ALL
from placewire.model.regions import circle_bounds
from placewire.model.settings import Settings
from placewire.model.subscriptions import (
    concat_columns,
    concat_offsets,
    lengths_to_offsets,
    take_slices,
)
from placewire.model.times import SECOND_US
from placewire.plans.kernels.parts import rows_least_frequent
from placewire.plans.sample.sample import (
    ANY,
    CKQ,
    CRQ,
    CTQ,
    LONGEST,
    SKQ,
    SRQ,
    STQ,
    Sample,
    Traits,
    cells_of_boxes,
    choose_evenly,
)
from placewire.queries.answer import Answered, AskedQuery
from placewire.segments.live_segment import LiveSegment
from placewire.text.analyzer import Analyzer


class Questions(NamedTuple):
    """q questions: snapshot queries, or subscriptions of other kinds than a sample has.

    `kind` i8[q], SRQ to CTQ. `box` f64[q, 4] is in degrees, west > east across the antimeridian:
    the region's, or for a nearest one that of the circle which was searched. Terms (CSR) are its
    keywords' hashes: an object must have `every` one (bool[q]) or any of them; without any, all
    texts will do. `duration` f64[q]: a query's `last`, or a subscription's life.
    """

    kind: I8
    box: F64
    term_offsets: I64
    terms: U64
    every: Bools
    duration: F64

    @property
    def total(self) -> int:
        return int(self.kind.size)


def add_questions(
    sample: Sample, questions: Questions, span: float, lives: F64 | None = None
) -> Sample:
    """The sample with questions as further rows, and the kinds of all its rows.

    Its objects came in `span`, a time in the unit of all durations; `lives` f64[m] are those of
    its own rows, as long as `span` if not given. They count as boolean subscriptions if they have
    no kinds yet. Objects are kept if anyone asks for more than those that match as they come.
    """
    of_rows = sample.traits
    if of_rows is None:
        of_rows = assume_kind(sample, CRQ)._replace(duration=np.full(sample.subscriptions, span))
    if lives is not None:
        of_rows = of_rows._replace(duration=lives)
    lexicon = np.union1d(sample.lexicon, questions.terms)
    moved = np.append(np.searchsorted(lexicon, sample.lexicon), ANY).astype(np.int32)
    frequency = np.zeros(lexicon.size, np.int64)
    frequency[moved[:-1]] = sample.frequency
    keywords = np.searchsorted(lexicon, questions.terms).astype(np.int32)
    post_offsets, posts = choose_posts(questions, keywords, frequency)
    count = np.diff(questions.term_offsets)
    length = np.where(questions.every, np.minimum(count, LONGEST), np.minimum(count, 1))
    kind = np.concatenate([of_rows.kind, questions.kind])
    return sample._replace(
        terms=moved[sample.terms],
        cell=np.concatenate([sample.cell, cells_of_boxes(questions.box)]),
        post_offsets=concat_offsets([sample.post_offsets, post_offsets]),
        posts=np.concatenate([moved[sample.posts], posts]),
        lexicon=lexicon,
        frequency=frequency,
        traits=Traits(
            kind=kind,
            length=np.concatenate([of_rows.length, length.astype(np.int8)]),
            duration=np.concatenate([of_rows.duration, questions.duration]),
            keyword_offsets=concat_offsets([of_rows.keyword_offsets, questions.term_offsets]),
            keywords=np.concatenate([moved[of_rows.keywords], keywords]),
            span=span,
            kept=bool(((kind != CRQ) & (kind != CKQ)).any()),
        ),
    )


def choose_posts(questions: Questions, keywords: I32, frequency: I64) -> tuple[I64, I32]:
    """The terms under which questions would be posted, as a sample has them: CSR."""
    count = np.diff(questions.term_offsets)
    one = questions.every | (count == 0)
    offsets = lengths_to_offsets(np.where(one, 1, count))
    posts = np.empty(int(offsets[-1]), np.int32)
    rarest = rows_least_frequent(
        questions.term_offsets, keywords.astype(np.int64), questions.terms, frequency
    )
    found = np.append(keywords, ANY)  # of a row without terms the rarest is -1, the last
    posts[offsets[:-1][one]] = found[rarest[one]]
    several = np.flatnonzero(~one)
    _, to = take_slices(offsets, several)
    _, at = take_slices(questions.term_offsets, several)
    posts[to] = keywords[at]
    return offsets, posts


def assume_kind(sample: Sample, kind: int) -> Traits:
    """All rows of one kind, each looking as far as the sample reaches.

    A row counts as one keyword, because a sample keeps only those under which rows are posted, or
    as none if it needs none.
    """
    rows = sample.subscriptions
    needs_none = np.zeros(rows, np.int8)
    needs_none[:] = sample.posts[sample.post_offsets[:-1]] < 0
    return Traits(
        kind=np.full(rows, kind, np.int8),
        length=1 - needs_none,
        duration=np.ones(rows),
        keyword_offsets=sample.post_offsets,
        keywords=sample.posts,
        span=1.0,
    )


def traits_of(sample: Sample) -> Traits:
    """The traits of a sample's rows; without any, all are boolean subscriptions."""
    return assume_kind(sample, CRQ) if sample.traits is None else sample.traits


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
    joined = concat_columns(parts)
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
