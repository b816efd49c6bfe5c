"""Counting the terms of retained objects: whole nodes by their tables, other rows one by one."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel, subkernel
from placewire.kernels.space.regions import region_contains_point
from placewire.kernels.text.hash_table import EMPTY, entry_of_hash


@subkernel
def count_row(
    offsets: np.ndarray,
    terms: np.ndarray,
    row: int,
    counts: np.ndarray,
    touched: np.ndarray,
    known: int,
) -> int:
    """Count a row's terms; gives how many terms are in `touched` now."""
    for at in range(offsets[row], offsets[row + 1]):
        term = terms[at]
        if counts[term] == 0:
            touched[known] = term
            known += 1
        counts[term] += 1
    return known


@subkernel
def node_at(nodes: np.ndarray, node: int, row: int, last: int) -> int:
    """The first node from number `node` on that begins at `row`, and ends by `last`, or later.

    Nodes begin ascending, the larger first.
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
    """Add the table of a node to the counts; gives how many terms are in `touched` now."""
    for at in range(offsets[node], offsets[node + 1]):
        term = terms[at]
        if counts[term] == 0:
            touched[known] = term
            known += 1
        counts[term] += amounts[at]
    return known


@kernel
def terms_counted(
    stretches: np.ndarray,
    kind: int,
    box: np.ndarray,
    shape: np.ndarray,
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
    whole: bool,
    after_us: int,
    until_us: int,
    after_seq: int,
    before_seq: int,
) -> tuple:  # type: ignore[type-arg]
    """Terms u32 and counts i64 of the rows in stretches i64[m, 3] and in a region, and the rows.

    Rows are of after_us < ts <= until_us and after_seq < seq < before_seq; if they all are,
    `whole`, the tables of nodes, which begin ascending and the larger first, are used. `counts` i64
    has room for all words and is zero, before and after, `touched` u32 is scratch of that size.
    """
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
                row += 1
    found = touched[:known].copy()
    amounts = np.empty(known, np.int64)
    for i in range(known):
        amounts[i] = counts[found[i]]
        counts[found[i]] = 0
    return found, amounts, objects


@kernel
def most_frequent(hashes: np.ndarray, counts: np.ndarray, offsets: np.ndarray, k: int) -> tuple:  # type: ignore[type-arg]
    """Those of terms counted in several files that may be among the k most frequent of all.

    The terms u64 and counts i64 of file f are offsets[f]:offsets[f + 1]. A term that is in no file
    as frequent as its share of what k terms of one file reach is not looked at. Gives the first
    place of each term and its sum over all files; of sums below the k-th none is missing above.
    """
    files = offsets.size - 1
    largest = 0
    for f in range(files):
        if offsets[f + 1] - offsets[f] > offsets[largest + 1] - offsets[largest]:
            largest = f
    own = counts[offsets[largest] : offsets[largest + 1]]
    least = np.int64(1)
    if own.size > k:
        least = max(least, -(-np.partition(own, own.size - k)[own.size - k] // files))
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
