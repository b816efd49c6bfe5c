"""Find retained objects by region, words and time: all of them, or the nearest to a point.

Candidates come from postings lists, limited to the row ranges that may lie in the region.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placewire.kernels.jit import array_subkernel, kernel, subkernel
from placewire.kernels.space.cells import code_of_point
from placewire.kernels.space.regions import distance_m, region_contains_point
from placewire.objects.kernels.cell_ranges import (
    FEW,
    SearchRegion,
    parts_to_stretches,
    region_to_stretches,
)
from placewire.objects.kernels.index import first_row_at
from placewire.objects.kernels.score import Columns

if TYPE_CHECKING:
    from placewire.objects.sections import Span

FEW_TERMS = 8  # up to this many terms are compared one by one
SHORT_LIST = 256  # shorter lists are scanned in full: finding the region's cells costs more
SEEDS = 2  # times k rows on either side of the point, along the curve, give an initial radius


class Literals(NamedTuple):
    """A compiled expression over the words of a file, -1 for a word that no row has.

    Holds the next literal if the row has the word, and if not; -1 accepts, -2 rejects.
    """

    terms: np.ndarray  # i64
    on_true: np.ndarray  # i64
    on_false: np.ndarray  # i64


class Cover(NamedTuple):
    """Literals that every match has: each of them, or with `any_of` at least one."""

    literals: np.ndarray  # i64
    any_of: bool


class NearestSearch(NamedTuple):
    """The query of a search for the nearest rows.

    With `every` a row must have all terms, else any of them. If `seeding`, only the rows of each
    list next to the point along the curve are tested. Rows count with after_us < ts <= until_us
    and after_seq < seq < before_seq.
    """

    lon: float
    lat: float
    within_m: float
    every: bool
    seeding: bool
    after_us: int
    until_us: int
    after_seq: int
    before_seq: int


class NearestFound(NamedTuple):
    """The k best rows so far by (distance, seq), from several sections."""

    distance_m: np.ndarray  # f64[k]
    seq: np.ndarray  # i64[k]
    section: np.ndarray  # i64[k]
    row: np.ndarray  # i64[k]


@subkernel
def first_in_list(lists: np.ndarray, begin: int, end: int, row: int) -> int:
    """Return the first position in ascending lists[begin:end] with `row` or more, else `end`."""
    while begin < end:
        middle = (begin + end) >> 1
        if np.int64(lists[middle]) < row:
            begin = middle + 1
        else:
            end = middle
    return begin


@subkernel
def row_has_term(offsets: np.ndarray, terms: np.ndarray, row: int, term: int) -> bool:
    """Return true if a row's ascending terms include `term`; no row has -1."""
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
    """Evaluate a compiled expression on a row's terms; no literals accept anything."""
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
    """Return the position of a term among ascending terms, or -1."""
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
    """Return true if asked[number], which the row has, is the row's first asked term."""
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
    """Return true if the row is in the list of a covering term before number `number`."""
    for earlier in range(number):
        if cover[earlier] >= 0 and row_has_term(offsets, terms, row, cover[earlier]):
            return True
    return False


@array_subkernel
def choose_lists(
    list_offsets: np.ndarray, literal_term: np.ndarray, cover: np.ndarray, any_of: bool
) -> tuple:  # type: ignore[type-arg]
    """Return terms whose lists include every match, and the total length of these lists.

    If matches have every term of the cover, the shortest list is enough.
    """
    chosen = np.empty(cover.size, np.int64)
    total = np.int64(0)
    for i in range(cover.size):
        term = literal_term[cover[i]]
        length = list_offsets[term + 1] - list_offsets[term] if term >= 0 else np.int64(0)
        if any_of:
            chosen[i] = term
            total += length
        elif i == 0 or length < total:
            chosen[0] = term
            total = length
    return (chosen if any_of else chosen[:1]), total


@kernel
def rows_found(
    file: Columns,
    parts: np.ndarray,
    region: SearchRegion,
    span: Span,
    literals: Literals,
    cover: Cover,
) -> np.ndarray:
    """Return the rows u32 of parts i64[p, 2] in a region and a span that satisfy an expression.

    Only rows in the list of a covering term are tested, each once, or all rows if there is no
    cover.
    """
    kind, box, shape = region
    after_us, until_us, after_seq, before_seq = span
    literal_term, literal_true, literal_false = literals
    lons, lats, ts_us, seqs = file.lon, file.lat, file.ts_us, file.seq
    term_offsets, terms = file.term_offsets, file.terms
    list_offsets, lists = file.list_offsets, file.lists
    covering, length = choose_lists(list_offsets, literal_term, cover.literals, cover.any_of)
    listed = covering.size > 0
    if listed and length == 0:
        return np.empty(0, np.uint32)
    if listed and length <= SHORT_LIST:
        stretches = parts_to_stretches(parts)
    else:
        stretches = region_to_stretches(region, file.code, parts, np.int64(FEW))
    found = np.empty(256, np.uint32)
    count = 0
    for c in range(covering.size if listed else 1):
        if listed and covering[c] < 0:
            continue
        at, end = np.int64(0), np.int64(0)
        if listed:
            at, end = list_offsets[covering[c]], list_offsets[covering[c] + 1]
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
                if listed and c > 0 and row_has_earlier(term_offsets, terms, row, covering, c):
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


