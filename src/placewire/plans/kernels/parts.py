"""Count and partition the rows of a sample by rectangle, by term and by load."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import kernel, subkernel


@kernel
def cells_overlapping_box(cells: np.ndarray, picked: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Return the `picked` i64 rows of `cells` i32[m, 4] (inclusive) that overlap the box.

    The box is first column, first row, end column, end row (ends exclusive).
    """
    found = np.empty(picked.size, np.int64)
    count = 0
    for row in picked:
        if cells[row, 1] >= box[3] or cells[row, 3] < box[1]:
            continue
        if cells[row, 0] <= cells[row, 2]:
            touches = cells[row, 0] < box[2] and cells[row, 2] >= box[0]
        else:
            touches = cells[row, 0] < box[2] or cells[row, 2] >= box[0]
        if touches:
            found[count] = row
            count += 1
    return found[:count].copy()


@kernel
def points_inside_box(
    columns: np.ndarray, rows: np.ndarray, picked: np.ndarray, box: np.ndarray
) -> np.ndarray:
    """Return the `picked` i64 points that are inside the box (ends exclusive)."""
    found = np.empty(picked.size, np.int64)
    count = 0
    for at in picked:
        if box[0] <= columns[at] < box[2] and box[1] <= rows[at] < box[3]:
            found[count] = at
            count += 1
    return found[:count].copy()


@kernel
def terms_counted(
    offsets: np.ndarray, terms: np.ndarray, picked: np.ndarray, size: int
) -> np.ndarray:
    """Count the picked rows of a CSR column that have each of `size` terms: i64[size].

    Entries of -1 are not counted.
    """
    counts = np.zeros(size, np.int64)
    for row in picked:
        for at in range(offsets[row], offsets[row + 1]):
            if terms[at] >= 0:
                counts[terms[at]] += 1
    return counts


@kernel
def rows_to_parts(
    offsets: np.ndarray,
    terms: np.ndarray,
    picked: np.ndarray,
    part_of_term: np.ndarray,
    parts: int,
    part_of_none: int,
) -> tuple:  # type: ignore[type-arg]
    """Return for each part the picked rows with a term of it: offsets i64[parts + 1], rows i64.

    `part_of_term` i32[lexicon] is -1 for a term that does not count. A row is listed once in each
    of its parts; a term -1 belongs to `part_of_none`.
    """
    seen = np.full(parts, -1, np.int64)
    counts = np.zeros(parts + 1, np.int64)
    for row in picked:
        for at in range(offsets[row], offsets[row + 1]):
            part = part_of_term[terms[at]] if terms[at] >= 0 else part_of_none
            if part >= 0 and seen[part] != row:
                seen[part] = row
                counts[part + 1] += 1
    for part in range(parts):
        counts[part + 1] += counts[part]
    rows = np.empty(counts[parts], np.int64)
    cursor = counts.copy()
    seen[:] = -1
    for row in picked:
        for at in range(offsets[row], offsets[row + 1]):
            part = part_of_term[terms[at]] if terms[at] >= 0 else part_of_none
            if part >= 0 and seen[part] != row:
                seen[part] = row
                rows[cursor[part]] = row
                cursor[part] += 1
    return counts, rows


@kernel
def rows_worked_by_part(
    offsets: np.ndarray,
    terms: np.ndarray,
    work: np.ndarray,
    picked: np.ndarray,
    part_of_term: np.ndarray,
    parts: int,
) -> np.ndarray:
    """Return the cost of the picked rows of a CSR column in each part: f64[parts].

    A row costs 1 in every part that has a term of it, plus the `work` f64 of those terms.
    """
    seen = np.full(parts, -1, np.int64)
    total = np.zeros(parts, np.float64)
    for row in picked:
        for at in range(offsets[row], offsets[row + 1]):
            part = part_of_term[terms[at]]
            if part >= 0:
                total[part] += work[at]
                if seen[part] != row:
                    seen[part] = row
                    total[part] += 1.0
    return total


@kernel
def terms_worked(
    offsets: np.ndarray, terms: np.ndarray, work: np.ndarray, picked: np.ndarray, size: int
) -> np.ndarray:
    """The cost of the picked rows under each of `size` terms, 1 per row plus work: f64[size]."""
    total = np.zeros(size, np.float64)
    for row in picked:
        for at in range(offsets[row], offsets[row + 1]):
            total[terms[at]] += 1.0 + work[at]
    return total


WORD_BITS = 64


@kernel
def spans_along_axis(cells: np.ndarray, picked: np.ndarray, box: np.ndarray, axis: int) -> tuple:  # type: ignore[type-arg]
    """Count the picked cells that begin and those that end at each place of a box: i64[w], i64[w].

    `cells` i32[m, 4] are as in a sample and all overlap the box; `axis` 0 is columns, 1 is rows. A
    cell that crosses the antimeridian counts at its outermost places inside the box, so that a cut
    has it on both sides exactly when both sides overlap it.
    """
    start = box[axis]
    width = box[axis + 2] - start
    begins = np.zeros(width, np.int64)
    ends = np.zeros(width, np.int64)
    for row in picked:
        first = np.int64(cells[row, axis]) - start
        last = np.int64(cells[row, axis + 2]) - start
        if first > last:
            first, last = (
                np.int64(0) if last >= 0 else first,
                np.int64(width - 1) if first < width else last,
            )
        begins[max(first, 0)] += 1
        ends[min(last, width - 1)] += 1
    return begins, ends


