"""Searching retained objects for those nearest a point.

The best k so far are kept in arrays in order, so that one section after another can be searched.
"""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel, subkernel
from placewire.kernels.space.regions import distance_m
from placewire.objects.kernels.find import (
    first_in_list,
    row_has_term,
    row_meets_first,
)
from placewire.objects.kernels.index import first_row_at

SEEDS = 2  # times k rows on either side of the point, along the curve, give a first radius


@subkernel
def keep_best(
    best: np.ndarray,
    best_seq: np.ndarray,
    best_section: np.ndarray,
    best_row: np.ndarray,
    count: int,
    measure: float,
    seq: int,
    section: int,
    row: int,
) -> int:
    """Put a row among the best, by (measure, seq) ascending, if it belongs there; gives how many.

    A row that is there already, as one found in the first phase is in the second, stays.
    """
    k = best.size
    if count == k and (
        measure > best[k - 1] or (measure == best[k - 1] and seq >= best_seq[k - 1])
    ):
        return count
    at = count
    while at > 0 and (
        best[at - 1] > measure or (best[at - 1] == measure and best_seq[at - 1] > seq)
    ):
        at -= 1
    if at > 0 and best[at - 1] == measure and best_seq[at - 1] == seq:
        return count
    last = count if count < k else k - 1
    for i in range(last, at, -1):
        best[i], best_seq[i] = best[i - 1], best_seq[i - 1]
        best_section[i], best_row[i] = best_section[i - 1], best_row[i - 1]
    best[at], best_seq[at], best_section[at], best_row[at] = measure, seq, section, row
    return min(count + 1, k)


@subkernel
def row_is_asked(
    offsets: np.ndarray, terms: np.ndarray, row: int, asked: np.ndarray, number: int, every: bool
) -> bool:
    """Whether a row of the list of asked term `number` is a candidate that is met here first.

    With `every` it must have all terms, and only one list is walked.
    """
    if every:
        for other in range(asked.size):
            if other != number and not row_has_term(offsets, terms, row, asked[other]):
                return False
        return True
    return row_meets_first(offsets, terms, row, asked, number)


@kernel
def nearest_in_lists(
    stretches: np.ndarray,
    seeding: bool,
    code: int,
    lon: float,
    lat: float,
    within_m: float,
    lons: np.ndarray,
    lats: np.ndarray,
    ts_us: np.ndarray,
    seqs: np.ndarray,
    codes: np.ndarray,
    term_offsets: np.ndarray,
    terms: np.ndarray,
    list_offsets: np.ndarray,
    lists: np.ndarray,
    asked: np.ndarray,
    every: bool,
    after_us: int,
    until_us: int,
    after_seq: int,
    before_seq: int,
    section: int,
    best: np.ndarray,
    best_seq: np.ndarray,
    best_section: np.ndarray,
    best_row: np.ndarray,
    count: int,
) -> int:
    """Put the candidates of one section among the best; gives how many these are now.

    `asked` i64 are terms, ascending. If `seeding`, only the rows of each list
    next to the point along the curve are looked at, in the one stretch; otherwise all in the
    stretches.
    """
    k = best.size
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
                        best,
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
