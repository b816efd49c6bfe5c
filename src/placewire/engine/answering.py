"""Answering snapshot queries from files of retained objects, the same way wherever it is asked."""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.engine.querying import Query
from placewire.index.retained import Retained
from placewire.kernels.cells import points_to_codes
from placewire.kernels.counting import most_frequent, terms_counted
from placewire.kernels.finding import rows_found
from placewire.kernels.jit import read_only
from placewire.kernels.searching import nearest_in_lists, relevant_in_lists
from placewire.kernels.stretches import FEW, region_to_stretches
from placewire.kernels.words import place_of_slice
from placewire.model.expression import COVER_ALL, COVER_ANY
from placewire.model.regions import CIRCLE, Region, circle_bounds
from placewire.model.subscriptions import lengths_to_offsets
from placewire.text.lexicon import Lexicon

FAR_PAST = np.iinfo(np.int64).min
FAR_FUTURE = np.iinfo(np.int64).max
NO_BOX = np.zeros(4)
SHORT_LIST = 256  # a list that is shorter is walked whole: finding the region's cells costs more


class Span(NamedTuple):
    """Which retained objects count: after_us < ts <= until_us, after_seq < seq < before_seq."""

    after_us: int
    until_us: int
    after_seq: int = -1
    before_seq: int = FAR_FUTURE


class Section(NamedTuple):
    """A file of retained objects with what is known of it from outside.

    `rows` i64[p, 2] are those of the parts that are asked: all of them, or a worker's own.
    """

    retained: Retained
    rows: NDArray[np.int64]
    first_seq: int
    last_seq: int
    first_us: int
    last_us: int

    def meets(self, span: Span) -> bool:
        return (
            self.last_us > span.after_us
            and self.first_us <= span.until_us
            and self.last_seq > span.after_seq
            and self.first_seq < span.before_seq
        )

    def within(self, span: Span) -> bool:
        """Whether all of its objects count."""
        return (
            self.first_us > span.after_us
            and self.last_us <= span.until_us
            and self.first_seq > span.after_seq
            and self.last_seq < span.before_seq
        )


def part_rows(retained: Retained, parts: Collection[int] | None = None) -> NDArray[np.int64]:
    """Where the rows of a file's parts begin and end, or of those that are named: i64[p, 2]."""
    rows = np.stack([retained.part_rows[:-1], retained.part_rows[1:]], axis=1)
    return rows if parts is None else rows[np.isin(retained.part, list(parts))]


class Ground(NamedTuple):
    """A region as kernels take it."""

    kind: int
    box: NDArray[np.float64]
    shape: NDArray[np.float64]


def ground_of(region: Region) -> Ground:
    return Ground(
        region.kind, read_only(np.array(region.box)), read_only(np.array(region.shape, np.float64))
    )


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


def words_in(retained: Retained, words: Sequence[str]) -> NDArray[np.int64]:
    """The numbers of words in a file, -1 for one that none of its objects has."""
    numbers = np.empty(len(words), np.int64)
    for i, word in enumerate(words):
        raw = encoded(word)
        numbers[i] = place_of_slice(retained.word_offsets, retained.word_bytes, raw)
    return numbers


@lru_cache(4096)
def encoded(word: str) -> NDArray[np.uint8]:
    """A word's bytes."""
    return np.frombuffer(word.encode(), np.uint8)


def stretches_of(section: Section, ground: Ground, few: int = FEW) -> NDArray[np.int64]:
    """The stretches of rows that may lie in a region, part by part."""
    found: NDArray[np.int64] = region_to_stretches(
        *ground, section.retained.code, section.rows, few
    )
    return found


def whole_parts(section: Section) -> NDArray[np.int64]:
    """All rows, as stretches that may or may not lie in a region."""
    return np.concatenate([section.rows, np.zeros((section.rows.shape[0], 1), np.int64)], axis=1)


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


def name_object(retained: Retained, row: int, with_data: bool, **measure: float) -> dict[str, Any]:
    """An object as results name it; its data is left as JSON."""
    begin, end = retained.id_offsets[row], retained.id_offsets[row + 1]
    named: dict[str, Any] = {"object": retained.id_bytes[begin:end].tobytes().decode(), **measure}
    if with_data and retained.data_offsets.size > 1:
        begin, end = retained.data_offsets[row], retained.data_offsets[row + 1]
        if end > begin:
            named["data"] = Json(retained.data_bytes[begin:end].tobytes())
    return named


class Json(bytes):
    """A value that is JSON already."""


class Best:
    """The best k so far, by a measure and seq, ascending."""

    def __init__(self, k: int) -> None:
        self.arrays = (
            np.full(k, math.inf),
            np.zeros(k, np.int64),
            np.zeros(k, np.int64),
            np.zeros(k, np.int64),
        )
        self.k = k
        self.count = 0

    @property
    def worst(self) -> float:
        """The measure beyond which nothing can enter."""
        return float(self.arrays[0][self.k - 1]) if self.count == self.k else math.inf


