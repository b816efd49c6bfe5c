"""Reports of `trending` subscriptions: which are due in a batch, and what each counts.

An object counts at a due time t if it arrived when the clock stood at t or before, and its ts is
in the window before t. So each object counts from the clock of its arrival to its ts + window, and
the reports of a batch are one sweep over due times. Subscriptions of one region and window share
the sweep and its table of counts; those of different regions share the tables of the store's nodes
(the part of a region that is whole nodes), and only the rest is counted for each alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewire.engine.answering import (
    FAR_FUTURE,
    FAR_PAST,
    Ground,
    Section,
    Span,
    count_section,
    find_rows,
    ground_of,
)
from placewire.engine.asking import open_sections, write_lines
from placewire.engine.changes import NEVER_SEQ
from placewire.engine.facts import BlockFacts, object_nows
from placewire.index.retained import Retained
from placewire.kernels.blocks import slices_to_buffer
from placewire.kernels.jit import read_only
from placewire.kernels.reporting import terms_reported
from placewire.model.regions import Region
from placewire.model.subscriptions import SubscriptionRows, concat_offsets, read_pace, take_slices
from placewire.model.times import format_timestamp
from placewire.state.layout import StateDir
from placewire.state.manifest import LinesEntry, StoreEntry
from placewire.text.words import rank_words


class Advances(NamedTuple):
    """The clock of a batch: the events that move it, and from where to where, in log order."""

    seq: NDArray[np.int64]
    to_us: NDArray[np.int64]
    before_us: int  # before the batch; the far past if there was no event yet

    def at(self, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """`now` at events of the batch."""
        last = np.searchsorted(self.seq, seqs, "right") - 1
        if self.to_us.size == 0:
            return np.full(seqs.size, self.before_us)
        return np.where(last >= 0, self.to_us[last], self.before_us)


def gather_advances(facts: Sequence[BlockFacts], now_us: int | None) -> Advances:
    """Which valid events of a batch move the clock."""
    before = FAR_PAST if now_us is None else now_us
    seqs, nows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for fact in facts:
        a = fact.arrays
        events, times = [a["object.event"]], [object_nows(fact)]
        for kind in ("change", "query"):
            if f"{kind}.event" in a:
                events.append(a[f"{kind}.event"])
                times.append(fact.clock.nows(a[f"{kind}.event"], a[f"{kind}.now_us"]))
        event, now = np.concatenate(events), np.concatenate(times)
        order = np.argsort(event, kind="stable")
        event, now = event[order], now[order]
        valid = ~np.isin(event, fact.clock.refused_event)
        seqs.append(fact.first_seq + event[valid].astype(np.int64))
        nows.append(now[valid])
    seq, now = np.concatenate(seqs), np.concatenate(nows)
    moves = np.empty(now.size, np.bool_)
    moves[:1] = now[:1] > before
    moves[1:] = now[1:] > now[:-1]
    return Advances(seq[moves], now[moves], before)


class Due(NamedTuple):
    """Subscriptions with due times in a batch: t = begun + n * every, n >= 1, first <= t < until.

    `number` is each one's place in the batch's list of those that are due.
    """

    number: NDArray[np.int64]
    k: NDArray[np.int64]
    begun_us: NDArray[np.int64]
    every_us: NDArray[np.int64]
    first_us: NDArray[np.int64]
    until_us: NDArray[np.int64]


class Group(NamedTuple):
    """Due subscriptions of one region and window that count the objects after one seq."""

    region: Region
    window_us: int
    after_seq: int
    due: Due


class Reports(NamedTuple):
    """Reports: the number of the subscription, the due time, and a CSR column of (word, count)."""

    number: NDArray[np.int64]
    at_us: NDArray[np.int64]
    offsets: NDArray[np.int64]
    words: list[str]
    counts: NDArray[np.int64]


class ReportContext(NamedTuple):
    """What a process must know to make reports of a batch; pickled into each task."""

    root: str
    store: tuple[StoreEntry, ...]
    first_seq: int  # of the batch
    advances: Advances


class DueRows(NamedTuple):
    """Rows of one segment that are due in a batch, and from when until when."""

    rows: SubscriptionRows
    picked: NDArray[np.int64]
    first_us: NDArray[np.int64]
    until_us: NDArray[np.int64]


def find_due(
    rows: SubscriptionRows,
    live: NDArray[np.bool_],
    end_seq: NDArray[np.int64],
    advances: Advances,
    first_seq: int,
) -> DueRows:
    """The `trending` rows with a due time in the batch; `end_seq` is NEVER_SEQ if none ends it."""
    pace = read_pace(rows)
    last_us = int(advances.to_us[-1]) if advances.to_us.size else advances.before_us
    lo = np.full(rows.total, advances.before_us)
    new = rows.begin_seq >= first_seq
    lo[new] = advances.at(rows.begin_seq[new])
    hi = np.full(rows.total, last_us)
    ends = end_seq != NEVER_SEQ
    hi[ends] = advances.at(end_seq[ends])
    hi = np.minimum(hi, rows.expires_us)
    due = live & (hi > lo)
    picked = np.flatnonzero(due)
    steps = -((pace.begun_us[picked] - lo[picked]) // pace.every_us[picked])
    first = pace.begun_us[picked] + np.maximum(steps, 1) * pace.every_us[picked]
    is_due = first < hi[picked]
    return DueRows(rows, picked[is_due], first[is_due], hi[picked][is_due])


def make_groups(found: Sequence[DueRows], store: Sequence[StoreEntry]) -> list[Group]:
    """Due rows by region, window and, where it matters, the event that they began with."""
    members: dict[tuple[object, ...], list[tuple[int, ...]]] = {}
    regions: dict[tuple[object, ...], Region] = {}
    number = 0
    for rows, picked, first_us, until_us in found:
        pace = read_pace(rows)
        for i, row in enumerate(picked.tolist()):
            kind, box = int(rows.region_kind[row]), rows.box[row]
            shape = rows.shape[rows.shape_offsets[row] : rows.shape_offsets[row + 1]]
            window = int(pace.window_us[row])
            after = int(rows.begin_seq[row])
            begins_us = int(first_us[i]) - window
            if all(entry.first_seq > after for entry in store if entry.last_us > begins_us):
                after = -1
            key = (kind, box.tobytes(), shape.tobytes(), window, after)
            if key not in regions:
                regions[key] = Region(kind, tuple(box.tolist()), tuple(shape.tolist()))
                members[key] = []
            members[key].append(
                (
                    number,
                    int(rows.k[row]),
                    int(pace.begun_us[row]),
                    int(pace.every_us[row]),
                    int(first_us[i]),
                    int(until_us[i]),
                )
            )
            number += 1
    return [
        Group(region, key[3], key[4], Due(*np.array(members[key], np.int64).T))  # type: ignore[arg-type]
        for key, region in regions.items()
    ]


Report = Callable[[ReportContext, list[list[Group]]], list[list[Reports]]]


def report_here(context: ReportContext, portions: list[list[Group]]) -> list[list[Reports]]:
    """Make reports in this process."""
    return [report_portion(context, portion) for portion in portions]


def report_portion(context: ReportContext, groups: Sequence[Group]) -> list[Reports]:
    """Make the reports of some groups from the store's files."""
    sections = open_sections(StateDir.at(context.root), context.store)
    return [report_group(context, sections, group) for group in groups]


