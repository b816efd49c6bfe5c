"""Answer snapshot queries of the kind `trending`: count and rank the terms of retained objects."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placewire.ingest.queries import Query
from placewire.kinds.trending.kernels.term_counts import CountingRoom, most_frequent, terms_counted
from placewire.model.arrays import I64, U32
from placewire.model.subscriptions import lengths_to_offsets
from placewire.objects.index import Retained
from placewire.objects.kernels.cell_ranges import SearchRegion
from placewire.objects.sections import Section, Span, region_of

_room = threading.local()


class Counted(NamedTuple):
    """The terms of some of a file's objects, the count of each, and the number of objects."""

    retained: Retained
    terms: U32
    counts: I64
    objects: int


def answer_trending(query: Query, span: Span, sections: Sequence[Section]) -> dict[str, Any]:
    """Count the terms of objects in a region and return the most frequent ones."""
    region = region_of(query.region)
    counted = [count_section(section, region, span) for section in sections]
    return {"terms": top_terms(counted, query.k)}


def counting_room(words: int) -> CountingRoom:
    """Return scratch per thread, since clearing new scratch takes longer than most queries."""
    if not hasattr(_room, "room") or _room.room.counts.size < words:
        _room.room = CountingRoom(np.zeros(2 * words, np.int64), np.empty(2 * words, np.uint32))
    return _room.room


def count_section(section: Section, region: SearchRegion, span: Span) -> Counted:
    """Count the terms of one file."""
    retained = section.retained
    terms, counts, objects = terms_counted(
        section.counted,
        section.rows,
        region,
        span,
        section.within(span),
        counting_room(retained.word_hash.size),
    )
    return Counted(retained, terms, counts, int(objects))


def least_count(counted: Sequence[Counted], k: int) -> int:
    """Return a count that each of the k most frequent terms reaches in at least one file.

    The totals of these k terms are at least the k-th count of the largest file, so each of them has
    at least its share of that count in some file.
    """
    largest = max(counted, key=lambda one: one.terms.size).counts
    if largest.size <= k:
        return 1
    reached = int(np.partition(largest, largest.size - k)[largest.size - k])
    return max(1, -(-reached // len(counted)))


def top_terms(counted: Sequence[Counted], k: int) -> list[list[Any]]:
    """Rank the most frequent terms of all files together; ties are in code-point order."""
    hashes = np.concatenate(
        [c.retained.word_hash[c.terms] for c in counted] or [np.empty(0, np.uint64)]
    )
    if hashes.size == 0:
        return []
    counts = np.concatenate([c.counts for c in counted])
    offsets = lengths_to_offsets(np.array([c.terms.size for c in counted]))
    first, sums = most_frequent(hashes, counts, least_count(counted, k))
    picked = np.arange(sums.size)
    if k < sums.size:
        least = np.partition(sums, sums.size - k)[sums.size - k]
        picked = np.flatnonzero(sums >= least)
    places = first[picked]
    owners = np.searchsorted(offsets, places, "right") - 1
    named = []
    for count, owner, at in zip(
        sums[picked].tolist(), owners.tolist(), (places - offsets[owners]).tolist(), strict=True
    ):
        retained, terms = counted[owner].retained, counted[owner].terms
        begin, end = retained.word_offsets[terms[at] : terms[at] + 2]
        named.append((-count, retained.word_bytes[begin:end].tobytes().decode()))
    named.sort()
    return [[word, -count] for count, word in named[:k]]
