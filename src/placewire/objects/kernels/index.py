"""Index retained objects: build postings lists, and term counts for the larger cells.

Objects are grouped by part and sorted by code, so a cell of any level is a range of a part's rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import kernel, subkernel
from placewire.kernels.space.cells import MAX_LEVEL

TABLE_ROWS = 4_096  # smaller tables save little: most of their terms occur once


class CountedColumns(NamedTuple):
    """Columns of a file of retained objects that term counts read; see `Retained`.

    Other columns are left out, because each array of a call costs time to pass.
    """

    code: np.ndarray
    lon: np.ndarray
    lat: np.ndarray
    ts_us: np.ndarray
    seq: np.ndarray
    term_offsets: np.ndarray
    terms: np.ndarray
    nodes: np.ndarray
    table_offsets: np.ndarray
    table_terms: np.ndarray
    table_counts: np.ndarray


@kernel
def sort_lists(offsets: np.ndarray, terms: np.ndarray) -> None:
    """Sort each CSR list of terms u32 in place by insertion; lists are short."""
    for row in range(offsets.size - 1):
        begin, end = offsets[row], offsets[row + 1]
        if end - begin > 64:
            terms[begin:end].sort()
            continue
        for i in range(begin + 1, end):
            moved = terms[i]
            k = i
            while k > begin and terms[k - 1] > moved:
                terms[k] = terms[k - 1]
                k -= 1
            terms[k] = moved


@kernel
def terms_to_lists(offsets: np.ndarray, terms: np.ndarray, words: int) -> tuple:  # type: ignore[type-arg]
    """Return the rows that have each term, ascending: offsets i64[words + 1], rows u32."""
    list_offsets = np.zeros(words + 1, np.int64)
    for term in terms:
        list_offsets[term + 1] += 1
    for word in range(words):
        list_offsets[word + 1] += list_offsets[word]
    cursor = list_offsets[:-1].copy()
    rows = np.empty(terms.size, np.uint32)
    for row in range(offsets.size - 1):
        for at in range(offsets[row], offsets[row + 1]):
            term = terms[at]
            rows[cursor[term]] = row
            cursor[term] += 1
    return list_offsets, rows


@subkernel
def first_row_at(codes: np.ndarray, begin: int, end: int, code: int) -> int:
    """Return the first of rows begin:end whose code is `code` or more, else `end`."""
    while begin < end:
        middle = (begin + end) >> 1
        if np.int64(codes[middle]) < code:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def codes_to_nodes(codes: np.ndarray, part_rows: np.ndarray, least: int) -> np.ndarray:
    """Return the row ranges i64[t, 2] that get a table: cells of `least` rows or more.

    Where a cell has more than half of an outer cell's rows, only the outermost gets a table.
    """
    nodes = np.empty((64, 2), np.int64)
    count = 0
    stack = np.empty((4 * MAX_LEVEL + 4, 4), np.int64)  # begin, end, first code, level
    for p in range(part_rows.size - 1):
        stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = part_rows[p], part_rows[p + 1], 0, 0
        top = 1
        tabled = np.empty(4 * MAX_LEVEL + 4, np.int64)  # rows of the nearest outer cell with one
        tabled[0] = np.int64(1) << 62
        while top > 0:
            top -= 1
            begin, end, code, level = stack[top]
            above = tabled[top]
            if end - begin < least:
                continue
            if 2 * (end - begin) <= above:
                if count == nodes.shape[0]:
                    wider = np.empty((2 * count, 2), np.int64)
                    for n in range(count):  # slice assignment compiles slowly
                        wider[n, 0], wider[n, 1] = nodes[n, 0], nodes[n, 1]
                    nodes = wider
                nodes[count, 0], nodes[count, 1] = begin, end
                count += 1
                above = end - begin
            if level == MAX_LEVEL:
                continue
            quarter = np.int64(1) << (2 * (MAX_LEVEL - level - 1))
            at = begin
            for q in range(4):
                last = end if q == 3 else first_row_at(codes, at, end, code + (q + 1) * quarter)
                if last - at >= least:
                    stack[top, 0], stack[top, 1] = at, last
                    stack[top, 2], stack[top, 3] = code + q * quarter, level + 1
                    tabled[top] = above
                    top += 1
                at = last
    return nodes[:count].copy()


@kernel
def nodes_to_tables(nodes: np.ndarray, offsets: np.ndarray, terms: np.ndarray, words: int) -> tuple:  # type: ignore[type-arg]
    """Count for each node the rows that have each term, as a CSR column.

    Returns offsets i64[t + 1], terms u32 ascending, counts u32.
    """
    table_offsets = np.zeros(nodes.shape[0] + 1, np.int64)
    room = 0
    for t in range(nodes.shape[0]):
        room += min(offsets[nodes[t, 1]] - offsets[nodes[t, 0]], np.int64(words))
    table_terms = np.empty(room, np.uint32)
    table_counts = np.empty(room, np.uint32)
    counts = np.zeros(words, np.uint32)
    used = 0
    for t in range(nodes.shape[0]):
        first = used
        for at in range(offsets[nodes[t, 0]], offsets[nodes[t, 1]]):
            term = terms[at]
            if counts[term] == 0:
                table_terms[used] = term
                used += 1
            counts[term] += 1
        table_terms[first:used].sort()
        for at in range(first, used):
            table_counts[at] = counts[table_terms[at]]
            counts[table_terms[at]] = 0
        table_offsets[t + 1] = used
    return table_offsets, table_terms[:used].copy(), table_counts[:used].copy()


@kernel
def terms_to_norms(offsets: np.ndarray, terms: np.ndarray, idf: np.ndarray) -> np.ndarray:
    """Return the root of the sum of idf^2 over each list of terms, in order: f64[n]."""
    norms = np.empty(offsets.size - 1, np.float64)
    for row in range(norms.size):
        total = 0.0
        for at in range(offsets[row], offsets[row + 1]):
            total += idf[terms[at]] * idf[terms[at]]
        norms[row] = np.sqrt(total)
    return norms
