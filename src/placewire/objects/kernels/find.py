"""Finding retained objects: rows by place, words and time, from inverted lists and stretches."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel, subkernel
from placewire.kernels.space.regions import region_contains_point

FEW_TERMS = 8  # so many are looked up one by one


@subkernel
def first_in_list(lists: np.ndarray, begin: int, end: int, row: int) -> int:
    """The first place of the ascending lists[begin:end] with `row` or more, else `end`."""
    while begin < end:
        middle = (begin + end) >> 1
        if np.int64(lists[middle]) < row:
            begin = middle + 1
        else:
            end = middle
    return begin


@subkernel
def row_has_term(offsets: np.ndarray, terms: np.ndarray, row: int, term: int) -> bool:
    """Whether the ascending terms of a row have one; none has -1."""
    for at in range(offsets[row], offsets[row + 1]):
        if np.int64(terms[at]) >= term:
            return np.int64(terms[at]) == term
    return False


@subkernel
def row_satisfies(
    offsets: np.ndarray,
    terms: np.ndarray,
    row: int,
    literal_term: np.ndarray,
    literal_true: np.ndarray,
    literal_false: np.ndarray,
) -> bool:
    """Run a compiled expression over a row's terms; no literals accept anything."""
    if literal_term.size == 0:
        return True
    at = 0
    while at >= 0:
        if row_has_term(offsets, terms, row, literal_term[at]):
            at = literal_true[at]
        else:
            at = literal_false[at]
    return at == -1


@subkernel
def place_among(asked: np.ndarray, term: int) -> int:
    """Where among ascending terms one is, or -1."""
    first, last = 0, asked.size
    while first < last:
        middle = (first + last) >> 1
        if asked[middle] < term:
            first = middle + 1
        else:
            last = middle
    return first if first < asked.size and asked[first] == term else -1


@subkernel
def row_meets_first(
    offsets: np.ndarray, terms: np.ndarray, row: int, asked: np.ndarray, number: int
) -> bool:
    """Whether asked[number], which the row has, is the first of the ascending terms it has."""
    if number <= FEW_TERMS:
        for earlier in range(number):
            if row_has_term(offsets, terms, row, asked[earlier]):
                return False
        return True
    for at in range(offsets[row], offsets[row + 1]):
        place = place_among(asked, np.int64(terms[at]))
        if place >= 0:
            return place == number
    return False


@subkernel
def row_has_earlier(
    offsets: np.ndarray, terms: np.ndarray, row: int, cover: np.ndarray, number: int
) -> bool:
    """Whether the row is in the list of a covering term before number `number`."""
    for earlier in range(number):
        if cover[earlier] >= 0 and row_has_term(offsets, terms, row, cover[earlier]):
            return True
    return False


@kernel
def rows_found(
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
    list_offsets: np.ndarray,
    lists: np.ndarray,
    literal_term: np.ndarray,
    literal_true: np.ndarray,
    literal_false: np.ndarray,
    cover: np.ndarray,
    listed: bool,
    after_us: int,
    until_us: int,
    after_seq: int,
    before_seq: int,
) -> np.ndarray:
    """The rows u32 in stretches i64[m, 3] that lie in a region and satisfy an expression.

    Terms are numbers of words, -1 for a word that no row has. If `listed`, only rows in the list
    of a covering term are looked at, each once. Rows are of after_us < ts <= until_us and
    after_seq < seq < before_seq.
    """
    found = np.empty(256, np.uint32)
    count = 0
    for c in range(cover.size if listed else 1):
        if listed and cover[c] < 0:
            continue
        at, end = np.int64(0), np.int64(0)
        if listed:
            at, end = list_offsets[cover[c]], list_offsets[cover[c] + 1]
        for s in range(stretches.shape[0]):
            first, last = stretches[s, 0], stretches[s, 1]
            if listed:
                at = first_in_list(lists, at, end, first)
                first, last = at, end
            sure = stretches[s, 2] == 1
            for i in range(first, last):
                row = np.int64(lists[i]) if listed else i
                if listed:
                    if row >= stretches[s, 1]:
                        break
                    at = i + 1
                if ts_us[row] <= after_us or ts_us[row] > until_us:
                    continue
                if seqs[row] <= after_seq or seqs[row] >= before_seq:
                    continue
                if not sure and not region_contains_point(kind, box, shape, lons[row], lats[row]):
                    continue
                if listed and c > 0 and row_has_earlier(term_offsets, terms, row, cover, c):
                    continue
                if not row_satisfies(
                    term_offsets, terms, row, literal_term, literal_true, literal_false
                ):
                    continue
                if count == found.size:
                    wider = np.empty(2 * count, np.uint32)
                    wider[:count] = found
                    found = wider
                found[count] = row
                count += 1
    return found[:count].copy()
