"""Searching the window for subscriptions: the best objects of each, and all above a score."""

from __future__ import annotations

import numpy as np

from placewire.kernels.buffers import ranks_before
from placewire.kernels.finding import row_meets_first
from placewire.kernels.jit import inlined, kernel
from placewire.kernels.regions import distance_m
from placewire.kernels.searching import score_of, text_similarity

LON, LAT, ALPHA, REACH, NORM, WEIGHTS = 0, 1, 2, 3, 4, 5  # where in a `relevant` row's shape


@inlined
def nano_of(score: float) -> np.int32:
    """A score as a whole number of 1e-9."""
    return np.int32(np.rint(score * 1e9))


@inlined
def word_of_hash(hashes: np.ndarray, order: np.ndarray, wanted: np.uint64) -> int:
    """The number of the word with a hash, by the order of hashes; -1 if there is none."""
    low, high = 0, order.size
    while low < high:
        middle = (low + high) // 2
        if hashes[order[middle]] < wanted:
            low = middle + 1
        else:
            high = middle
    if low < order.size and hashes[order[low]] == wanted:
        return int(order[low])
    return -1


@inlined
def asked_words(
    row: int,
    literal_offsets: np.ndarray,
    literal_term: np.ndarray,
    shape_offsets: np.ndarray,
    shape: np.ndarray,
    hashes: np.ndarray,
    order: np.ndarray,
    asked: np.ndarray,
    weights: np.ndarray,
) -> int:
    """The words of a section that a row asks for, and their idf; gives how many."""
    count = 0
    for at in range(literal_offsets[row], literal_offsets[row + 1]):
        word = word_of_hash(hashes, order, literal_term[at])
        if word >= 0:
            asked[count] = word
            weights[count] = shape[shape_offsets[row] + WEIGHTS + at - literal_offsets[row]]
            count += 1
    return count


@inlined
def put_best(
    first: int,
    room: int,
    held: int,
    nano: int,
    seq: int,
    exp: int,
    best_nano: np.ndarray,
    best_seq: np.ndarray,
    best_exp: np.ndarray,
) -> int:
    """Put an object among the best by rank, if it belongs there; gives how many these are."""
    last = first + held - 1
    if held == room and not ranks_before(nano, seq, np.int64(best_nano[last]), best_seq[last]):
        return held
    at = first + (held if held < room else room - 1)
    while at > first and ranks_before(nano, seq, np.int64(best_nano[at - 1]), best_seq[at - 1]):
        best_nano[at], best_seq[at], best_exp[at] = (
            best_nano[at - 1],
            best_seq[at - 1],
            best_exp[at - 1],
        )
        at -= 1
    best_nano[at], best_seq[at], best_exp[at] = nano, seq, exp
    return min(held + 1, room)


@kernel
def best_objects_of_rows(
    rows: np.ndarray,
    after_us: np.ndarray,
    after_seq: np.ndarray,
    before_seq: np.ndarray,
    literal_offsets: np.ndarray,
    literal_term: np.ndarray,
    shape_offsets: np.ndarray,
    shape: np.ndarray,
    word_hash: np.ndarray,
    word_order: np.ndarray,
    lons: np.ndarray,
    lats: np.ndarray,
    ts_us: np.ndarray,
    seqs: np.ndarray,
    term_offsets: np.ndarray,
    terms: np.ndarray,
    norms: np.ndarray,
    list_offsets: np.ndarray,
    lists: np.ndarray,
    by_time: bool,
    best_offsets: np.ndarray,
    best_counts: np.ndarray,
    best_nano: np.ndarray,
    best_seq: np.ndarray,
    best_exp: np.ndarray,
    looked: np.ndarray,
) -> None:
    """Put the objects of one section among the best of each row, in place.

    Row rows[i] wants objects with ts > after_us[i] and after_seq[i] < seq < before_seq[i]. `looked`
    i64[n] counts the objects that were scored.
    """
    asked_room = np.empty(64 * 64, np.int64)
    weight_room = np.empty(64 * 64, np.float64)
    for i in range(rows.size):
        row = rows[i]
        count = asked_words(
            row,
            literal_offsets,
            literal_term,
            shape_offsets,
            shape,
            word_hash,
            word_order,
            asked_room,
            weight_room,
        )
        asked, weights = asked_room[:count], weight_room[:count]
        base = shape_offsets[row]
        lon, lat, alpha, reach = (
            shape[base + LON],
            shape[base + LAT],
            shape[base + ALPHA],
            shape[base + REACH],
        )
        first = best_offsets[i]
        room = best_offsets[i + 1] - first
        held = best_counts[i]
        for number in range(count):
            for at in range(list_offsets[asked[number]], list_offsets[asked[number] + 1]):
                found = np.int64(lists[at])
                if ts_us[found] <= after_us[i]:
                    continue
                if seqs[found] <= after_seq[i] or seqs[found] >= before_seq[i]:
                    continue
                if not row_meets_first(term_offsets, terms, found, asked, number):
                    continue
                norm = row_norm(norms, term_offsets, found)
                textual = text_similarity(
                    term_offsets, terms, found, asked, weights, shape[base + NORM], norm
                )
                looked[i] += 1
                distance = distance_m(lon, lat, lons[found], lats[found])
                nano = nano_of(score_of(distance, reach, alpha, textual))
                exp = ts_us[found] if by_time else seqs[found]
                held = put_best(
                    first, room, held, nano, seqs[found], exp, best_nano, best_seq, best_exp
                )
        best_counts[i] = held