@kernel
def rows_counted_by_part(
    offsets: np.ndarray,
    terms: np.ndarray,
    picked: np.ndarray,
    part_of_term: np.ndarray,
    parts: int,
) -> np.ndarray:
    """Count the picked rows of a CSR column that have a term of each part: i64[parts].

    `part_of_term` i32[lexicon] is -1 for a term that does not count; a term -1 belongs to part 0.
    """
    seen = np.full(parts, -1, np.int64)
    counts = np.zeros(parts, np.int64)
    for row in picked:
        for at in range(offsets[row], offsets[row + 1]):
            part = part_of_term[terms[at]] if terms[at] >= 0 else 0
            if part >= 0 and seen[part] != row:
                seen[part] = row
                counts[part] += 1
    return counts


@kernel
def rows_held_by_workers(holders: np.ndarray, rows: np.ndarray, workers: int) -> np.ndarray:
    """Count the rows that each worker holds: i64[workers].

    `holders` u64[n, words] has a bit for each worker of a row.
    """
    counts = np.zeros(workers, np.int64)
    one = np.uint64(1)
    byte = np.uint64(255)
    for row in rows:
        for word in range(holders.shape[1]):
            bits = holders[row, word]
            worker = word * WORD_BITS
            while bits:
                if bits & byte == 0:  # most rows have one worker or two, far up in the word
                    bits >>= np.uint64(8)
                    worker += 8
                    continue
                if bits & one:
                    counts[worker] += 1
                bits >>= one
                worker += 1
    return counts


@kernel
def rows_given_to_worker(holders: np.ndarray, rows: np.ndarray, worker: int) -> int:
    """Mark in `holders` u64[n, words] that a worker holds these rows; return how many are new."""
    word = worker // WORD_BITS
    bit = np.uint64(1) << np.uint64(worker % WORD_BITS)
    given = 0
    for row in rows:
        if holders[row, word] & bit == 0:
            holders[row, word] |= bit
            given += 1
    return given


@subkernel
def sink_worker(heap: np.ndarray, carried: np.ndarray, at: int) -> None:
    """Sift a worker down in a heap of loads; of equal loads the first worker is on top."""
    worker = heap[at]
    while 2 * at + 1 < heap.size:
        child = 2 * at + 1
        if child + 1 < heap.size:
            one, other = heap[child], heap[child + 1]
            if carried[other] < carried[one] or (carried[other] == carried[one] and other < one):
                child += 1
        below = heap[child]
        if carried[worker] < carried[below] or (
            carried[worker] == carried[below] and worker < below
        ):
            break
        heap[at] = below
        at = child
    heap[at] = worker