class Coming(NamedTuple):
    """Objects of one file that come or go during a sweep, and when."""

    retained: Retained
    rows: NDArray[np.uint32]
    at_us: NDArray[np.int64]


def report_group(context: ReportContext, sections: Sequence[Section], group: Group) -> Reports:
    """Make the reports of one group."""
    due, window = group.due, group.window_us
    ground = ground_of(group.region)
    first, until = int(due.first_us.min()), int(due.until_us.max())
    old = [s for s in sections if s.first_seq < context.first_seq]
    new = [s for s in sections if s.first_seq >= context.first_seq]
    span = Span(first - window, FAR_FUTURE, group.after_seq, context.first_seq)
    counted = [count_section(section, ground, span) for section in old if section.meets(span)]
    objects = sum(one.objects for one in counted)
    leaving = find_coming(
        old, ground, span._replace(until_us=until - window), lambda ts, _: ts + window
    )
    entering, going = find_entering(context, new, ground, group, first, until)
    times = list_due(due, first, until, objects, leaving, entering, window)
    if times[0].size == 0:
        return Reports(times[0], times[0], np.zeros(1, np.int64), [], times[0])
    tables = [(one.retained, one.terms.astype(np.int64)) for one in counted]
    words, ranks = common_words(tables, [*leaving, *entering])
    counts = np.zeros(len(words.offsets) - 1, np.int64)
    for one in counted:
        counts[ranks(one.retained, one.terms)] += one.counts
    at_us, number, k = times
    sizes, terms, amounts = terms_reported(
        at_us,
        k,
        counts,
        objects,
        *sweep_columns(entering, ranks),
        *sweep_columns([*leaving, *going], ranks),
    )
    made = np.flatnonzero(sizes >= 0)
    offsets = np.zeros(made.size + 1, np.int64)
    np.cumsum(sizes[made], out=offsets[1:])
    raw, edges = words.raw.tobytes(), words.offsets
    named = [raw[edges[t] : edges[t + 1]].decode() for t in terms.tolist()]
    return Reports(number[made], at_us[made], offsets, named, amounts)


