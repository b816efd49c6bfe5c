"""Trending regions over retained objects: what each counts at first, and who comes and goes.

One call looks at one file for all groups of due subscriptions. A group counts the terms of objects
in its region with `ts` after first_us - window and a seq after its own; an object counts until
ts + window, and one of the batch itself from the clock of its arrival.
"""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel, subkernel
from placewire.kernels.space.regions import region_contains_point
from placewire.objects.kernels.cell_ranges import (
    FEW,
    MOST_STRETCHES,
    STACK,
    part_to_stretches,
    wider_stretches,
)
from placewire.objects.kernels.term_counts import count_row, count_table, node_at


@subkernel
def longer(array: np.ndarray, used: int, more: int) -> np.ndarray:
    """The array with room for `more` after the `used` ones."""
    if used + more <= array.size:
        return array
    wider = np.empty(max(2 * array.size, used + more), array.dtype)
    wider[:used] = array[:used]
    return wider


@subkernel
def clock_at(advance_seq: np.ndarray, advance_us: np.ndarray, before_us: int, seq: int) -> int:
    """`now` at an event of the batch."""
    first, last = 0, advance_seq.size
    while first < last:
        middle = (first + last) >> 1
        if advance_seq[middle] <= seq:
            first = middle + 1
        else:
            last = middle
    return before_us if first == 0 else advance_us[first - 1]


