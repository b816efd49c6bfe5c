"""Frequent terms: those of retained objects in a region, counted and ranked."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.model.subscriptions import lengths_to_offsets
from placewire.objects.index import Retained
from placewire.objects.kernels.term_counts import most_frequent, terms_counted
from placewire.objects.sections import SearchRegion, Section, Span, ranges_of

_room = threading.local()


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


def count_section(section: Section, ground: SearchRegion, span: Span) -> Counted:
    """Count the terms of one file."""
    retained = section.retained
    terms, counts, objects = terms_counted(
        ranges_of(section, ground),
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