def answer_nearest(
    query: Query, span: Span, sections: Sequence[Section], with_data: bool
) -> dict[str, Any]:
    """The nearest objects: first those close along the curve, whose distance bounds the rest."""
    best = Best(query.k)
    code = int(points_to_codes(np.array([query.lon]), np.array([query.lat]))[0])
    asked = [words_in(section.retained, query.terms) for section in sections]
    for seeding in (True, False):
        within = min(query.within_m, best.worst)
        ground = None
        if math.isfinite(within):
            box = circle_bounds(query.lon, query.lat, within)
            ground = ground_of(Region(CIRCLE, box, (query.lon, query.lat, within)))
        for number, section in enumerate(sections):
            retained = section.retained
            present = asked[number][asked[number] >= 0]
            if present.size == 0 or (query.every and present.size < asked[number].size):
                continue
            stretches = whole_parts(section)
            if not seeding and ground is not None:
                stretches = stretches_of(section, ground)
            best.count = nearest_in_lists(
                stretches,
                seeding,
                code,
                query.lon,
                query.lat,
                query.within_m,
                retained.lon,
                retained.lat,
                retained.ts_us,
                retained.seq,
                retained.code,
                retained.term_offsets,
                retained.terms,
                retained.list_offsets,
                retained.lists,
                present,
                query.every,
                *span,
                number,
                *best.arrays,
                best.count,
            )
    distances, _, owners, rows = best.arrays
    return {
        "objects": [
            name_object(
                sections[owners[i]].retained,
                int(rows[i]),
                with_data,
                distance_m=float(distances[i]),
            )
            for i in range(best.count)
        ]
    }


def answer_relevant(
    query: Query,
    span: Span,
    sections: Sequence[Section],
    lexicon: Lexicon | None,
    with_data: bool,
) -> dict[str, Any]:
    """The objects of the highest score."""
    best = Best(query.k)
    weights = np.array(
        [1.0 if lexicon is None else lexicon.idf(term.encode()) for term in query.terms]
    )
    total = 0.0
    for weight in weights.tolist():  # one after another, as the specification adds them
        total += weight * weight
    ask_norm = math.sqrt(total)
    for number, section in enumerate(sections):
        retained = section.retained
        asked = words_in(retained, query.terms)
        present = asked >= 0
        if not present.any():
            continue
        best.count = relevant_in_lists(
            whole_parts(section),
            query.lon,
            query.lat,
            query.alpha,
            query.reach_m,
            retained.lon,
            retained.lat,
            retained.ts_us,
            retained.seq,
            retained.term_offsets,
            retained.terms,
            retained.norm,
            retained.list_offsets,
            retained.lists,
            asked[present],
            weights[present],
            ask_norm,
            *span,
            number,
            *best.arrays,
            best.count,
        )
    scores, _, owners, rows = best.arrays
    return {
        "objects": [
            name_object(
                sections[owners[i]].retained, int(rows[i]), with_data, score=-float(scores[i])
            )
            for i in range(best.count)
        ]
    }


class Counted(NamedTuple):
    """The terms of some of a file's objects, how many have each, and how many objects."""

    retained: Retained
    terms: NDArray[np.uint32]
    counts: NDArray[np.int64]
    objects: int


def counting_room(words: int) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Counts of zero and scratch for some words, kept by each thread: to clear them takes longer
    than most questions."""
    if not hasattr(_room, "counts") or _room.counts.size < words:
        _room.counts, _room.touched = np.zeros(2 * words, np.int64), np.empty(2 * words, np.uint32)
    return _room.counts, _room.touched


_room = threading.local()


def count_section(section: Section, ground: Ground, span: Span) -> Counted:
    """Count the terms of one file."""
    retained = section.retained
    terms, counts, objects = terms_counted(
        stretches_of(section, ground),
        *ground,
        retained.lon,
        retained.lat,
        retained.ts_us,
        retained.seq,
        retained.term_offsets,
        retained.terms,
        retained.nodes,
        retained.table_offsets,
        retained.table_terms,
        retained.table_counts,
        *counting_room(retained.word_hash.size),
        section.within(span),
        *span,
    )
    return Counted(retained, terms, counts, int(objects))


def top_terms(counted: Sequence[Counted], k: int) -> list[list[Any]]:
    """The most frequent terms of all files together, those of equal count in code-point order."""
    hashes = np.concatenate(
        [c.retained.word_hash[c.terms] for c in counted] or [np.empty(0, np.uint64)]
    )
    if hashes.size == 0:
        return []
    counts = np.concatenate([c.counts for c in counted])
    offsets = lengths_to_offsets(np.array([c.terms.size for c in counted]))
    first, sums = most_frequent(hashes, counts, offsets, k)
    picked = np.arange(sums.size)
    if k < sums.size:
        least = np.partition(sums, sums.size - k)[sums.size - k]
        picked = np.flatnonzero(sums >= least)
    named = []
    for number in picked.tolist():
        at = int(first[number])
        owner = int(np.searchsorted(offsets, at, "right")) - 1
        one = counted[owner]
        term = int(one.terms[at - int(offsets[owner])])
        begin, end = one.retained.word_offsets[term], one.retained.word_offsets[term + 1]
        named.append((-int(sums[number]), one.retained.word_bytes[begin:end].tobytes().decode()))
    named.sort()
    return [[word, -count] for count, word in named[:k]]