@kernel
def costs_to_workers(costs: np.ndarray, loads: np.ndarray) -> tuple:  # type: ignore[type-arg]
    """Return the worker i32[n] of each of costs f64[n], and the resulting loads f64[workers].

    `loads` f64[workers] are the previous loads; they are not modified.
    """
    carried = loads.copy()
    heap = np.arange(loads.size).astype(np.int32)
    for at in range(loads.size // 2 - 1, -1, -1):
        sink_worker(heap, carried, at)
    worker = np.empty(costs.size, np.int32)
    for i in range(costs.size):
        worker[i] = heap[0]
        carried[heap[0]] += costs[i]
        sink_worker(heap, carried, 0)
    return worker, carried


@kernel
def rows_least_frequent(
    offsets: np.ndarray, lists: np.ndarray, terms: np.ndarray, frequency: np.ndarray
) -> np.ndarray:
    """Return the position in a CSR column of each row's least frequent term, -1 for none: i64[n].

    `lists` i64 has each term's position in `frequency` i64, -1 for one of frequency 0. Ties go to
    the least hash.
    """
    least = np.full(offsets.size - 1, -1, np.int64)
    for row in range(offsets.size - 1):
        fewest = np.int64(0)
        for at in range(offsets[row], offsets[row + 1]):
            count = frequency[lists[at]] if lists[at] >= 0 else np.int64(0)
            if (
                least[row] < 0
                or count < fewest
                or (count == fewest and terms[at] < terms[least[row]])
            ):
                least[row] = at
                fewest = count
    return least


@kernel
def rows_to_histograms(
    picked: np.ndarray,
    kind: np.ndarray,
    length: np.ndarray,
    duration: np.ndarray,
    shape: tuple,  # type: ignore[type-arg]
) -> tuple:  # type: ignore[type-arg]
    """Return by kind, for the `picked` rows, the lengths, duration classes and sums of durations.

    `shape` is the numbers of kinds, lengths and classes; class i ends at 2^i.
    Returns i64[kinds, lengths], i64[kinds, classes] and f64[kinds, classes].
    """
    lengths = np.zeros((shape[0], shape[1]), np.int64)
    lives = np.zeros((shape[0], shape[2]), np.int64)
    lived = np.zeros((shape[0], shape[2]), np.float64)
    for row in picked:
        _, exponent = math.frexp(duration[row])
        life = min(max(exponent, 0), shape[2] - 1)
        lengths[kind[row], length[row]] += 1
        lives[kind[row], life] += 1
        lived[kind[row], life] += duration[row]
    return lengths, lives, lived


@kernel
def terms_to_objects(
    offsets: np.ndarray, terms: np.ndarray, picked: np.ndarray, number: np.ndarray, count: int
) -> tuple:  # type: ignore[type-arg]
    """Return, for each numbered term, the positions of the picked objects that have it.

    `number` i32[lexicon] is 0..count - 1, or -1 for a term that has no list. Returns
    offsets i64[count + 1] and positions i32.
    """
    list_offsets = np.zeros(count + 1, np.int64)
    for o in picked:
        for at in range(offsets[o], offsets[o + 1]):
            if number[terms[at]] >= 0:
                list_offsets[number[terms[at]] + 1] += 1
    for t in range(count):
        list_offsets[t + 1] += list_offsets[t]
    positions = np.empty(list_offsets[count], np.int32)
    cursor = list_offsets.copy()
    for i in range(picked.size):
        for at in range(offsets[picked[i]], offsets[picked[i] + 1]):
            t = number[terms[at]]
            if t >= 0:
                positions[cursor[t]] = i
                cursor[t] += 1
    return list_offsets, positions


class TermLists(NamedTuple):
    """The objects of each term as a CSR column of positions i32, and the order to take terms in."""

    order: NDArray[np.int64]
    offsets: NDArray[np.int64]
    positions: NDArray[np.int32]


class AskedTerms(NamedTuple):
    """How two kinds of queries ask for terms.

    `weight` f64[2] is that of all queries of a kind, `chance` f64[2, lengths] the probability of
    each number of keywords, `shares` f64[terms, 2] each term's part of a kind's keywords. Queries
    of the weight `steady` read every object of every part.
    """

    weight: NDArray[np.float64]
    chance: NDArray[np.float64]
    shares: NDArray[np.float64]
    steady: float


@subkernel
def weight_of_asked(asked: np.ndarray, chance: np.ndarray, share: np.ndarray) -> float:
    """The weight of queries that read each object of a part with a `share` f64[2] of keywords.

    `asked` f64[2] is the weight of all queries of a kind; chance f64[2, lengths] the probability of
    each number of keywords, all of which must be present (equation 1 of SSTD).
    """
    weight = 0.0
    for s in range(asked.size):
        covered = 0.0
        for length in range(chance.shape[1] - 1, -1, -1):
            covered = covered * share[s] + chance[s, length]
        weight += asked[s] * covered
    return weight


@kernel
def terms_to_parts(
    lists: TermLists, asked_terms: AskedTerms, objects: int, everything: bool, parts: int
) -> np.ndarray:
    """Assign each term i32[terms] in order to the part whose workload it increases least.

    A term adds its share of the keywords of the asked kinds, and those of its objects that are new
    to the part. Part 0 has all objects if `everything`. Of equal parts, one that has the objects
    is preferred, then the lightest. At most 8 parts.
    """
    order, list_offsets, positions = lists
    asked, chance, shares, steady = asked_terms
    part_of = np.zeros(order.size, np.int32)
    seen = np.zeros(objects, np.uint8)
    held = np.zeros(parts, np.int64)
    has = np.zeros((parts, asked.size), np.float64)
    weight = np.full(parts, steady + weight_of_asked(asked, chance, has[0]))
    if everything:
        seen[:] = 1
        held[0] = objects
    new = np.empty(parts, np.int64)
    for t in order:
        new[:] = 0
        for at in range(list_offsets[t], list_offsets[t + 1]):
            for part in range(parts):
                if not (seen[positions[at]] >> part) & 1:
                    new[part] += 1
        # Keywords that no object has send no query to a part.
        share = shares[t] if list_offsets[t + 1] > list_offsets[t] else 0.0 * shares[t]
        best = 0
        least = np.inf
        for part in range(parts):
            grown = steady + weight_of_asked(asked, chance, has[part] + share)
            increment = held[part] * (grown - weight[part]) + new[part] * grown
            if part > 0 and abs(increment - least) <= 1e-9 * least:
                better = new[part] < new[best] or (
                    new[part] == new[best] and held[part] * weight[part] < held[best] * weight[best]
                )
            else:
                better = increment < least
            if better:
                least = increment
                best = part
        part_of[t] = best
        held[best] += new[best]
        has[best] += share
        weight[best] = steady + weight_of_asked(asked, chance, has[best])
        for at in range(list_offsets[t], list_offsets[t + 1]):
            seen[positions[at]] |= np.uint8(1 << best)
    return part_of
