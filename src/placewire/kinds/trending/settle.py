"""Settle `trending` subscriptions: make the reports that are due in a batch.

An object counts at a due time t if the clock was at most t when it arrived and its ts is in the
window before t. So each object counts from the clock of its arrival to its ts + window, and the
reports of a batch are one sweep over due times. Subscriptions with the same region and window share
the sweep and its table of counts. Different regions share the tables of the nodes of the object
store that they cover; only the remaining objects are counted per region.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np

from placewire.ingest.clock import Advances
from placewire.kinds.shard import Reports, SettleBatch
from placewire.kinds.trending.answer import counting_room
from placewire.kinds.trending.due import DueGroups, DueRows, make_groups, split_groups
from placewire.kinds.trending.kernels.sweep import ObjectMoves, StartCounts, groups_reported
from placewire.kinds.trending.kernels.term_counts import groups_counted, groups_entered
from placewire.model.arrays import I64, U32
from placewire.model.subscriptions import concat_offsets, lengths_to_offsets, take_slices
from placewire.model.times import format_timestamp
from placewire.objects.index import Retained
from placewire.objects.sections import Section, open_sections
from placewire.storage.layout import StateDir
from placewire.storage.manifest import StoreEntry
from placewire.text.words import Words

NONE = np.empty(0, np.int64)
MAX_LINES = 50_000  # encoded per call; a jump of the clock can make millions


class ReportContext(NamedTuple):
    """The data that a task needs to make a batch's reports, in picklable form."""

    root: str
    store: tuple[StoreEntry, ...]
    first_seq: int  # of the batch
    advances: Advances


NO_REPORTS = Reports(NONE, [], NONE, np.zeros(1, np.int64), np.empty(0, np.uint8))


class FileCounts(NamedTuple):
    """The counts of one file by group: words at the start, and objects that enter and leave."""

    start_offsets: I64
    start_terms: U32
    start_counts: I64
    objects: I64
    move_offsets: I64
    move_us: I64
    move_step: I64
    move_rows: I64


def make_portion_reports(context: ReportContext, groups: DueGroups) -> Reports:
    """Make the reports of some groups from the files of the object store."""
    oldest_us = int((groups.first_us - groups.window_us).min())
    entries = [entry for entry in context.store if entry.last_us > oldest_us]
    sections = open_sections(StateDir.at(context.root), entries)
    if not sections:
        return NO_REPORTS
    files_counts = [
        count_earlier_file(section, groups)
        if section.first_seq < context.first_seq
        else count_batch_file(section, groups, context.advances)
        for section in sections
    ]
    pool = pool_words([section.retained for section in sections])
    bases = np.cumsum([0, *(section.retained.word_hash.size for section in sections)])
    row, at_us, offsets, words, counts = groups_reported(
        groups,
        concat_start_counts(files_counts, bases),
        concat_moves(files_counts, sections, bases),
        pool,
    )
    seqs = context.advances.seq[np.searchsorted(context.advances.to_us, at_us, "right")]
    raw, edges = groups.due_id_bytes.tobytes(), groups.due_id_offsets.tolist()
    names = [raw[begin:end].decode() for begin, end in pairwise(edges)]
    ids = [names[i] for i in row.tolist()]
    texts, lengths = [], [NONE]
    for first in range(0, len(ids), MAX_LINES):
        some = slice(first, first + MAX_LINES)
        cuts = offsets[first : first + MAX_LINES + 1]
        of_some = slice(int(cuts[0]), int(cuts[-1]))
        lines = write_report_lines(
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


def count_earlier_file(section: Section, groups: DueGroups) -> FileCounts:
    """Count a file of earlier batches, whose objects only leave the window."""
    r = section.retained
    start_offsets, terms, counts, objects, move_offsets, rows = groups_counted(
        section.counted,
        section.rows,
        section.first_seq,
        section.last_seq,
        section.first_us,
        section.last_us,
        groups,
        counting_room(r.word_hash.size),
    )
    times = r.ts_us[rows] + np.repeat(groups.window_us, np.diff(move_offsets))
    steps = np.full(rows.size, -1, np.int64)
    return FileCounts(start_offsets, terms, counts, objects, move_offsets, times, steps, rows)


def count_batch_file(section: Section, groups: DueGroups, advances: Advances) -> FileCounts:
    """Count a file of the current batch, whose objects enter the window and leave it."""
    offsets, rows, come, go = groups_entered(section.counted, section.rows, advances, groups)
    return FileCounts(
        np.zeros(groups.total + 1, np.int64),
        np.empty(0, np.uint32),
        np.empty(0, np.int64),
        np.zeros(groups.total, np.int64),
        2 * offsets,
        np.stack([come, go], axis=1).reshape(-1),
        np.tile(np.array([1, -1]), rows.size),
        np.repeat(rows, 2),
    )


def pool_words(files: Sequence[Retained]) -> Words:
    """Concatenate the words of files; a word may occur several times."""
    return Words(
        np.concatenate([r.word_hash for r in files]),
        concat_offsets([r.word_offsets for r in files]),
        np.concatenate([r.word_bytes for r in files]),
    )


def concat_start_counts(files_counts: Sequence[FileCounts], bases: I64) -> StartCounts:
    """Concatenate the start counts of all files; `bases` are the files' first words."""
    words = [one.start_terms + base for one, base in zip(files_counts, bases, strict=False)]
    return StartCounts(
        stack_offsets([one.start_offsets for one in files_counts]),
        np.concatenate(words),
        np.concatenate([one.start_counts for one in files_counts]),
        np.stack([one.objects for one in files_counts]).sum(axis=0),
    )


def concat_moves(
    files_counts: Sequence[FileCounts], sections: Sequence[Section], bases: I64
) -> ObjectMoves:
    """Concatenate the moves of all files, each with the words of its object."""
    offsets, words = [], []
    for one, section, base in zip(files_counts, sections, bases, strict=False):
        some, at = take_slices(section.retained.term_offsets, one.move_rows)
        offsets.append(some)
        words.append(section.retained.terms[at] + base)
    return ObjectMoves(
        stack_offsets([one.move_offsets for one in files_counts]),
        np.concatenate([one.move_us for one in files_counts]),
        np.concatenate([one.move_step for one in files_counts]),
        concat_offsets(offsets),
        np.concatenate(words),
    )


def stack_offsets(parts: Sequence[I64]) -> I64:
    """Stack the offsets of concatenated CSR columns, one row per file: i64[f, g + 1]."""
    shifts = np.cumsum([0, *(int(part[-1]) for part in parts[:-1])])
    return np.stack([part + shift for part, shift in zip(parts, shifts, strict=True)])


def write_report_lines(
    seqs: Sequence[int],
    ids: Sequence[str],
    times: Sequence[int],
    offsets: Sequence[int],
    words: I64,
    counts: I64,
    pool: Words,
) -> list[bytes]:
    """Encode reports as lines of JSON."""
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
    return batch.spread(partial(make_portion_reports, context), split_groups(groups))
