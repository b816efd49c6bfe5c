"""Reports of `trending` subscriptions: which are due in a batch, and what each counts.

An object counts at a due time t if it arrived when the clock stood at t or before, and its ts is
in the window before t. So each object counts from the clock of its arrival to its ts + window, and
the reports of a batch are one sweep over due times. Subscriptions of one region and window share
the sweep and its table of counts; those of different regions share the tables of the store's nodes
(the part of a region that is whole nodes), and only the rest is counted for each alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewire.ingest.clock import Advances
from placewire.kinds.shard import Reports, SettleBatch
from placewire.kinds.trending.due import DueRows, Groups, cut_groups, make_groups
from placewire.kinds.trending.kernels.first_counts import groups_counted, groups_entered
from placewire.kinds.trending.kernels.sweep import groups_reported
from placewire.model.subscriptions import (
    concat_offsets,
    lengths_to_offsets,
    take_slices,
)
from placewire.model.times import format_timestamp
from placewire.objects.frequent import counting_room
from placewire.objects.index import Retained
from placewire.objects.sections import Section, open_sections
from placewire.storage.layout import StateDir
from placewire.storage.manifest import StoreEntry

NONE = np.empty(0, np.int64)
LINES_AT_ONCE = 50_000  # a leap of the clock may make millions


class ReportContext(NamedTuple):
    """What a process must know to make reports of a batch; pickled into each task."""

    root: str
    store: tuple[StoreEntry, ...]
    first_seq: int  # of the batch
    advances: Advances


NO_REPORTS = Reports(NONE, [], NONE, np.zeros(1, np.int64), np.empty(0, np.uint8))


class Given(NamedTuple):
    """What one file gives to groups, by group: words that count at first, and moves of objects."""

    start_offsets: NDArray[np.int64]
    start_terms: NDArray[np.uint32]
    start_counts: NDArray[np.int64]
    objects: NDArray[np.int64]
    move_offsets: NDArray[np.int64]
    move_us: NDArray[np.int64]
    move_step: NDArray[np.int64]
    move_rows: NDArray[np.int64]


def report_portion(context: ReportContext, groups: Groups) -> Reports:
    """Make the reports of some groups from the store's files."""
    oldest_us = int((groups.first_us - groups.window_us).min())
    entries = [entry for entry in context.store if entry.last_us > oldest_us]
    sections = open_sections(StateDir.at(context.root), entries)
    if not sections:
        return NO_REPORTS
    given = [
        count_old(section, groups)
        if section.first_seq < context.first_seq
        else count_new(section, groups, context.advances)
        for section in sections
    ]
    pool = pool_words([section.retained for section in sections])
    row, at_us, offsets, words, counts = groups_reported(
        groups.due_offsets,
        groups.due_k,
        groups.due_every_us,
        groups.due_first_us,
        groups.due_until_us,
        *start_columns(given, pool.bases),
        *move_columns(given, sections, pool.bases),
        pool.hashes,
        pool.offsets,
        pool.raw,
    )
    seqs = context.advances.seq[np.searchsorted(context.advances.to_us, at_us, "right")]
    raw, edges = groups.due_id_bytes.tobytes(), groups.due_id_offsets.tolist()
    names = [raw[begin:end].decode() for begin, end in pairwise(edges)]
    ids = [names[i] for i in row.tolist()]
    texts, lengths = [], [NONE]
    for first in range(0, len(ids), LINES_AT_ONCE):
        some = slice(first, first + LINES_AT_ONCE)
        cuts = offsets[first : first + LINES_AT_ONCE + 1]
        of_some = slice(int(cuts[0]), int(cuts[-1]))
        lines = report_lines(
            seqs[some].tolist(),
            ids[some],
            at_us[some].tolist(),
            (cuts - cuts[0]).tolist(),
            words[of_some],
            counts[of_some],
            pool,
        )
        lengths.append(np.array([len(line) for line in lines], np.int64))
        texts.append(b"".join(lines))
    starts = lengths_to_offsets(np.concatenate(lengths))
    return Reports(seqs, ids, at_us, starts, np.frombuffer(b"".join(texts), np.uint8))


