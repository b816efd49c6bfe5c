"""Count the terms of retained objects in regions: whole nodes from their tables, the rest by row.

A query counts one region. For reports, one call counts one file for all groups of due
subscriptions. A group counts the objects in its region with `ts` after first_us - window and a seq
after its own; an object counts until ts + window, and one of the current batch only from the clock
of its arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placewire.kernels.jit import array_subkernel, kernel, subkernel
from placewire.kernels.space.regions import region_contains_point
from placewire.kernels.text.hash_table import EMPTY, entry_of_hash
from placewire.objects.kernels.cell_ranges import FEW, SearchRegion, region_to_stretches
from placewire.objects.kernels.index import CountedColumns
from placewire.objects.sections import FAR_FUTURE, Span

if TYPE_CHECKING:
    from placewire.ingest.clock import Advances
    from placewire.kinds.trending.due import DueGroups

NONE_LEAVE = np.int64(np.iinfo(np.int64).min)
NEVER = np.int64(FAR_FUTURE)


class CountingRoom(NamedTuple):
    """Scratch for counting in files of up to v words; `counts` are 0 before and after."""

    counts: np.ndarray  # i64[v]
    touched: np.ndarray  # u32[v]


@array_subkernel
def longer(array: np.ndarray, used: int, more: int) -> np.ndarray:
    """Return the array with room for `more` entries after the `used` ones."""
    if used + more <= array.size:
        return array
    wider = np.empty(max(2 * array.size, used + more), array.dtype)
    wider[:used] = array[:used]
    return wider


@subkernel
def clock_at(advance_seq: np.ndarray, advance_us: np.ndarray, before_us: int, seq: int) -> int:
    """Return `now` at an event of the batch."""
    first, last = 0, advance_seq.size
    while first < last:
        middle = (first + last) >> 1
        if advance_seq[middle] <= seq:
            first = middle + 1
        else:
            last = middle
    return before_us if first == 0 else advance_us[first - 1]


@subkernel
def count_row(
    offsets: np.ndarray,
    terms: np.ndarray,
    row: int,
    counts: np.ndarray,
    touched: np.ndarray,
    known: int,
) -> int:
    """Count a row's terms; return how many terms are now in `touched`."""
    for at in range(offsets[row], offsets[row + 1]):
        term = terms[at]
        if counts[term] == 0:
            touched[known] = term
            known += 1
        counts[term] += 1
    return known


@subkernel
def node_at(nodes: np.ndarray, node: int, row: int, last: int) -> int:
    """The first node from `node` on that begins at `row` and ends by `last`, or begins later.

    Nodes are sorted by their begin; of equal ones the larger comes first.
    """
    while node < nodes.shape[0] and (
        nodes[node, 0] < row or (nodes[node, 0] == row and nodes[node, 1] > last)
    ):
        node += 1
    return node


@subkernel
def count_table(
    offsets: np.ndarray,
    terms: np.ndarray,
    amounts: np.ndarray,
    node: int,
    counts: np.ndarray,
    touched: np.ndarray,
    known: int,
) -> int:
    """Add the table of a node to the counts; return how many terms are now in `touched`."""
    for at in range(offsets[node], offsets[node + 1]):
        term = terms[at]
        if counts[term] == 0:
            touched[known] = term
            known += 1
        counts[term] += amounts[at]
    return known