@subkernel
def region_stretches(
    kind: int,
    box: np.ndarray,
    shape: np.ndarray,
    codes: np.ndarray,
    rows: np.ndarray,
    found: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """The stretches of a region in all parts, in `found` or a wider array, and how many."""
    count = 0
    for part in range(rows.shape[0]):
        found = wider_stretches(found, count)
        count = part_to_stretches(
            kind, box, shape, codes, rows[part, 0], rows[part, 1], FEW, found, count
        )
    return found, count


@kernel
def groups_counted(
    codes: np.ndarray,
    rows: np.ndarray,
    lons: np.ndarray,
    lats: np.ndarray,
    ts_us: np.ndarray,
    seqs: np.ndarray,
    term_offsets: np.ndarray,
    terms: np.ndarray,
    nodes: np.ndarray,
    table_offsets: np.ndarray,
    table_terms: np.ndarray,
    table_counts: np.ndarray,
    counts: np.ndarray,
    touched: np.ndarray,
    first_seq: int,
    last_seq: int,
    first_us: int,
    last_us: int,
    group_kind: np.ndarray,
    group_box: np.ndarray,
    group_shape_offsets: np.ndarray,
    group_shape: np.ndarray,
    group_window: np.ndarray,
    group_after: np.ndarray,
    group_first: np.ndarray,
    group_until: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """What a file of earlier batches gives to each group.

    Gives the terms u32 that count at the first due time with their counts, CSR by group; how many
    objects these are; and the rows that go before the last due time, CSR by group, with the times.
    """
    groups = group_kind.size
    found_terms, found_counts = np.empty(1024, np.uint32), np.empty(1024, np.int64)
    found_offsets = np.zeros(groups + 1, np.int64)
    gone_row, gone_us = np.empty(256, np.int64), np.empty(256, np.int64)
    gone_offsets = np.zeros(groups + 1, np.int64)
    objects = np.zeros(groups, np.int64)
    stretches = np.empty((MOST_STRETCHES + STACK, 3), np.int64)
    used = 0
    gone = 0
    for g in range(groups):
        window = group_window[g]
        after_us = group_first[g] - window
        if last_us > after_us and last_seq > group_after[g]:
            kind, box = group_kind[g], group_box[g]
            shape = group_shape[group_shape_offsets[g] : group_shape_offsets[g + 1]]
            stretches, count = region_stretches(kind, box, shape, codes, rows, stretches)
            leave_us = group_until[g] - window  # rows up to this time go
            whole = first_us > after_us and first_seq > group_after[g] and first_us > leave_us
            known = 0
            node = 0
            for s in range(count):
                row, last = stretches[s, 0], stretches[s, 1]
                sure = stretches[s, 2] == 1
                while row < last:
                    stop = last
                    if sure and whole:
                        node = node_at(nodes, node, row, last)
                        if node < nodes.shape[0] and nodes[node, 0] == row:
                            known = count_table(
                                table_offsets,
                                table_terms,
                                table_counts,
                                node,
                                counts,
                                touched,
                                known,
                            )
                            objects[g] += nodes[node, 1] - row
                            row = nodes[node, 1]
                            continue
                        if node < nodes.shape[0]:
                            stop = min(last, nodes[node, 0])
                    while row < stop:
                        if (
                            ts_us[row] > after_us
                            and seqs[row] > group_after[g]
                            and (
                                sure
                                or region_contains_point(kind, box, shape, lons[row], lats[row])
                            )
                        ):
                            known = count_row(term_offsets, terms, row, counts, touched, known)
                            objects[g] += 1
                            if ts_us[row] <= leave_us:
                                gone_row = longer(gone_row, gone, 1)
                                gone_us = longer(gone_us, gone, 1)
                                gone_row[gone], gone_us[gone] = row, ts_us[row] + window
                                gone += 1
                        row += 1
            found_terms = longer(found_terms, used, known)
            found_counts = longer(found_counts, used, known)
            for i in range(known):
                found_terms[used + i] = touched[i]
                found_counts[used + i] = counts[touched[i]]
                counts[touched[i]] = 0
            used += known
        found_offsets[g + 1] = used
        gone_offsets[g + 1] = gone
    return (
        found_offsets,
        found_terms[:used].copy(),
        found_counts[:used].copy(),
        objects,
        gone_offsets,
        gone_row[:gone].copy(),
        gone_us[:gone].copy(),
    )


@kernel
def groups_entered(
    codes: np.ndarray,
    rows: np.ndarray,
    lons: np.ndarray,
    lats: np.ndarray,
    ts_us: np.ndarray,
    seqs: np.ndarray,
    advance_seq: np.ndarray,
    advance_us: np.ndarray,
    before_us: int,
    group_kind: np.ndarray,
    group_box: np.ndarray,
    group_shape_offsets: np.ndarray,
    group_shape: np.ndarray,
    group_window: np.ndarray,
    group_after: np.ndarray,
    group_first: np.ndarray,
    group_until: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """The rows of a file of the batch itself that count for each group at some time.

    Gives them CSR by group, with the times when they come and go; only those that do not go before
    the first due time, and that come before the last one.
    """
    groups = group_kind.size
    found_row = np.empty(256, np.int64)
    come_us, go_us = np.empty(256, np.int64), np.empty(256, np.int64)
    found_offsets = np.zeros(groups + 1, np.int64)
    stretches = np.empty((MOST_STRETCHES + STACK, 3), np.int64)
    used = 0
    for g in range(groups):
        window = group_window[g]
        kind, box = group_kind[g], group_box[g]
        shape = group_shape[group_shape_offsets[g] : group_shape_offsets[g + 1]]
        stretches, count = region_stretches(kind, box, shape, codes, rows, stretches)
        for s in range(count):
            sure = stretches[s, 2] == 1
            for row in range(stretches[s, 0], stretches[s, 1]):
                go = ts_us[row] + window
                if go <= group_first[g] or seqs[row] <= group_after[g]:
                    continue
                if not sure and not region_contains_point(kind, box, shape, lons[row], lats[row]):
                    continue
                come = clock_at(advance_seq, advance_us, before_us, seqs[row])
                if come >= go or come >= group_until[g]:
                    continue
                found_row = longer(found_row, used, 1)
                come_us, go_us = longer(come_us, used, 1), longer(go_us, used, 1)
                found_row[used], come_us[used], go_us[used] = row, come, go
                used += 1
        found_offsets[g + 1] = used
    return found_offsets, found_row[:used].copy(), come_us[:used].copy(), go_us[:used].copy()