def count_old(section: Section, groups: Groups) -> Given:
    """What a file of earlier batches gives."""
    r = section.retained
    start_offsets, terms, counts, objects, move_offsets, rows, times = groups_counted(
        r.code,
        section.rows,
        r.lon,
        r.lat,
        r.ts_us,
        r.seq,
        r.term_offsets,
        r.terms,
        r.nodes,
        r.table_offsets,
        r.table_terms,
        r.table_counts,
        *counting_room(r.word_hash.size),
        *section[2:6],
        *groups[:8],
    )
    steps = np.full(rows.size, -1, np.int64)
    return Given(start_offsets, terms, counts, objects, move_offsets, times, steps, rows)


def count_new(section: Section, groups: Groups, advances: Advances) -> Given:
    """What a file of the batch itself gives: each object comes, and goes again."""
    r = section.retained
    offsets, rows, come, go = groups_entered(
        r.code, section.rows, r.lon, r.lat, r.ts_us, r.seq, *advances, *groups[:8]
    )
    return Given(
        np.zeros(groups.total + 1, np.int64),
        np.empty(0, np.uint32),
        np.empty(0, np.int64),
        np.zeros(groups.total, np.int64),
        2 * offsets,
        np.stack([come, go], axis=1).reshape(-1),
        np.tile(np.array([1, -1]), rows.size),
        np.repeat(rows, 2),
    )


class Pool(NamedTuple):
    """The words of several files one after another, and where each file's begin."""

    hashes: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    raw: NDArray[np.uint8]
    bases: list[int]


def pool_words(files: Sequence[Retained]) -> Pool:
    """All words; one that is in several files is there several times."""
    return Pool(
        np.concatenate([r.word_hash for r in files] or [np.empty(0, np.uint64)]),
        concat_offsets([r.word_offsets for r in files] or [np.zeros(1, np.int64)]),
        np.concatenate([r.word_bytes for r in files] or [np.empty(0, np.uint8)]),
        np.cumsum([0, *(r.word_hash.size for r in files)]).tolist(),
    )


def start_columns(
    given: Sequence[Given], bases: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """What counts at first, of all files."""
    words = [one.start_terms + np.int64(base) for one, base in zip(given, bases, strict=False)]
    return (
        stack_offsets([one.start_offsets for one in given]),
        np.concatenate(words),
        np.concatenate([one.start_counts for one in given]),
        np.sum([one.objects for one in given], axis=0, dtype=np.int64),
    )


def move_columns(
    given: Sequence[Given], sections: Sequence[Section], bases: Sequence[int]
) -> tuple[
    NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]
]:
    """The moves of all files, each with the words of its object."""
    offsets, words = [], []
    for one, section, base in zip(given, sections, bases, strict=False):
        some, at = take_slices(section.retained.term_offsets, one.move_rows)
        offsets.append(some)
        words.append(section.retained.terms[at] + np.int64(base))
    return (
        stack_offsets([one.move_offsets for one in given]),
        np.concatenate([one.move_us for one in given]),
        np.concatenate([one.move_step for one in given]),
        concat_offsets(offsets),
        np.concatenate(words),
    )


def stack_offsets(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The offsets of concatenated CSR columns, a row for each: i64[f, g + 1]."""
    shifts = np.cumsum([0, *(int(part[-1]) for part in parts[:-1])])
    return np.stack([part + shift for part, shift in zip(parts, shifts, strict=True)])


def report_lines(
    seqs: Sequence[int],
    ids: Sequence[str],
    times: Sequence[int],
    offsets: Sequence[int],
    words: NDArray[np.int64],
    counts: NDArray[np.int64],
    pool: Pool,
) -> list[bytes]:
    """Reports as lines of JSON."""
    named = {
        word: pool.raw[pool.offsets[word] : pool.offsets[word + 1]].tobytes().decode()
        for word in np.unique(words).tolist()
    }
    terms = [(named[w], c) for w, c in zip(words.tolist(), counts.tolist(), strict=True)]
    return [
        msgspec.json.encode(
            {
                "seq": seqs[i],
                "type": "report",
                "subscription": ids[i],
                "at": format_timestamp(times[i]),
                "terms": terms[offsets[i] : offsets[i + 1]],
            }
        )
        + b"\n"
        for i in range(len(seqs))
    ]


def make_reports(due: Sequence[DueRows], batch: SettleBatch) -> list[Reports]:
    """Make the reports that are due in a batch."""
    groups = make_groups(due, batch.store)
    if groups is None:
        return []
    context = ReportContext(batch.state.name, tuple(batch.store), batch.first_seq, batch.advances)
    return batch.spread(partial(report_portion, context), cut_groups(groups))
