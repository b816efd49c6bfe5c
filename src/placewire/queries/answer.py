"""Answering snapshot queries from files of retained objects, the same way wherever it is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewire.ingest.clock import BlockFacts
from placewire.ingest.queries import Query, read_query
from placewire.model.events import QueryEvent, decode_event
from placewire.model.expression import COVER_ALL, COVER_ANY
from placewire.model.settings import Settings
from placewire.model.subscriptions import lengths_to_offsets
from placewire.objects.frequent import count_section, top_terms
from placewire.objects.index import Retained
from placewire.objects.kernels.find import rows_found
from placewire.objects.sections import (
    Json,
    Section,
    Span,
    ground_of,
    name_object,
    open_sections,
    stretches_of,
    whole_parts,
    words_in,
)
from placewire.queries.ranked import answer_nearest, answer_relevant
from placewire.storage.arrays import write_arrays
from placewire.storage.layout import StateDir, open_lexicon
from placewire.storage.manifest import LinesEntry, StoreEntry
from placewire.text.analyzer import open_analyzer
from placewire.text.lexicon import Lexicon

SHORT_LIST = 256  # a list that is shorter is walked whole: finding the region's cells costs more


def answer_query(
    query: Query,
    span: Span,
    sections: Sequence[Section],
    lexicon: Lexicon | None = None,
    with_data: bool = False,
) -> dict[str, Any]:
    """The answer's own fields: `total` and `objects`, or `terms`."""
    met = [section for section in sections if section.meets(span)]
    if query.kind == "boolean":
        return answer_boolean(query, span, met, with_data)
    if query.kind == "nearest":
        return answer_nearest(query, span, met, with_data)
    if query.kind == "relevant":
        return answer_relevant(query, span, met, lexicon, with_data)
    ground = ground_of(query.region)
    counted = [count_section(section, ground, span) for section in met]
    return {"terms": top_terms(counted, query.k)}


def answer_boolean(
    query: Query, span: Span, sections: Sequence[Section], with_data: bool
) -> dict[str, Any]:
    """How many objects match, and the newest of them."""
    ground = ground_of(query.region)
    program = query.program
    total = 0
    found: list[tuple[Retained, NDArray[np.uint32]]] = []
    on_true = np.array(program.on_true, np.int64)
    on_false = np.array(program.on_false, np.int64)
    for section in sections:
        retained = section.retained
        literals = words_in(retained, program.terms)
        cover, length = choose_cover(retained, literals, program.cover_mode, program.cover)
        listed = program.cover_mode != COVER_ANY
        if listed and length == 0:
            continue
        if listed and length <= SHORT_LIST:
            stretches = whole_parts(section)
        else:
            stretches = stretches_of(section, ground)
        rows = rows_found(
            stretches,
            *ground,
            retained.lon,
            retained.lat,
            retained.ts_us,
            retained.seq,
            retained.term_offsets,
            retained.terms,
            retained.list_offsets,
            retained.lists,
            literals,
            on_true,
            on_false,
            cover,
            listed,
            *span,
        )
        total += rows.size
        if rows.size:
            found.append((retained, rows))
    seqs = np.concatenate([r.seq[rows] for r, rows in found] or [np.empty(0, np.int64)])
    if seqs.size > query.limit:
        newest = np.argpartition(-seqs, query.limit - 1)[: query.limit]
    else:
        newest = np.arange(seqs.size)
    newest = newest[np.argsort(-seqs[newest])]
    owner = np.repeat(np.arange(len(found)), [rows.size for _, rows in found])
    rows_all = np.concatenate([rows for _, rows in found] or [np.empty(0, np.uint32)])
    objects = [
        name_object(found[owner[i]][0], int(rows_all[i]), with_data) for i in newest.tolist()
    ]
    return {"total": total, "objects": objects}


def choose_cover(
    retained: Retained, literals: NDArray[np.int64], mode: int, cover: Sequence[int]
) -> tuple[NDArray[np.int64], int]:
    """The terms whose lists have every match, and how long these lists are.

    If all matches have each term of the cover, the shortest list will do.
    """
    numbers = literals[np.array(cover, np.int64)]
    lengths = np.where(
        numbers >= 0,
        retained.list_offsets[numbers + 1] - retained.list_offsets[numbers],
        0,
    )
    if mode == COVER_ALL or numbers.size == 0:
        return numbers, int(lengths.sum())
    shortest = int(lengths.argmin())
    return numbers[shortest : shortest + 1], int(lengths[shortest])


QUERIES_A_TASK = 256


class Asked(NamedTuple):
    """A valid query of the batch: its place in the log, the clock there, its line."""

    seq: int
    now_us: int
    line: bytes


class AskContext(NamedTuple):
    """What a process must know to answer queries; small, and pickled into each task."""

    root: str
    key: tuple[int, int]
    settings: Settings
    store: tuple[StoreEntry, ...]


class Answered(NamedTuple):
    """Answers as lines, without the objects' data and with it; the same if there is none."""

    lines: list[bytes]
    lines_with_data: list[bytes]


Ask = Callable[[AskContext, list[list[Asked]]], list[Answered]]


def gather_queries(facts: Sequence[BlockFacts]) -> list[Asked]:
    """The queries of a batch that the clock accepts, in log order."""
    asked = []
    for fact in facts:
        arrays = fact.arrays
        if "query.event" not in arrays:
            continue
        raw = arrays["query.line_bytes"].tobytes()
        edges = arrays["query.line_offsets"].tolist()
        events = arrays["query.event"]
        nows = fact.clock.nows(events, arrays["query.now_us"]).tolist()
        refused = np.isin(events, fact.clock.refused_event).tolist()
        for i, event in enumerate(events.tolist()):
            if not refused[i]:
                line = raw[edges[i] : edges[i + 1]]
                asked.append(Asked(fact.first_seq + event, nows[i], line))
    return asked


def cut_queries(asked: Sequence[Asked], size: int = QUERIES_A_TASK) -> list[list[Asked]]:
    """Queries in portions for tasks."""
    return [list(asked[at : at + size]) for at in range(0, len(asked), size)]


def answer_here(context: AskContext, portions: list[list[Asked]]) -> list[Answered]:
    """Answer in this process."""
    return [answer_portion(context, portion) for portion in portions]


def answer_portion(context: AskContext, portion: Sequence[Asked]) -> Answered:
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
    """An answer whose objects are named without their data."""
    if not any("data" in named for named in answer.get("objects", ())):
        return answer
    objects = [{k: v for k, v in named.items() if k != "data"} for named in answer["objects"]]
    return answer | {"objects": objects}


def encode_line(answer: dict[str, Any]) -> bytes:
    """An answer as one line of JSON."""
    for named in answer.get("objects", ()):
        if "data" in named and isinstance(named["data"], Json):
            named["data"] = msgspec.Raw(named["data"])
    return msgspec.json.encode(answer) + b"\n"


def write_answers(
    state: StateDir, batch: int, asked: Sequence[Asked], answered: Sequence[Answered]
) -> LinesEntry | None:
    """Write the answers of a batch, those with data apart if they differ."""
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