@array_subkernel
def count_region(
    file: CountedColumns,
    parts: np.ndarray,
    region: SearchRegion,
    span: Span,
    whole: bool,
    room: CountingRoom,
    leave_us: int,
    leaving: np.ndarray,
    left: int,
) -> tuple:  # type: ignore[type-arg]
    """Count the terms of rows in a region and a span.

    If all rows are in the span (`whole`), the tables of nodes are used. Otherwise the counted rows
    with a time up to `leave_us` are appended to the first `left` entries of `leaving`. Returns the
    number of terms in `room.touched`, the number of rows counted, `leaving` and its length.
    """
    kind, box, shape = region
    after_us, until_us, after_seq, before_seq = span
    counts, touched = room.counts, room.touched
    lons, lats, ts_us, seqs = file.lon, file.lat, file.ts_us, file.seq
    term_offsets, terms, nodes = file.term_offsets, file.terms, file.nodes
    table_offsets, table_terms = file.table_offsets, file.table_terms
    table_counts = file.table_counts
    stretches = region_to_stretches(region, file.code, parts, np.int64(FEW))
    if leave_us != NONE_LEAVE and not whole:
        # Once before the loop, which would otherwise count references to the array.
        leaving = longer(leaving, left, (stretches[:, 1] - stretches[:, 0]).sum())
    known = 0
    objects = 0
    node = 0
    for s in range(stretches.shape[0]):
        row, last = stretches[s, 0], stretches[s, 1]
        sure = stretches[s, 2] == 1
        while row < last:
            stop = last
            if sure and whole:
                node = node_at(nodes, node, row, last)
                if node < nodes.shape[0] and nodes[node, 0] == row:
                    known = count_table(
                        table_offsets, table_terms, table_counts, node, counts, touched, known
                    )
                    objects += nodes[node, 1] - row
                    row = nodes[node, 1]
                    continue
                if node < nodes.shape[0]:
                    stop = min(last, nodes[node, 0])
            while row < stop:
                if (
                    (whole or (after_us < ts_us[row] <= until_us))
                    and (whole or (after_seq < seqs[row] < before_seq))
                    and (sure or region_contains_point(kind, box, shape, lons[row], lats[row]))
                ):
                    known = count_row(term_offsets, terms, row, counts, touched, known)
                    objects += 1
                    if not whole and ts_us[row] <= leave_us:
                        leaving[left] = row
                        left += 1
                row += 1
    return known, objects, leaving, left


@subkernel
def take_counts(
    room: CountingRoom, known: int, terms: np.ndarray, amounts: np.ndarray, at: int
) -> None:
    """Write the `known` touched terms and their counts from `at` on, and clear the counts."""
    counts, touched = room.counts, room.touched
    for i in range(known):
        term = touched[i]
        terms[at + i], amounts[at + i] = term, counts[term]
        counts[term] = 0


@kernel
def terms_counted(
    file: CountedColumns,
    parts: np.ndarray,
    region: SearchRegion,
    span: Span,
    whole: bool,
    room: CountingRoom,
) -> tuple:  # type: ignore[type-arg]
    """Count the terms of the rows of parts i64[p, 2] in a region: terms u32, counts i64, rows.

    If all rows are in the span (`whole`), the tables of nodes are used.
    """
    known, objects, _, _ = count_region(
        file,
        parts,
        region,
        span,
        whole,
        room,
        NONE_LEAVE,
        np.empty(0, np.int64),
        np.int64(0),
    )
    terms, amounts = np.empty(known, np.uint32), np.empty(known, np.int64)
    take_counts(room, known, terms, amounts, np.int64(0))
    return terms, amounts, objects


@kernel
def most_frequent(hashes: np.ndarray, counts: np.ndarray, least: int) -> tuple:  # type: ignore[type-arg]
    """Select, of terms counted in several files, those that may be among the k most frequent.

    Takes the terms u64 of all files with their counts i64. Terms whose counts are all below `least`
    are skipped. Returns the first position of each other term and its sum over all files.
    """
    candidates = 0
    for i in range(counts.size):
        if counts[i] >= least:
            candidates += 1
    room = np.int64(16)
    while room < 4 * candidates:
        room *= 2
    table = np.full(room, EMPTY, np.uint64)
    firsts = np.empty(candidates, np.int64)
    sums = np.zeros(candidates, np.int64)
    known = 0
    for i in range(counts.size):
        if counts[i] >= least:
            at = entry_of_hash(table, hashes[i])
            if table[at + np.uint64(1)] == EMPTY:
                table[at] = hashes[i]
                table[at + np.uint64(1)] = np.uint64(known)
                firsts[known] = i
                known += 1
    for i in range(counts.size):
        at = entry_of_hash(table, hashes[i])
        number = table[at + np.uint64(1)]
        if number != EMPTY:
            sums[number] += counts[i]
    return firsts[:known].copy(), sums[:known].copy()


@array_subkernel
def group_region(
    kinds: np.ndarray, boxes: np.ndarray, offsets: np.ndarray, shapes: np.ndarray, g: int
) -> SearchRegion:
    """Return the region of a group."""
    return SearchRegion(np.int64(kinds[g]), boxes[g], shapes[offsets[g] : offsets[g + 1]])