@subkernel
def keep_best(
    best: np.ndarray,
    best_seq: np.ndarray,
    best_section: np.ndarray,
    best_row: np.ndarray,
    count: int,
    distance: float,
    seq: int,
    section: int,
    row: int,
) -> int:
    """Insert a row among the best by (distance, seq) if it qualifies; return the number of these.

    A row that is already present, such as one found in the seeding phase, stays.
    """
    k = best.size
    if count == k and (
        distance > best[k - 1] or (distance == best[k - 1] and seq >= best_seq[k - 1])
    ):
        return count
    at = count
    while at > 0 and (
        best[at - 1] > distance or (best[at - 1] == distance and best_seq[at - 1] > seq)
    ):
        at -= 1
    if at > 0 and best[at - 1] == distance and best_seq[at - 1] == seq:
        return count
    last = count if count < k else k - 1
    for i in range(last, at, -1):
        best[i], best_seq[i] = best[i - 1], best_seq[i - 1]
        best_section[i], best_row[i] = best_section[i - 1], best_row[i - 1]
    best[at], best_seq[at], best_section[at], best_row[at] = distance, seq, section, row
    return min(count + 1, k)


@subkernel
def row_is_asked(
    offsets: np.ndarray, terms: np.ndarray, row: int, asked: np.ndarray, number: int, every: bool
) -> bool:
    """Return true if a row in the list of asked term `number` is a candidate found there first.

    With `every` it must have all terms, and only one list is scanned.
    """
    if every:
        for other in range(asked.size):
            if other != number and not row_has_term(offsets, terms, row, asked[other]):
                return False
        return True
    return row_meets_first(offsets, terms, row, asked, number)


@kernel
def nearest_in_lists(
    file: Columns,
    parts: np.ndarray,
    region: SearchRegion,
    search: NearestSearch,
    asked: np.ndarray,
    section: int,
    best: NearestFound,
    count: int,
) -> int:
    """Insert the candidates of one section among the best; return the number of the best.

    `asked` i64 are terms, ascending. Candidates are rows of parts i64[p, 2] in a region that
    contains all rows that may be wanted.
    """
    lon, lat, within_m, every, seeding, after_us, until_us, after_seq, before_seq = search
    best_m, best_seq, best_section, best_row = best
    lons, lats, ts_us, seqs = file.lon, file.lat, file.ts_us, file.seq
    codes, term_offsets, terms = file.code, file.term_offsets, file.terms
    list_offsets, lists = file.list_offsets, file.lists
    code = np.int64(0)
    if seeding:
        code = code_of_point(lon, lat)
        stretches = parts_to_stretches(parts)
    else:
        stretches = region_to_stretches(region, codes, parts, np.int64(FEW))
    k = best_m.size
    walked = asked.size
    first_term = 0
    if every:
        for number in range(asked.size):
            here = list_offsets[asked[number] + 1] - list_offsets[asked[number]]
            if here < list_offsets[asked[first_term] + 1] - list_offsets[asked[first_term]]:
                first_term = number
        walked = first_term + 1
    for number in range(first_term, walked):
        begin, end = list_offsets[asked[number]], list_offsets[asked[number] + 1]
        for s in range(stretches.shape[0]):
            first = first_in_list(lists, begin, end, stretches[s, 0])
            last = end
            if seeding:
                row = first_row_at(codes, stretches[s, 0], stretches[s, 1], code)
                last = first_in_list(lists, first, end, stretches[s, 1])
                middle = first_in_list(lists, first, last, row)
                first = max(first, middle - SEEDS * k)
                last = min(last, middle + SEEDS * k)
            for at in range(first, last):
                row = np.int64(lists[at])
                if row >= stretches[s, 1]:
                    break
                if ts_us[row] <= after_us or ts_us[row] > until_us:
                    continue
                if seqs[row] <= after_seq or seqs[row] >= before_seq:
                    continue
                if not row_is_asked(term_offsets, terms, row, asked, number, every):
                    continue
                distance = distance_m(lon, lat, lons[row], lats[row])
                if distance <= within_m:
                    count = keep_best(
                        best_m,
                        best_seq,
                        best_section,
                        best_row,
                        count,
                        distance,
                        seqs[row],
                        section,
                        row,
                    )
    return count
