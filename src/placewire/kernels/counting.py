"""Counting the terms of retained objects: whole nodes by their tables, other rows one by one."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import inlined, kernel
from placewire.kernels.regions import region_contains_point


@inlined
def count_row(
    offsets: np.ndarray,
    terms: np.ndarray,
    row: int,
    step: int,
    counts: np.ndarray,
    touched: np.ndarray,
    known: int,
) -> int:
    """Add `step` to the counts of a row's terms; gives how many terms are in `touched` now."""
    for at in range(offsets[row], offsets[row + 1]):
        term = terms[at]
        if counts[term] == 0:
            touched[known] = term
            known += 1
        counts[term] += step
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
    words: int,
    whole: bool,
    after_us: int,
    until_us: int,
    after_seq: int,
    before_seq: int,
) -> tuple:  # type: ignore[type-arg]
    """Terms u32 and counts i64 of the rows in stretches i64[m, 3] and in a region, and the rows.

    Rows are of after_us < ts <= until_us and after_seq < seq < before_seq; if they all are,
    `whole`, the tables of nodes, which begin ascending and the larger first, are used.
    """
    counts = np.zeros(words, np.int64)
    touched = np.empty(words, np.uint32)
    known = 0
    objects = 0
    node = 0
    for s in range(stretches.shape[0]):
        row, last = stretches[s, 0], stretches[s, 1]
        sure = stretches[s, 2] == 1
        while row < last:
            stop = last
            if sure and whole:
                while node < nodes.shape[0] and (
                    nodes[node, 0] < row or (nodes[node, 0] == row and nodes[node, 1] > last)
                ):
                    node += 1
                if node < nodes.shape[0] and nodes[node, 0] == row:
                    for at in range(table_offsets[node], table_offsets[node + 1]):
                        term = table_terms[at]
                        if counts[term] == 0:
                            touched[known] = term
                            known += 1
                        counts[term] += table_counts[at]
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
                    known = count_row(term_offsets, terms, row, 1, counts, touched, known)
                    objects += 1
                row += 1
    found = touched[:known].copy()
    amounts = np.empty(known, np.int64)
    for i in range(known):
        amounts[i] = counts[found[i]]
    return found, amounts, objects
