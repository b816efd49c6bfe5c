"""Report frequent terms: one sweep over time per group, as objects enter and leave the window."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placewire.kernels.bytes import compare_slices
from placewire.kernels.jit import array_subkernel, kernel, subkernel
from placewire.kernels.text.hash_table import EMPTY, entry_of_hash
from placewire.kinds.trending.kernels.term_counts import longer

if TYPE_CHECKING:
    from placewire.kinds.trending.due import DueGroups
    from placewire.text.words import Words


class StartCounts(NamedTuple):
    """The counts of groups at their first due time.

    File f gives group g the words offsets[f, g]:offsets[f, g + 1] with their counts. `objects` are
    totals over all files.
    """

    offsets: np.ndarray  # i64[f, g + 1]
    words: np.ndarray  # i64
    counts: np.ndarray  # i64
    objects: np.ndarray  # i64[g]


class ObjectMoves(NamedTuple):
    """Objects that enter (step 1) or leave (-1) at a time, with their words as a CSR column.

    File f gives group g the moves offsets[f, g]:offsets[f, g + 1].
    """

    offsets: np.ndarray  # i64[f, g + 1]
    at_us: np.ndarray  # i64[m]
    step: np.ndarray  # i64[m]
    term_offsets: np.ndarray  # i64[m + 1]
    words: np.ndarray  # i64


@array_subkernel
def note_term(
    table: np.ndarray, keys: np.ndarray, words: np.ndarray, known: int, key: np.uint64, word: int
) -> tuple:  # type: ignore[type-arg]
    """Return the number of a term by its hash, adding the term if new, and how many there are."""
    at = entry_of_hash(table, key)
    if table[at + np.uint64(1)] == EMPTY:
        table[at] = key
        table[at + np.uint64(1)] = np.uint64(known)
        keys[known] = key
        words[known] = word
        return np.int64(known), known + 1
    return np.int64(table[at + np.uint64(1)]), known


@subkernel
def is_before(
    counts: np.ndarray,
    words: np.ndarray,
    word_offsets: np.ndarray,
    word_bytes: np.ndarray,
    one: int,
    other: int,
) -> bool:
    """Return true if a term ranks before another: more frequent, or equal and lower."""
    if counts[one] != counts[other]:
        return bool(counts[one] > counts[other])
    a, b = words[one], words[other]
    order = compare_slices(
        word_bytes,
        word_offsets[a],
        word_offsets[a + 1],
        word_bytes,
        word_offsets[b],
        word_offsets[b + 1],
    )
    return bool(order < 0)


@subkernel
def sift_down(
    heap: np.ndarray,
    size: int,
    at: int,
    counts: np.ndarray,
    words: np.ndarray,
    word_offsets: np.ndarray,
    word_bytes: np.ndarray,
) -> None:
    """Sift a term down in a heap whose top is the lowest-ranked term."""
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and is_before(
            counts, words, word_offsets, word_bytes, heap[child], heap[child + 1]
        ):
            child += 1
        if is_before(counts, words, word_offsets, word_bytes, heap[child], heap[at]):
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


@subkernel
def first_terms(
    counts: np.ndarray,
    words: np.ndarray,
    known: int,
    k: int,
    heap: np.ndarray,
    word_offsets: np.ndarray,
    word_bytes: np.ndarray,
) -> int:
    """Write the first k terms in order into `heap`; return how many there are."""
    size = 0
    for term in range(known):
        if counts[term] <= 0:
            continue
        if size < k:
            heap[size] = term
            size += 1
            if size == k:
                for at in range(size // 2 - 1, -1, -1):
                    sift_down(heap, size, at, counts, words, word_offsets, word_bytes)
        elif is_before(counts, words, word_offsets, word_bytes, term, heap[0]):
            heap[0] = term
            sift_down(heap, size, 0, counts, words, word_offsets, word_bytes)
    if size < k:
        for at in range(size // 2 - 1, -1, -1):
            sift_down(heap, size, at, counts, words, word_offsets, word_bytes)
    for end in range(size - 1, 0, -1):
        heap[0], heap[end] = heap[end], heap[0]
        sift_down(heap, end, 0, counts, words, word_offsets, word_bytes)
    return size


@kernel
def groups_reported(
    groups: DueGroups, starts: StartCounts, moves: ObjectMoves, pool: Words
) -> tuple:  # type: ignore[type-arg]
    """Return all reports of all groups.

    `starts` and `moves` number words in one pool, where a word may occur several times. Returns
    the due row, the time and a CSR column of words and counts.
    """
    due_offsets, due_k, due_every = groups.due_offsets, groups.due_k, groups.due_every_us
    due_first, due_until = groups.due_first_us, groups.due_until_us
    start_offsets, start_word, start_count, start_objects = starts
    move_offsets, move_us, move_step, move_term_offsets, move_word = moves
    word_hash, word_offsets, word_bytes = pool
    report_row, report_us = np.empty(256, np.int64), np.empty(256, np.int64)
    report_offsets = np.zeros(257, np.int64)
    out_word, out_count = np.empty(1024, np.int64), np.empty(1024, np.int64)
    reports = 0
    used = 0
    files = start_offsets.shape[0]
    for g in range(due_offsets.size - 1):
        begin, end = due_offsets[g], due_offsets[g + 1]
        total = 0
        moved = 0
        for f in range(files):
            total += start_offsets[f, g + 1] - start_offsets[f, g]
            first, last = move_offsets[f, g], move_offsets[f, g + 1]
            total += move_term_offsets[last] - move_term_offsets[first]
            moved += last - first
        if moved == 0 and start_objects[g] == 0:
            continue
        room = np.int64(16)
        while room < 4 * total:
            room *= 2
        table = np.full(room, EMPTY, np.uint64)
        keys = np.empty(total, np.uint64)
        words = np.empty(total, np.int64)
        counts = np.zeros(total, np.int64)
        known = 0
        for f in range(files):
            for at in range(start_offsets[f, g], start_offsets[f, g + 1]):
                word = np.int64(start_word[at])
                term, known = note_term(table, keys, words, known, word_hash[word], word)
                counts[term] += start_count[at]
        times, places = np.empty(moved, np.int64), np.empty(moved, np.int64)
        count = 0
        for f in range(files):
            for at in range(move_offsets[f, g], move_offsets[f, g + 1]):
                times[count], places[count] = move_us[at], at
                count += 1
        order = np.argsort(times, kind="mergesort")
        most = 0
        until_us = due_until[begin]
        for d in range(begin, end):
            most = max(most, due_k[d])
            until_us = max(until_us, due_until[d])
        heap = np.empty(most, np.int64)
        next_us = due_first[begin:end].copy()
        objects = start_objects[g]
        now_us = np.int64(np.iinfo(np.int64).min)
        for i in range(moved + 1):
            # Nothing changes between two moves: every due time there has the same report.
            stop_us = times[order[i]] if i < moved else until_us
            if objects > 0 and stop_us > now_us:
                size = -1
                for d in range(begin, end):
                    at_us = next_us[d - begin]
                    if at_us >= stop_us or at_us >= due_until[d]:
                        continue
                    if at_us < now_us:
                        # A gap without objects: skip to the next due time that can have one.
                        at_us += -(-(now_us - at_us) // due_every[d]) * due_every[d]
                    while at_us < stop_us and at_us < due_until[d]:
                        if size < 0:
                            size = first_terms(
                                counts, words, known, most, heap, word_offsets, word_bytes
                            )
                        kept = min(size, int(due_k[d]))
                        report_row, report_us = (
                            longer(report_row, reports, 1),
                            longer(report_us, reports, 1),
                        )
                        report_offsets = longer(report_offsets, reports + 1, 1)
                        out_word, out_count = (
                            longer(out_word, used, kept),
                            longer(out_count, used, kept),
                        )
                        report_row[reports], report_us[reports] = d, at_us
                        for rank in range(kept):
                            out_word[used + rank] = words[heap[rank]]
                            out_count[used + rank] = counts[heap[rank]]
                        used += kept
                        reports += 1
                        report_offsets[reports] = used
                        at_us += due_every[d]
                    next_us[d - begin] = at_us
            if i == moved:
                break
            now_us = stop_us
            move = places[order[i]]
            objects += move_step[move]
            for at in range(move_term_offsets[move], move_term_offsets[move + 1]):
                word = np.int64(move_word[at])
                term, known = note_term(table, keys, words, known, word_hash[word], word)
                counts[term] += move_step[move]
    return (
        report_row[:reports].copy(),
        report_us[:reports].copy(),
        report_offsets[: reports + 1].copy(),
        out_word[:used].copy(),
        out_count[:used].copy(),
    )