def find_coming(
    sections: Sequence[Section],
    ground: Ground,
    span: Span,
    when: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]],
) -> list[Coming]:
    """The objects in a region that count in a span, with a time of each by its ts and seq."""
    found = []
    for section in sections:
        if section.meets(span):
            rows = find_rows(section, ground, span)
            if rows.size:
                retained = section.retained
                found.append(Coming(retained, rows, when(retained.ts_us[rows], retained.seq[rows])))
    return found


def find_entering(
    context: ReportContext,
    sections: Sequence[Section],
    ground: Ground,
    group: Group,
    first: int,
    until: int,
) -> tuple[list[Coming], list[Coming]]:
    """The batch's own objects that count at some time: when each comes, and when it goes."""
    span = Span(first - group.window_us, FAR_FUTURE, group.after_seq)
    coming, going = [], []
    for one in find_coming(sections, ground, span, lambda _, seq: context.advances.at(seq)):
        gone = one.retained.ts_us[one.rows] + group.window_us
        counts = (one.at_us < gone) & (one.at_us < until)
        if counts.any():
            rows = one.rows[counts]
            coming.append(Coming(one.retained, rows, one.at_us[counts]))
            going.append(Coming(one.retained, rows, gone[counts]))
    return coming, going


def list_due(
    due: Due,
    first: int,
    until: int,
    objects: int,
    leaving: Sequence[Coming],
    entering: Sequence[Coming],
    window: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Due times at which some object counts, ascending, with the subscription and its k.

    Times between are never listed, however many there are: a leap of the clock costs nothing.
    """
    begins = [one.at_us for one in entering]
    ends = [one.retained.ts_us[one.rows] + window for one in entering]
    if objects:
        gone = np.concatenate([one.at_us for one in leaving] or [np.empty(0, np.int64)])
        begins.append(np.array([first]))
        ends.append(np.array([until if gone.size < objects else int(gone.max())]))
    if not begins:
        none = np.empty(0, np.int64)
        return none, none, none
    begin, end = merge_intervals(np.concatenate(begins), np.concatenate(ends))
    times, numbers, ks = [], [], []
    for i in range(due.number.size):
        every, begun = int(due.every_us[i]), int(due.begun_us[i])
        lo = np.maximum(begin, due.first_us[i])
        hi = np.minimum(end, due.until_us[i])
        some = hi > lo
        low, high = -((begun - lo[some]) // every), -((begun - hi[some]) // every)
        sizes = np.maximum(high - low, 0)
        shift = np.repeat(low - np.cumsum(sizes) + sizes, sizes)
        steps = np.arange(int(sizes.sum()), dtype=np.int64) + shift
        times.append(begun + steps * every)
        numbers.append(np.full(steps.size, due.number[i]))
        ks.append(np.full(steps.size, due.k[i]))
    at_us = np.concatenate(times)
    order = np.argsort(at_us, kind="stable")
    return at_us[order], np.concatenate(numbers)[order], np.concatenate(ks)[order]


def merge_intervals(
    begin: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Half-open intervals as ones that do not meet, ascending."""
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], np.maximum.accumulate(end[order])
    apart = np.ones(begin.size, np.bool_)
    apart[1:] = begin[1:] > end[:-1]
    last = np.append(np.flatnonzero(apart)[1:] - 1, begin.size - 1)
    return begin[apart], end[last]


class CommonWords(NamedTuple):
    """Words of several files, ascending."""

    offsets: NDArray[np.int64]
    raw: NDArray[np.uint8]