@kernel
def groups_counted(
    file: CountedColumns,
    parts: np.ndarray,
    first_seq: int,
    last_seq: int,
    first_us: int,
    last_us: int,
    groups: DueGroups,
    room: CountingRoom,
) -> tuple:  # type: ignore[type-arg]
    """Count for each group a file of earlier batches, given its first and last seq and time.

    Returns the terms u32 with their counts at the first due time, CSR by group; the number of these
    objects; and the rows that leave before the last due time, CSR by group.
    """
    total = groups.kind.size
    kinds, boxes, offsets, shapes = groups.kind, groups.box, groups.shape_offsets, groups.shape
    windows, after_seqs = groups.window_us, groups.after_seq
    firsts, untils = groups.first_us, groups.until_us
    found_terms, found_counts = np.empty(1024, np.uint32), np.empty(1024, np.int64)
    found_offsets = np.zeros(total + 1, np.int64)
    leaving = np.empty(256, np.int64)
    left_offsets = np.zeros(total + 1, np.int64)
    objects = np.zeros(total, np.int64)
    used = 0
    left = np.int64(0)
    for g in range(total):
        after_us, after_seq = firsts[g] - windows[g], after_seqs[g]
        if last_us > after_us and last_seq > after_seq:
            leave_us = untils[g] - windows[g]  # rows up to this time leave
            whole = first_us > after_us and first_seq > after_seq and first_us > leave_us
            known, objects[g], leaving, left = count_region(
                file,
                parts,
                group_region(kinds, boxes, offsets, shapes, g),
                Span(after_us, NEVER, after_seq, NEVER),
                whole,
                room,
                leave_us,
                leaving,
                left,
            )
            found_terms = longer(found_terms, used, known)
            found_counts = longer(found_counts, used, known)
            take_counts(room, known, found_terms, found_counts, used)
            used += known
        found_offsets[g + 1] = used
        left_offsets[g + 1] = left
    return (
        found_offsets,
        found_terms[:used].copy(),
        found_counts[:used].copy(),
        objects,
        left_offsets,
        leaving[:left].copy(),
    )


@kernel
def groups_entered(
    file: CountedColumns, parts: np.ndarray, advances: Advances, groups: DueGroups
) -> tuple:  # type: ignore[type-arg]
    """Find the rows of a file of the current batch that count for each group at some time.

    Returns them CSR by group, with the times when they enter and leave, but without those that
    leave before the first due time or enter after the last.
    """
    total = groups.kind.size
    kinds, boxes, offsets, shapes = groups.kind, groups.box, groups.shape_offsets, groups.shape
    codes, lons, lats = file.code, file.lon, file.lat
    ts_us, seqs = file.ts_us, file.seq
    advance_seq, advance_us, before_us = advances
    found_row = np.empty(256, np.int64)
    come_us, go_us = np.empty(256, np.int64), np.empty(256, np.int64)
    found_offsets = np.zeros(total + 1, np.int64)
    used = 0
    for g in range(total):
        window, after_seq = groups.window_us[g], groups.after_seq[g]
        first_us, until_us = groups.first_us[g], groups.until_us[g]
        region = group_region(kinds, boxes, offsets, shapes, g)
        kind, box, shape = region
        stretches = region_to_stretches(region, codes, parts, np.int64(FEW))
        for s in range(stretches.shape[0]):
            sure = stretches[s, 2] == 1
            for row in range(stretches[s, 0], stretches[s, 1]):
                go = ts_us[row] + window
                if go <= first_us or seqs[row] <= after_seq:
                    continue
                if not sure and not region_contains_point(kind, box, shape, lons[row], lats[row]):
                    continue
                come = clock_at(advance_seq, advance_us, before_us, seqs[row])
                if come >= go or come >= until_us:
                    continue
                found_row = longer(found_row, used, 1)
                come_us, go_us = longer(come_us, used, 1), longer(go_us, used, 1)
                found_row[used], come_us[used], go_us[used] = row, come, go
                used += 1
        found_offsets[g + 1] = used
    return found_offsets, found_row[:used].copy(), come_us[:used].copy(), go_us[:used].copy()