@inlined
def row_norm(norms: np.ndarray, term_offsets: np.ndarray, row: int) -> float:
    """The norm of an object; without norms every term weighs 1."""
    if norms.size:
        return float(norms[row])
    return float(np.sqrt(np.float64(term_offsets[row + 1] - term_offsets[row])))


@kernel
def objects_above_rows(
    rows: np.ndarray,
    after_seq: np.ndarray,
    theta: np.ndarray,
    literal_offsets: np.ndarray,
    literal_term: np.ndarray,
    shape_offsets: np.ndarray,
    shape: np.ndarray,
    word_hash: np.ndarray,
    word_order: np.ndarray,
    lons: np.ndarray,
    lats: np.ndarray,
    ts_us: np.ndarray,
    seqs: np.ndarray,
    term_offsets: np.ndarray,
    terms: np.ndarray,
    norms: np.ndarray,
    list_offsets: np.ndarray,
    lists: np.ndarray,
    by_time: bool,
) -> tuple:  # type: ignore[type-arg]
    """The objects of one section after after_seq[i] that score theta[rows[i]] at least.

    Gives i i64, nano i32, seq i64 and exp i64 of each, by i.
    """
    asked_room = np.empty(64 * 64, np.int64)
    weight_room = np.empty(64 * 64, np.float64)
    out_i = np.empty(1024, np.int64)
    out_nano = np.empty(1024, np.int32)
    out_seq = np.empty(1024, np.int64)
    out_exp = np.empty(1024, np.int64)
    written = 0
    for i in range(rows.size):
        row = rows[i]
        count = asked_words(
            row,
            literal_offsets,
            literal_term,
            shape_offsets,
            shape,
            word_hash,
            word_order,
            asked_room,
            weight_room,
        )
        asked, weights = asked_room[:count], weight_room[:count]
        base = shape_offsets[row]
        for number in range(count):
            for at in range(list_offsets[asked[number]], list_offsets[asked[number] + 1]):
                found = np.int64(lists[at])
                if seqs[found] <= after_seq[i]:
                    continue
                if not row_meets_first(term_offsets, terms, found, asked, number):
                    continue
                norm = row_norm(norms, term_offsets, found)
                textual = text_similarity(
                    term_offsets, terms, found, asked, weights, shape[base + NORM], norm
                )
                distance = distance_m(
                    shape[base + LON], shape[base + LAT], lons[found], lats[found]
                )
                nano = nano_of(
                    score_of(distance, shape[base + REACH], shape[base + ALPHA], textual)
                )
                if nano < theta[row]:
                    continue
                if written == out_i.size:
                    out_i = np.concatenate((out_i, np.empty(written, np.int64)))
                    out_nano = np.concatenate((out_nano, np.empty(written, np.int32)))
                    out_seq = np.concatenate((out_seq, np.empty(written, np.int64)))
                    out_exp = np.concatenate((out_exp, np.empty(written, np.int64)))
                out_i[written], out_nano[written], out_seq[written] = i, nano, seqs[found]
                out_exp[written] = ts_us[found] if by_time else seqs[found]
                written += 1
    return (
        out_i[:written].copy(),
        out_nano[:written].copy(),
        out_seq[:written].copy(),
        out_exp[:written].copy(),
    )


@kernel
def cheapest_sizes(ks: np.ndarray, looked: np.ndarray) -> np.ndarray:
    """How many objects above the threshold make a buffer cheapest to keep: i64[n].

    With n of them, a buffer has about k (1 + ln(n / k)) that are not dominated, and an arriving or
    leaving one walks along these. A search looks at `looked` objects; it is needed once the number
    above the threshold, a random walk with a reflecting barrier at 2 n, has come down to k - 1.
    Both costs are taken by arriving object and without their common factor; the sum falls, then
    rises, and the least is found by descent.
    """
    sizes = np.empty(ks.size, np.int64)
    for i in range(ks.size):
        k = np.float64(ks[i])
        n = k
        step = max(1.0, np.floor(k / 2))
        cost = buffer_cost(n, k, looked[i])
        while step >= 1.0:
            more = buffer_cost(n + step, k, looked[i])
            less = buffer_cost(max(n - step, k), k, looked[i])
            if more < cost and more <= less:
                n += step
                cost = more
            elif less < cost:
                n = max(n - step, k)
                cost = less
            else:
                step = np.floor(step / 2)
        sizes[i] = np.int64(n)
    return sizes


@inlined
def buffer_cost(n: float, k: float, looked: float) -> float:
    above = n - k + 1.0
    keeping = n * k * (1.0 + np.log(n / k))
    return keeping + SEARCH_STEP * looked * n / (2.0 * above * n + above * (above + 1.0))


SEARCH_STEP = 4.0  # the cost of scoring an object, in steps along a buffer


@kernel
def postings_of_rows(
    rows: np.ndarray,
    literal_offsets: np.ndarray,
    literal_term: np.ndarray,
    word_hash: np.ndarray,
    word_order: np.ndarray,
    list_offsets: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Add the lengths of the lists that each row asks for to `counts` f64[n]."""
    for i in range(rows.size):
        for at in range(literal_offsets[rows[i]], literal_offsets[rows[i] + 1]):
            word = word_of_hash(word_hash, word_order, literal_term[at])
            if word >= 0:
                counts[i] += list_offsets[word + 1] - list_offsets[word]