def common_words(
    tables: Sequence[tuple[Retained, NDArray[np.int64]]], moving: Sequence[Coming]
) -> tuple[CommonWords, Callable[[Retained, NDArray[np.uint32]], NDArray[np.uint32]]]:
    """The words of some terms and of some objects, and how to number a file's terms by them."""
    used: dict[int, tuple[Retained, list[NDArray[np.int64]]]] = {}
    for retained, terms in tables:
        used.setdefault(id(retained.seq), (retained, []))[1].append(terms)
    for one in moving:
        _, at = take_slices(one.retained.term_offsets, one.rows.astype(np.int64))
        used.setdefault(id(one.retained.seq), (one.retained, []))[1].append(
            one.retained.terms[at].astype(np.int64)
        )
    numbers = {key: np.unique(np.concatenate(terms)) for key, (_, terms) in used.items()}
    slices = []
    for key, (retained, _) in used.items():
        starts, ends = retained.word_offsets[numbers[key]], retained.word_offsets[numbers[key] + 1]
        slices.append(slices_to_buffer(retained.word_bytes, read_only(starts), read_only(ends)))
    offsets = concat_offsets([edges for edges, _ in slices] or [np.zeros(1, np.int64)])
    raw = np.concatenate([part for _, part in slices] or [np.empty(0, np.uint8)])
    rank, firsts = rank_words(offsets, raw)
    ranks, base = {}, 0
    for key, known in numbers.items():
        ranks[key] = rank[base : base + known.size]
        base += known.size

    def number(retained: Retained, terms: NDArray[np.uint32]) -> NDArray[np.uint32]:
        key = id(retained.seq)
        found: NDArray[np.uint32] = ranks[key][np.searchsorted(numbers[key], terms)]
        return found

    ordered = slices_to_buffer(
        read_only(raw), read_only(offsets[firsts]), read_only(offsets[firsts + 1])
    )
    return CommonWords(*ordered), number


def sweep_columns(
    moving: Sequence[Coming],
    ranks: Callable[[Retained, NDArray[np.uint32]], NDArray[np.uint32]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]:
    """Objects by the time when they come or go, with their terms by common words."""
    at_us = np.concatenate([one.at_us for one in moving] or [np.empty(0, np.int64)])
    order = np.argsort(at_us, kind="stable")
    offsets, terms = [np.zeros(1, np.int64)], [np.empty(0, np.uint32)]
    for one in moving:
        some, at = take_slices(one.retained.term_offsets, one.rows.astype(np.int64))
        offsets.append(some)
        terms.append(ranks(one.retained, one.retained.terms[at]))
    new_offsets, at = take_slices(concat_offsets(offsets), order)
    return at_us[order], new_offsets, np.concatenate(terms)[at]


GROUPS_A_TASK = 64


def cut_groups(groups: Sequence[Group], size: int = GROUPS_A_TASK) -> list[list[Group]]:
    """Groups in portions for tasks."""
    return [list(groups[at : at + size]) for at in range(0, len(groups), size)]


def write_reports(
    state: StateDir,
    batch: int,
    due: Sequence[DueRows],
    advances: Advances,
    made: Sequence[Sequence[Reports]],
) -> LinesEntry | None:
    """Write the reports of a batch as lines, by seq, subscription and due time."""
    ids = [name for rows in due for name in ids_of(rows)]
    lines = []
    for reports in (one for portion in made for one in portion):
        seqs = advances.seq[np.searchsorted(advances.to_us, reports.at_us, "right")].tolist()
        edges, counts = reports.offsets.tolist(), reports.counts.tolist()
        for i, (number, at_us) in enumerate(
            zip(reports.number.tolist(), reports.at_us.tolist(), strict=True)
        ):
            terms = list(
                zip(
                    reports.words[edges[i] : edges[i + 1]],
                    counts[edges[i] : edges[i + 1]],
                    strict=True,
                )
            )
            told = {
                "seq": seqs[i],
                "type": "report",
                "subscription": ids[number],
                "at": format_timestamp(at_us),
                "terms": terms,
            }
            lines.append((seqs[i], ids[number], at_us, msgspec.json.encode(told) + b"\n"))
    lines.sort()
    texts = [line for _, _, _, line in lines]
    return write_lines(state, batch, "reports", [seq for seq, _, _, _ in lines], {"plain": texts})


def ids_of(due: DueRows) -> list[str]:
    """The ids of due subscriptions."""
    raw, edges = due.rows.id_bytes.tobytes(), due.rows.id_offsets
    return [raw[edges[row] : edges[row + 1]].decode() for row in due.picked.tolist()]
