"""Answer snapshot queries from files of retained objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from placewire.ingest.clock import BlockFacts
from placewire.ingest.queries import Query, read_query
from placewire.model.events import QueryEvent, decode_event
from placewire.model.kinds import AnswerSources, kind_named
from placewire.model.settings import Settings
from placewire.model.subscriptions import lengths_to_offsets
from placewire.objects.sections import (
    Json,
    Section,
    Span,
    open_sections,
)
from placewire.storage.arrays import write_arrays
from placewire.storage.layout import StateDir, open_lexicon
from placewire.storage.manifest import LinesEntry, StoreEntry
from placewire.text.analyzer import open_analyzer
from placewire.text.words import Lexicon


def answer_query(
    query: Query,
    span: Span,
    sections: Sequence[Section],
    lexicon: Lexicon | None = None,
    with_data: bool = False,
) -> dict[str, Any]:
    """Return the fields of an answer that depend on the kind of the query."""
    met = [section for section in sections if section.meets(span)]
    return kind_named(query.kind).answer(query, AnswerSources(span, met, lexicon, with_data))


QUERIES_PER_TASK = 256


class AskedQuery(NamedTuple):
    """A valid query of the batch: its position in the log, the clock there, its line."""

    seq: int
    now_us: int
    line: bytes


class QueryContext(NamedTuple):
    """The data that a process needs to answer queries; pickled into each task."""

    root: str
    key: tuple[int, int]
    settings: Settings
    store: tuple[StoreEntry, ...]


class Answered(NamedTuple):
    """Answers as lines, with and without the data of objects."""

    lines: list[bytes]
    lines_with_data: list[bytes]


def gather_queries(facts: Sequence[BlockFacts]) -> list[AskedQuery]:
    """Return the queries of a batch that the clock accepts, in log order."""
    asked = []
    for fact in facts:
        arrays = fact.arrays
        if "query.event" not in arrays:
            continue
        raw = arrays["query.line_bytes"].tobytes()
        edges = arrays["query.line_offsets"].tolist()
        events = arrays["query.event"]
        nows = fact.clock.nows(events, arrays["query.now_us"]).tolist()
        rejected = np.isin(events, fact.clock.rejected_event).tolist()
        for i, event in enumerate(events.tolist()):
            if not rejected[i]:
                line = raw[edges[i] : edges[i + 1]]
                asked.append(AskedQuery(fact.first_seq + event, nows[i], line))
    return asked


def split_queries(
    asked: Sequence[AskedQuery], size: int = QUERIES_PER_TASK
) -> list[list[AskedQuery]]:
    """Split queries into portions for tasks."""
    return [list(asked[at : at + size]) for at in range(0, len(asked), size)]


def answer_queries(context: QueryContext, portion: Sequence[AskedQuery]) -> Answered:
    """Answer some queries from the store's files."""
    analyzer = open_analyzer(context.settings, context.key)
    state = StateDir.at(context.root)
    lexicon = open_lexicon(state, context.settings)
    answered = Answered([], [])
    queries = []
    for asked in portion:
        event = decode_event(asked.line)
        assert isinstance(event, QueryEvent)
        queries.append(read_query(event, analyzer, context.settings))
    oldest_us = min(a.now_us - query.last_us for a, query in zip(portion, queries, strict=True))
    needed = [entry for entry in context.store if entry.last_us > oldest_us]
    sections = open_sections(state, needed)
    for asked, query in zip(portion, queries, strict=True):
        span = Span(asked.now_us - query.last_us, asked.now_us, before_seq=asked.seq)
        answer = answer_query(query, span, sections, lexicon, with_data=True)
        head = {"seq": asked.seq, "type": "answer", "query": query.id}
        answered.lines_with_data.append(encode_line(head | answer))
        answered.lines.append(encode_line(head | without_data(answer)))
    return answered


def without_data(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without the data of its objects."""
    if not any("data" in named for named in answer.get("objects", ())):
        return answer
    objects = [{k: v for k, v in named.items() if k != "data"} for named in answer["objects"]]
    return answer | {"objects": objects}


def encode_line(answer: dict[str, Any]) -> bytes:
    """Encode an answer as one line of JSON."""
    for named in answer.get("objects", ()):
        if "data" in named and isinstance(named["data"], Json):
            named["data"] = msgspec.Raw(named["data"])
    return msgspec.json.encode(answer) + b"\n"


def write_answers(
    state: StateDir, batch: int, asked: Sequence[AskedQuery], answered: Sequence[Answered]
) -> LinesEntry | None:
    """Write the answers of a batch, with a second version if some have data."""
    plain = [line for part in answered for line in part.lines]
    full = [line for part in answered for line in part.lines_with_data]
    labelled = {"plain": plain, "data": full if full != plain else []}
    return write_lines(state, batch, "answers", [one.seq for one in asked], labelled)


def write_lines(
    state: StateDir, batch: int, what: str, seqs: Sequence[int], labelled: dict[str, list[bytes]]
) -> LinesEntry | None:
    """Write lines of results by seq, in one or more versions."""
    if not seqs:
        return None
    arrays: dict[str, Any] = {"seq": np.array(seqs, np.int64)}
    for label, lines in labelled.items():
        if lines:
            arrays[f"{label}.starts"] = lengths_to_offsets(
                np.array([len(line) for line in lines], np.int64)
            )
            arrays[f"{label}.text"] = np.frombuffer(b"".join(lines), np.uint8)
    name = state.new_name(batch, what)
    write_arrays(state.file(name), arrays)
    return LinesEntry(name, len(seqs))
